/* A mutex excludes: many threads add to a plain counter, and sometimes yield the processor while
 * they hold the mutex. */
#include "threads.h"

enum { THREADS = 12, ROUNDS = 4000 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static long counter;
static int inside;

static void *add(void *arg)
{
	uint64_t rnd = test_stream();

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(kb_mutex_lock(&mutex), 0);
		CHECK_EQ(inside++, 0);
		counter++;
		if (test_rand(&rnd) % 64 == 0)
			kb_yield();
		inside--;
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
		if (test_rand(&rnd) % 256 == 0)
			kb_yield();
	}
	return NULL;
}

static void body(void)
{
	counter = 0;
	workers_run(THREADS, add, NULL);
	CHECK_EQ(counter, (long)THREADS * ROUNDS);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
