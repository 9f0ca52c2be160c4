/* Groups of tasks: each task runs once and has ended when the wait returns; groups in groups in
 * groups; more tasks than a list holds; tasks that make tasks in a group of another thread; a group
 * is used again; another thread may not wait for it. Run by lightweight threads and by kernel
 * threads that Kochab did not create. */
#include <errno.h>
#include <kochab/task.h>

#include "threads.h"

enum { FLAT = 20000, TREES = 8, DEEP = 12, OWNERS = 4, ROUNDS = 30 };

static int n_run;

static int count(void *arg)
{
	test_add(arg, 1);
	return 0;
}

struct call {
	unsigned n;
	uint64_t result;
};

static int fib(void *arg)
{
	struct call *c = arg, a = { c->n - 1, 0 }, b = { c->n - 2, 0 };
	kb_group_t g;

	if (c->n < 2) {
		c->result = c->n;
		return 0;
	}
	CHECK_EQ(kb_group_init(&g), 0);
	CHECK_EQ(kb_group_run(&g, fib, &a), 0);
	CHECK_EQ(fib(&b), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	c->result = a.result + b.result;
	return 0;
}

static void flat(void)
{
	kb_group_t g;
	int before = test_get(&n_run), n = 0;

	CHECK_EQ(kb_group_init(&g), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < FLAT; i++)
			CHECK_EQ(kb_group_run(&g, count, &n), 0);
		CHECK_EQ(kb_group_wait(&g), 0);
		CHECK_EQ(test_get(&n), FLAT * (round + 1));
	}
	CHECK_EQ(test_get(&n_run), before);
}

/* A tree of tasks that are all in the same group, which main owns. */
struct tree {
	kb_group_t *g;
	int depth;
	struct tree *child[2];
};

static struct tree *grow(kb_group_t *g, int depth)
{
	struct tree *t = malloc(sizeof *t);

	CHECK(t != NULL);
	*t = (struct tree){ g, depth, { NULL, NULL } };
	return t;
}

static int climb(void *arg)
{
	struct tree *t = arg;

	test_add(&n_run, 1);
	for (int i = 0; i < 2 && t->depth > 0; i++)
		CHECK_EQ(kb_group_run(t->g, climb, grow(t->g, t->depth - 1)), 0);
	free(t);
	return 0;
}

static void trees(void)
{
	kb_group_t g;

	test_put(&n_run, 0);
	CHECK_EQ(kb_group_init(&g), 0);
	for (int i = 0; i < TREES; i++)
		CHECK_EQ(kb_group_run(&g, climb, grow(&g, DEEP)), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	CHECK_EQ(test_get(&n_run), TREES * ((2 << DEEP) - 1));
}

static void *own(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		struct call c = { 14, 0 };
		int n = 0;
		kb_group_t g;

		CHECK_EQ(kb_group_init(&g), 0);
		for (int k = 0; k < i; k++)
			CHECK_EQ(kb_group_run(&g, count, &n), 0);
		CHECK_EQ(fib(&c), 0);
		CHECK_EQ(c.result, 377);
		CHECK_EQ(kb_group_wait(&g), 0);
		CHECK_EQ(test_get(&n), i);
		if (i % 8 == 7)
			kb_sleep(TEST_MS); /* so that the servers park */
	}
	flat();
	return NULL;
}

static void *wait_elsewhere(void *arg)
{
	CHECK_EQ(kb_group_wait(arg), EPERM);
	return NULL;
}

static void body(void)
{
	kb_group_t g;

	workers_run(OWNERS, own, NULL);
	CHECK_EQ(kb_group_init(&g), 0);
	workers_run(1, wait_elsewhere, &g);
}

int main(void)
{
	struct call c = { 20, 0 };

	test_both(body);
	CHECK_EQ(fib(&c), 0);
	CHECK_EQ(c.result, 6765);
	flat();
	trees();
	return 0;
}
