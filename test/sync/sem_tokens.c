/* Tokens are neither lost nor doubled while waits of all sorts race with posts. */
#include <errno.h>

#include "threads.h"

enum { THREADS = 8, ROUNDS = 3000, TOKENS = 3 };

static kb_sem_t sem;
static int inside, missed;

static int take(uint64_t r)
{
	switch (r % 4) {
	case 0:
		return kb_sem_trywait(&sem);
	case 1:
		return kb_sem_wait(&sem);
	default:
		return kb_sem_timedwait(&sem, kb_now() + r / 8 % 20000);
	}
}

static void *work(void *arg)
{
	uint64_t rnd = test_stream();

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t r = test_rand(&rnd);

		if (take(r)) {
			test_add(&missed, 1);
			continue;
		}
		CHECK(test_add(&inside, 1) <= TOKENS);
		if (r / 1024 % 4 == 0)
			kb_yield();
		test_add(&inside, -1);
		CHECK_EQ(kb_sem_post(&sem), 0);
	}
	return NULL;
}

static void body(void)
{
	CHECK_EQ(kb_sem_init(&sem, TOKENS), 0);
	workers_run(THREADS, work, NULL);
	CHECK_EQ(kb_sem_value(&sem), TOKENS);
	CHECK_EQ(kb_sem_destroy(&sem), 0);
	CHECK(missed < 2 * THREADS * ROUNDS);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
