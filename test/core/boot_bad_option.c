/* core/boot: a bad option is named on standard error, kb_init and kb_thread_create fail with
 * EINVAL, and nothing runs. */
/* matrix: none */
#include <errno.h>
#include <kochab/kochab.h>

#include "core/child.h"

static void *nothing(void *arg)
{
	return arg;
}

static void start(void *arg)
{
	kb_thread_t t;

	CHECK_EQ(putenv(arg), 0);
	CHECK_EQ(kb_init(), EINVAL);
	CHECK_EQ(kb_init(), EINVAL);
	CHECK_EQ(kb_thread_create(&t, NULL, nothing, NULL), EINVAL);
	CHECK_EQ(kb_vp_count(), 0);
}

int main(void)
{
	static char bad[][64] = { "KOCHAB_NONSENSE=1", "KOCHAB_VPS=two",       "KOCHAB_VPS=5000",
				  "KOCHAB_SCHED=fifo", "KOCHAB_VPS=",	       "KOCHAB_STACK_SIZE=1",
				  "KOCHAB_GUARD=yes",  "KOCHAB_POLLERS=-1",
				  "KOCHAB_SPIN_US=9s", "KOCHAB_MAX_THREADS=0", "KOCHAB_TLS=none",  "KOCHAB_=1" };
	static struct child c;

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		char name[64];

		child_run(&c, start, bad[i]);
		child_exited(&c, 0);
		snprintf(name, sizeof name, "kochab: %.*s", (int)strcspn(bad[i], "="), bad[i]);
		child_said(&c, name);
	}
	return 0;
}
