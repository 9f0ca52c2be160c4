/* matrix: sched=rotator,rotator-paper,lb2,steal vps=1,2,4
 * kb_vp_ready: a thread that has been created on a virtual processor and has not had its turn is
 * counted there, and is not counted any more when it has run. */
#include <errno.h>

#include <kochab/kochab.h>

#include "test.h"

enum { N = 100 };

static void *nothing(void *arg)
{
	return arg;
}

static unsigned ready(unsigned vp)
{
	unsigned n = 0;

	CHECK_EQ(kb_vp_ready(vp, &n), 0);
	return n;
}

/* Bound, so that none is given away; free threads where no other VP could have them. */
static void count(unsigned vp, int bound)
{
	kb_thread_t t[N];
	kb_attr_t a;

	CHECK_EQ(kb_attr_init(&a), 0);
	if (bound)
		CHECK_EQ(kb_attr_setvp(&a, (int)vp), 0);
	CHECK_EQ(ready(vp), 0);
	for (unsigned i = 0; i < N; i++) {
		CHECK_EQ(kb_thread_create(&t[i], &a, nothing, NULL), 0);
		CHECK_EQ(ready(vp), i + 1);
	}
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(ready(vp), 0);
}

static void *here(void *arg)
{
	unsigned vp = (unsigned)kb_vp_self();

	count(vp, 1);
	if (kb_vp_count() == 1)
		count(vp, 0);
	return arg;
}

int main(void)
{
	unsigned n = kb_vp_count(), x;

	CHECK_EQ(kb_vp_ready(n, &x), EINVAL);
	CHECK_EQ(kb_vp_ready(0, NULL), EINVAL);
	for (unsigned i = 0; i < n; i++) {
		kb_attr_t a;
		kb_thread_t t;

		CHECK_EQ(kb_attr_init(&a), 0);
		CHECK_EQ(kb_attr_setvp(&a, (int)i), 0);
		CHECK_EQ(kb_thread_create(&t, &a, here, NULL), 0);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
	return 0;
}
