/* core/preempt: the signal of the tick. A signal that the program handles is refused, with a line
 * that names the option; with another signal ticks come and the program's handler is left alone; no
 * further signal can be chosen.
 * matrix: none
 * body: thread */
#include <errno.h>
#include <kochab/kochab.h>
#include <signal.h>

#include "core/child.h"

enum { ROUNDS = 50 };

static volatile int handled, over;

static void handler(int sig)
{
	(void)sig;
	handled = 1;
}

static void *sets(void *unused)
{
	over = 1;
	return unused;
}

static void refused(void *arg)
{
	CHECK(signal(SIGURG, handler) != SIG_ERR);
	CHECK_EQ(kb_init(), EBUSY);
	CHECK_EQ(kb_init(), EBUSY);
	CHECK_EQ(kb_vp_count(), 0);
	(void)arg;
}

/* It is ready behind a computing thread: the other VP gets it at once, or by a tick. */
static void __attribute__((unused)) other(void *arg)
{
	kb_thread_t t;

	(void)arg;
	CHECK_EQ(setenv("KOCHAB_TICK_SIGNAL", "winch", 1), 0);
	CHECK_EQ(setenv("KOCHAB_VPS", "2", 1), 0);
	CHECK(signal(SIGURG, handler) != SIG_ERR);
	CHECK_EQ(kb_init(), 0);
	for (int i = 0; i < ROUNDS; i++) {
		over = 0;
		CHECK_EQ(kb_thread_create(&t, NULL, sets, NULL), 0);
		while (!over)
			;
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
	CHECK_EQ(handled, 0);
	CHECK(signal(SIGWINCH, SIG_DFL) != SIG_DFL);
}

static void bad(void *arg)
{
	CHECK_EQ(setenv("KOCHAB_TICK_SIGNAL", arg, 1), 0);
	CHECK_EQ(kb_init(), EINVAL);
}

int main(void)
{
	static struct child c;

	unsetenv("KOCHAB_TICK_SIGNAL");
	child_run(&c, refused, NULL);
	child_exited(&c, 0);
	child_said(&c, "SIGURG");
	child_said(&c, "tick_signal");
#ifndef __SANITIZE_THREAD__ /* it keeps signals from computing threads */
	child_run(&c, other, NULL);
	child_exited(&c, 0);
#endif
	child_run(&c, bad, "usr1");
	child_exited(&c, 0);
	child_said(&c, "KOCHAB_TICK_SIGNAL");
	child_run(&c, bad, "9");
	child_exited(&c, 0);
	child_said(&c, "KOCHAB_TICK_SIGNAL");
	return 0;
}
