/* sched/lb2: the program ends while threads still use the semaphores of the Waiver Queues:
 * that is no error. */
/* matrix: sched=lb2 vps=2,4 */
#include <kochab/kochab.h>

#include "core/child.h"

static void *yields(void *arg)
{
	for (;;)
		kb_yield();
	return arg;
}

static void start(void *arg)
{
	(void)arg;
	for (int i = 0; i < 300; i++) {
		kb_thread_t t;

		CHECK_EQ(kb_thread_create(&t, NULL, yields, NULL), 0);
	}
	kb_sleep(20000000);
}

int main(void)
{
	static struct child c;

#ifdef __SANITIZE_ADDRESS__
	SKIP("LeakSanitizer writes of its own at the end of the child");
#endif
	CHECK_EQ(setenv("KOCHAB_LB2_LOCK", "semop", 1), 0);
	for (int i = 0; i < 10; i++) {
		child_run(&c, start, NULL);
		child_exited(&c, 0);
		CHECK_EQ(c.n, 0);
	}
	return 0;
}
