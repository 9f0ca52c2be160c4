/* A thread whose wait has timed out has left the round; a count of 0 is refused; a barrier with
 * waiters is not destroyed. */
#include <errno.h>

#include "threads.h"

static kb_barrier_t barrier;
static int results[2], started;

static void *come(void *arg)
{
	test_add(&started, 1);
	results[(intptr_t)arg] = kb_barrier_wait(&barrier);
	return NULL;
}

static void body(void)
{
	struct worker w[2];
	uint64_t deadline = kb_now() + 10 * TEST_MS;

	CHECK_EQ(kb_barrier_init(&barrier, 0), EINVAL);
	CHECK_EQ(kb_barrier_init(&barrier, 2), 0);
	CHECK_EQ(kb_barrier_timedwait(&barrier, deadline), ETIMEDOUT);
	CHECK(kb_now() >= deadline);
	started = 0;
	worker_start(&w[0], come, (void *)0);
	test_reach(&started, 1);
	kb_sleep(10 * TEST_MS);
	CHECK_EQ(kb_barrier_destroy(&barrier), EBUSY);
	worker_start(&w[1], come, (void *)1);
	worker_join(&w[0]);
	worker_join(&w[1]);
	CHECK_EQ(results[0] + results[1], KB_BARRIER_SERIAL);
	CHECK_EQ(kb_barrier_destroy(&barrier), 0);
	CHECK_EQ(kb_barrier_init(&barrier, 1), 0);
	CHECK_EQ(kb_barrier_wait(&barrier), KB_BARRIER_SERIAL);
	CHECK_EQ(kb_barrier_wait(&barrier), KB_BARRIER_SERIAL);
}

int main(void)
{
	test_both(body);
	return 0;
}
