/* matrix: sched=rotator,lb2,steal vps=1,2,4
 * kb_vp_idle: a virtual processor that runs a thread is not idle, a virtual processor without
 * threads is, polling or asleep; the sum never goes back. */
#include <errno.h>

#include <kochab/kochab.h>

#include "test.h"

enum { MS = 1000000, WORK_MS = 60, NAP_MS = 60 };

static uint64_t idle(unsigned vp)
{
	uint64_t ns = 0;

	CHECK_EQ(kb_vp_idle(vp, &ns), 0);
	return ns;
}

static void *computes(void *arg)
{
	uint64_t end = test_now_ns() + WORK_MS * MS;

	while (test_now_ns() < end)
		;
	return arg;
}

/* The other VPs have nothing to do all the time. main's VP is not idle while main computes, though
 * the kernel may hold it; all are idle in main's nap. */
static void look(unsigned n)
{
	kb_attr_t a;
	kb_thread_t t;
	uint64_t before[64] = { 0 }, after[64] = { 0 }, start = test_now_ns(), all;

	CHECK_EQ(kb_attr_init(&a), 0);
	CHECK_EQ(kb_attr_setvp(&a, 0), 0);
	for (unsigned i = 0; i < n; i++)
		before[i] = idle(i);
	CHECK_EQ(kb_thread_create(&t, &a, computes, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	for (unsigned i = 0; i < n; i++)
		after[i] = idle(i);
	all = test_now_ns() - start;
	for (unsigned i = 0; i < n; i++) {
		CHECK(after[i] >= before[i]);
		CHECK(after[i] - before[i] <= all);
	}
	CHECK(all - (after[0] - before[0]) >= (WORK_MS - 1) * MS);
	kb_sleep(NAP_MS * MS);
	for (unsigned i = 0; i < n; i++)
		CHECK(idle(i) - after[i] >= NAP_MS * MS / 2);
}

int main(void)
{
	unsigned n = kb_vp_count();
	uint64_t ns;

	CHECK_EQ(kb_vp_idle(n, &ns), EINVAL);
	CHECK_EQ(kb_vp_idle(0, NULL), EINVAL);
	/* the first question begins the count; then each VP has run a thread and is idle anew */
	idle(0);
	for (unsigned i = 0; i < n; i++) {
		kb_attr_t a;
		kb_thread_t t;

		CHECK_EQ(kb_attr_init(&a), 0);
		CHECK_EQ(kb_attr_setvp(&a, (int)i), 0);
		CHECK_EQ(kb_thread_create(&t, &a, computes, NULL), 0);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		look(n);
	return 0;
}
