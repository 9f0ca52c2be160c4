/* The serial thread may destroy the barrier at once, although the remaining threads have not
 * returned from their wait yet. */
#include <string.h>

#include "threads.h"

enum { THREADS = 4, ROUNDS = 500 };

static kb_barrier_t *barrier;

static void *work(void *arg)
{
	kb_barrier_t *b = arg;

	if (kb_barrier_wait(b) == KB_BARRIER_SERIAL) {
		CHECK_EQ(kb_barrier_destroy(b), 0);
		memset(b, 0x5a, sizeof *b);
	}
	return NULL;
}

static void body(void)
{
	barrier = malloc(sizeof *barrier);
	CHECK(barrier != NULL);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(kb_barrier_init(barrier, THREADS), 0);
		workers_run(THREADS, work, barrier);
		for (size_t k = 0; k < sizeof *barrier; k++)
			CHECK_EQ(((unsigned char *)barrier)[k], 0x5a);
	}
	free(barrier);
}

int main(void)
{
	test_both(body);
	return 0;
}
