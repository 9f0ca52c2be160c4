/* No thread leaves a round before all have arrived; in each round a single thread is told that it
 * is the serial thread. */
#include "threads.h"

enum { THREADS = 9, ROUNDS = 600 };

static kb_barrier_t barrier;
static int came[ROUNDS], serial[ROUNDS];

static void *work(void *arg)
{
	uint64_t rnd = test_stream();

	(void)arg;
	for (int r = 0; r < ROUNDS; r++) {
		int rc;

		test_add(&came[r], 1);
		rc = kb_barrier_wait(&barrier);
		CHECK_EQ(test_get(&came[r]), THREADS);
		if (rc)
			CHECK_EQ(rc, KB_BARRIER_SERIAL);
		test_add(&serial[r], rc != 0);
		if (test_rand(&rnd) % 16 == 0)
			kb_yield();
	}
	return NULL;
}

static void body(void)
{
	for (int r = 0; r < ROUNDS; r++)
		came[r] = serial[r] = 0;
	CHECK_EQ(kb_barrier_init(&barrier, THREADS), 0);
	workers_run(THREADS, work, NULL);
	CHECK_EQ(kb_barrier_destroy(&barrier), 0);
	for (int r = 0; r < ROUNDS; r++)
		CHECK_EQ(serial[r], 1);
}

int main(void)
{
	test_seed();
	test_each(body);
	return 0;
}
