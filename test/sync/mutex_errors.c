/* The kinds of mutex and their errors. */
#include <errno.h>

#include "threads.h"

static kb_mutex_t mutex;

static void *try_it(void *arg)
{
	int *results = arg;

	results[0] = kb_mutex_trylock(&mutex);
	results[1] = kb_mutex_unlock(&mutex);
	results[2] = kb_mutex_timedlock(&mutex, kb_now() + TEST_MS);
	return NULL;
}

static void other_is_refused(int unlock_error)
{
	int results[3];

	workers_run(1, try_it, results);
	CHECK_EQ(results[0], EBUSY);
	CHECK_EQ(results[1], unlock_error);
	CHECK_EQ(results[2], ETIMEDOUT);
}

static void errorcheck(void)
{
	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_ERRORCHECK), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), EPERM);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), EDEADLK);
	CHECK_EQ(kb_mutex_timedlock(&mutex, kb_now()), EDEADLK);
	CHECK_EQ(kb_mutex_trylock(&mutex), EBUSY);
	CHECK_EQ(kb_mutex_destroy(&mutex), EBUSY);
	other_is_refused(EPERM);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), EPERM);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

static void recursive(void)
{
	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_RECURSIVE), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), EPERM);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_trylock(&mutex), 0);
	CHECK_EQ(kb_mutex_timedlock(&mutex, 0), 0);
	for (int i = 0; i < 3; i++) {
		other_is_refused(EPERM);
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	}
	CHECK_EQ(kb_mutex_unlock(&mutex), EPERM);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

static void normal(void)
{
	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_NORMAL), 0);
	CHECK_EQ(kb_mutex_trylock(&mutex), 0);
	CHECK_EQ(kb_mutex_trylock(&mutex), EBUSY);
	CHECK_EQ(kb_mutex_timedlock(&mutex, kb_now() + TEST_MS), ETIMEDOUT);
	CHECK_EQ(kb_mutex_destroy(&mutex), EBUSY);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), EPERM);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

static void body(void)
{
	CHECK_EQ(kb_mutex_init(&mutex, (enum kb_mutex_kind)7), EINVAL);
	normal();
	errorcheck();
	recursive();
}

int main(void)
{
	test_both(body);
	return 0;
}
