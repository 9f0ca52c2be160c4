/* Errors of tasks: the first error is kept, tasks that have not begun do not run, and
 * afterwards the group is as new. Cancelling has the same effect with ECANCELED; a running
 * task sees the cancellation. */
#include <errno.h>
#include <kochab/task.h>

#include "threads.h"

enum { TASKS = 500 };

static kb_group_t group;
static int n_run, begun, go;

static int count(void *arg)
{
	(void)arg;
	test_add(&n_run, 1);
	return 0;
}

static int fail(void *arg)
{
	return *(int *)arg;
}

static int fail_then_count(void *arg)
{
	(void)arg;
	for (int i = 0; i < TASKS; i++)
		CHECK_EQ(kb_group_run(&group, count, NULL), 0);
	return ENOENT;
}

static void first_error(void)
{
	int e = EDOM;

	CHECK_EQ(kb_group_run(&group, fail, &e), 0);
	CHECK_EQ(kb_group_wait(&group), EDOM);
	CHECK_EQ(kb_group_cancelled(&group), 0);
	CHECK_EQ(kb_group_run(&group, count, NULL), 0);
	CHECK_EQ(kb_group_wait(&group), 0);
	CHECK_EQ(test_get(&n_run), 1);
	CHECK_EQ(kb_group_run(&group, fail_then_count, NULL), 0);
	CHECK_EQ(kb_group_wait(&group), ENOENT);
	CHECK(test_get(&n_run) <= 1 + TASKS);
}

static int linger(void *arg)
{
	(void)arg;
	test_put(&begun, 1);
	while (!kb_group_cancelled(&group))
		kb_yield();
	test_put(&go, 1);
	return 0;
}

static void *cancel(void *arg)
{
	(void)arg;
	test_reach(&begun, 1);
	kb_group_cancel(&group);
	return NULL;
}

static void cancelled(void)
{
	kb_thread_t t;

	/* no task has begun */
	test_put(&n_run, 0);
	kb_group_cancel(&group);
	for (int i = 0; i < TASKS; i++)
		CHECK_EQ(kb_group_run(&group, count, NULL), 0);
	CHECK_EQ(kb_group_wait(&group), ECANCELED);
	CHECK_EQ(test_get(&n_run), 0);
	/* a task has begun */
	CHECK_EQ(kb_thread_create(&t, NULL, cancel, NULL), 0);
	CHECK_EQ(kb_group_run(&group, linger, NULL), 0);
	CHECK_EQ(kb_group_wait(&group), ECANCELED);
	CHECK_EQ(test_get(&go), 1);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(kb_group_wait(&group), 0);
}

int main(void)
{
	CHECK_EQ(kb_group_init(&group), 0);
	first_error();
	cancelled();
	return 0;
}
