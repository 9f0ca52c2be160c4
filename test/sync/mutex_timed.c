/* A timed lock waits until its deadline, not less, and gets the lock if the
 * holder releases it before. */
#include <errno.h>

#include "threads.h"

static kb_mutex_t mutex = KB_MUTEX_INIT;
static int held;

static void *hold(void *arg)
{
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	test_put(&held, 1);
	kb_sleep(*(uint64_t *)arg);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	return NULL;
}

static int lock_while_held(uint64_t holds, uint64_t patience)
{
	struct worker w;
	uint64_t deadline;
	int rc;

	test_put(&held, 0);
	worker_start(&w, hold, &holds);
	test_reach(&held, 1);
	deadline = kb_now() + patience;
	rc = kb_mutex_timedlock(&mutex, deadline);
	if (rc == ETIMEDOUT)
		CHECK(kb_now() >= deadline);
	else
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	worker_join(&w);
	return rc;
}

static void body(void)
{
	CHECK_EQ(lock_while_held(300 * TEST_MS, 20 * TEST_MS), ETIMEDOUT);
	CHECK_EQ(lock_while_held(20 * TEST_MS, 20000ull * TEST_MS), 0);
	CHECK_EQ(kb_mutex_timedlock(&mutex, 0), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

int main(void)
{
	test_both(body);
	return 0;
}
