/* Deadlines of some microseconds race with hand-overs: exclusion holds, no lock is
 * lost, no waiter stays behind. */
#include <errno.h>

#include "threads.h"

enum { THREADS = 8, ROUNDS = 3000 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static long counter;
static int got, missed;

static void *work(void *arg)
{
	uint64_t rnd = test_stream();

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t r = test_rand(&rnd);
		uint64_t at = r % 4 == 0 ? KB_FOREVER : kb_now() + r / 8 % 20000;
		int rc = kb_mutex_timedlock(&mutex, at);

		if (rc) {
			CHECK_EQ(rc, ETIMEDOUT);
			test_add(&missed, 1);
			continue;
		}
		counter++;
		if (r / 1024 % 8 == 0)
			kb_yield();
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
		test_add(&got, 1);
	}
	return NULL;
}

static void body(void)
{
	counter = got = missed = 0;
	workers_run(THREADS, work, NULL);
	CHECK_EQ(counter, got);
	CHECK_EQ(got + missed, THREADS * ROUNDS);
	CHECK(got > 0);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
