/* Stacks of task servers: 256 KiB, or the option stack_size if that is more. A task that
 * needs less than that runs; the message about an overflow names the option. Functions
 * that are NULL are refused. */
/* matrix: vps=1,2 */
#include <errno.h>
#include <kochab/task.h>
#include <stdlib.h>

#include "core/child.h"

enum { NEEDS = 1 << 20, DEEP = 64 << 20, PAGE = 4096, NAP = 1000000 };

/* Touches a page in each call, so that no call steps over the guard. */
static __attribute__((noinline)) long use_stack(size_t bytes)
{
	volatile char page[PAGE];

	page[0] = 1;
	return bytes > PAGE ? use_stack(bytes - PAGE) + page[0] : page[0];
}

static int use(void *bytes)
{
	return use_stack((size_t)(uintptr_t)bytes) > 0 ? 0 : EIO;
}

static void *uses(void *bytes)
{
	return use(bytes) ? NULL : bytes;
}

/* The caller sleeps before it checks the task, so a server runs the task. */
static void by_server(void *bytes)
{
	kb_future_t f = KB_FUTURE_INIT;
	void *value;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_future_run(&f, uses, bytes), 0);
	while (kb_future_try(&f, &value) == EAGAIN)
		kb_sleep(NAP);
	CHECK(value == bytes);
}

static int part(size_t from, size_t to, void *sum, void *arg)
{
	(void)from, (void)to, (void)sum, (void)arg;
	return 0;
}

static void join(void *left, const void *right, void *arg)
{
	(void)left, (void)right, (void)arg;
}

static void null_functions(void *unused)
{
	kb_future_t f = KB_FUTURE_INIT;
	int sum = 0;
	kb_group_t g;
	void *value;

	(void)unused;
	CHECK_EQ(kb_group_init(&g), 0);
	CHECK_EQ(kb_group_run(&g, NULL, NULL), EINVAL);
	CHECK_EQ(kb_group_run(&g, use, (void *)(uintptr_t)PAGE), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	CHECK_EQ(kb_parallel_for(0, 10, 1, NULL, NULL), EINVAL);
	CHECK_EQ(kb_parallel_for(0, 0, 1, NULL, NULL), EINVAL);
	CHECK_EQ(kb_reduce(0, 10, 1, &sum, sizeof(sum), NULL, join, NULL), EINVAL);
	CHECK_EQ(kb_reduce(0, 10, 1, &sum, sizeof(sum), part, NULL, NULL), EINVAL);
	CHECK_EQ(kb_reduce(0, 10, 1, &sum, sizeof(sum), part, join, NULL), 0);
	CHECK_EQ(kb_future_run(&f, NULL, NULL), EINVAL);
	CHECK_EQ(kb_future_run(&f, uses, (void *)(uintptr_t)PAGE), 0);
	CHECK_EQ(kb_future_get(&f, &value), 0);
}

int main(void)
{
	static struct child c;

	child_run(&c, null_functions, NULL);
	child_exited(&c, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer has frames and faults of its own");
#endif
	child_run(&c, by_server, (void *)(uintptr_t)(100 << 10));
	child_exited(&c, 0);
	child_run(&c, by_server, (void *)(uintptr_t)DEEP);
	child_killed(&c, SIGSEGV);
	child_said(&c, "thread task server overflowed its 256 KiB stack: the option stack_size");
	CHECK_EQ(setenv("KOCHAB_STACK_SIZE", "2M", 1), 0);
	child_run(&c, by_server, (void *)(uintptr_t)NEEDS);
	child_exited(&c, 0);
	child_run(&c, by_server, (void *)(uintptr_t)DEEP);
	child_killed(&c, SIGSEGV);
	child_said(&c, "thread task server overflowed its 2048 KiB stack");
	CHECK_EQ(setenv("KOCHAB_STACK_SIZE", "16K", 1), 0);
	child_run(&c, by_server, (void *)(uintptr_t)(100 << 10));
	child_exited(&c, 0);
	return 0;
}
