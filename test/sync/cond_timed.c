/* A timed wait ends at its deadline, not before, with the mutex held; a recursive mutex keeps its
 * count; a mutex that the caller does not hold is refused. */
#include <errno.h>

#include "threads.h"

static kb_mutex_t mutex;
static kb_cond_t cond = KB_COND_INIT;
static int go;

static void *trylock(void *arg)
{
	*(int *)arg = kb_mutex_trylock(&mutex);
	return NULL;
}

static int held_from_elsewhere(void)
{
	int rc;

	workers_run(1, trylock, &rc);
	return rc;
}

static void *signal_it(void *arg)
{
	(void)arg;
	kb_mutex_lock(&mutex);
	go = 1;
	CHECK_EQ(kb_cond_signal(&cond), 0);
	kb_mutex_unlock(&mutex);
	return NULL;
}

static void body(void)
{
	struct worker w;
	uint64_t deadline;

	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_RECURSIVE), 0);
	CHECK_EQ(kb_cond_wait(&cond, &mutex), EPERM);
	kb_mutex_lock(&mutex);
	kb_mutex_lock(&mutex);
	deadline = kb_now() + 20 * TEST_MS;
	CHECK_EQ(kb_cond_timedwait(&cond, &mutex, deadline), ETIMEDOUT);
	CHECK(kb_now() >= deadline);
	CHECK_EQ(held_from_elsewhere(), EBUSY);
	CHECK_EQ(kb_cond_timedwait(&cond, &mutex, 0), ETIMEDOUT);
	/* the signaller can lock it: the wait gives up both holds */
	go = 0;
	worker_start(&w, signal_it, NULL);
	while (!go)
		CHECK_EQ(kb_cond_timedwait(&cond, &mutex, kb_now() + 20000ull * TEST_MS), 0);
	worker_join(&w);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(held_from_elsewhere(), EBUSY);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), EPERM);
	CHECK_EQ(kb_cond_destroy(&cond), 0);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

int main(void)
{
	test_both(body);
	return 0;
}
