/* Errors of a readers-writer lock. */
#include <errno.h>

#include "threads.h"

static kb_rwlock_t lock = KB_RWLOCK_INIT;

static void *try_all(void *arg)
{
	int *rc = arg;

	rc[0] = kb_rwlock_tryrdlock(&lock);
	rc[1] = kb_rwlock_trywrlock(&lock);
	rc[2] = kb_rwlock_timedrdlock(&lock, kb_now() + TEST_MS);
	rc[3] = kb_rwlock_timedwrlock(&lock, 0);
	if (rc[0] == 0)
		CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	if (rc[2] == 0)
		CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	return NULL;
}

static void body(void)
{
	int rc[4];

	CHECK_EQ(kb_rwlock_unlock(&lock), EPERM);
	CHECK_EQ(kb_rwlock_wrlock(&lock), 0);
	CHECK_EQ(kb_rwlock_wrlock(&lock), EDEADLK);
	CHECK_EQ(kb_rwlock_rdlock(&lock), EDEADLK);
	CHECK_EQ(kb_rwlock_trywrlock(&lock), EBUSY);
	CHECK_EQ(kb_rwlock_destroy(&lock), EBUSY);
	workers_run(1, try_all, rc);
	CHECK(rc[0] == EBUSY && rc[1] == EBUSY && rc[2] == ETIMEDOUT && rc[3] == ETIMEDOUT);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	CHECK_EQ(kb_rwlock_rdlock(&lock), 0);
	CHECK_EQ(kb_rwlock_rdlock(&lock), 0);
	workers_run(1, try_all, rc);
	CHECK(rc[0] == 0 && rc[1] == EBUSY && rc[2] == 0 && rc[3] == ETIMEDOUT);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	CHECK_EQ(kb_rwlock_destroy(&lock), EBUSY);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	CHECK_EQ(kb_rwlock_destroy(&lock), 0);
	CHECK_EQ(kb_rwlock_init(&lock, (enum kb_rwlock_kind)9), EINVAL);
}

int main(void)
{
	test_both(body);
	return 0;
}
