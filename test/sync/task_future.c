/* Futures: the value comes once and all waiters see it, however they wait, and whether a task
 * computes the value or a thread sets it; the last waiter frees the future at once. */
#include <errno.h>
#include <kochab/task.h>

#include "threads.h"

enum { ROUNDS = 200, WAITERS = 5 };

struct one {
	kb_future_t f;
	int left;
};

static void *compute(void *arg)
{
	if ((uintptr_t)arg % 3 == 0)
		kb_yield();
	return (void *)((uintptr_t)arg * 2);
}

static void *wait_for(void *arg)
{
	struct one *o = arg;
	void *v;

	if (kb_future_timedget(&o->f, &v, kb_now()) == ETIMEDOUT)
		CHECK_EQ(kb_future_get(&o->f, &v), 0);
	CHECK_EQ((uintptr_t)v, 84);
	if (test_add(&o->left, -1) == 0)
		free(o);
	return NULL;
}

static void shared(int computed)
{
	struct one *o = calloc(1, sizeof *o);
	kb_thread_t t[WAITERS];

	CHECK(o != NULL);
	o->left = WAITERS + 1;
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, wait_for, o), 0);
	if (computed)
		CHECK_EQ(kb_future_run(&o->f, compute, (void *)42), 0);
	else
		CHECK_EQ(kb_future_set(&o->f, (void *)84), 0);
	wait_for(o);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

static void states(void)
{
	kb_future_t f = KB_FUTURE_INIT;
	void *v;

	CHECK_EQ(kb_future_try(&f, &v), EAGAIN);
	CHECK_EQ(kb_future_timedget(&f, &v, kb_now() + TEST_MS), ETIMEDOUT);
	CHECK_EQ(kb_future_set(&f, &f), 0);
	CHECK_EQ(kb_future_set(&f, NULL), EBUSY);
	CHECK_EQ(kb_future_run(&f, compute, NULL), EBUSY);
	CHECK_EQ(kb_future_try(&f, &v), 0);
	CHECK(v == &f);
	CHECK_EQ(kb_future_get(&f, NULL), 0);
	CHECK_EQ(kb_future_init(&f), 0);
	CHECK_EQ(kb_future_run(&f, compute, (void *)1), 0);
	CHECK_EQ(kb_future_run(&f, compute, (void *)2), EBUSY);
	CHECK_EQ(kb_future_set(&f, NULL), EBUSY);
	CHECK_EQ(kb_future_get(&f, &v), 0);
	CHECK_EQ((uintptr_t)v, 2);
}

/* A chain: each value needs the value before, which is made later. */
static kb_future_t chain[ROUNDS];

static void *link_up(void *arg)
{
	uintptr_t i = (uintptr_t)arg;
	void *v;

	CHECK_EQ(kb_future_get(&chain[i - 1], &v), 0);
	return (void *)((uintptr_t)v + 1);
}

static void chained(void)
{
	void *v;

	for (uintptr_t i = ROUNDS - 1; i > 0; i--)
		CHECK_EQ(kb_future_run(&chain[i], link_up, (void *)i), 0);
	CHECK_EQ(kb_future_set(&chain[0], (void *)7), 0);
	CHECK_EQ(kb_future_get(&chain[ROUNDS - 1], &v), 0);
	CHECK_EQ((uintptr_t)v, 7 + ROUNDS - 1);
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	states();
	for (int i = 0; i < ROUNDS; i++)
		shared(i % 2);
	chained();
	return 0;
}
