/* core/contain where virtual processors are processes, with each scheduler: the process of a thread
 * that crashed goes on, too.
 * matrix: none
 * body: thread (it chooses by itself) */
#include <errno.h>
#include <kochab/kochab.h>

#include "core/child.h"
#include "core/crashers.h"

static const char *sched, *vps;

static void each(void *arg)
{
	unsigned n = 0;

	(void)arg;
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_SCHED", sched, 1);
	setenv("KOCHAB_VPS", vps, 1);
	if (kb_init() != 0)
		_exit(77);
	for (unsigned i = 0; i < FAULTS; i++)
		for (int tls = KB_TLS_LIGHT; tls <= KB_TLS_OWN && faults[i].signal; tls++) {
			struct kb_crash_info info;
			kb_thread_t t;
			kb_attr_t a;

			kb_attr_init(&a);
			kb_attr_settls(&a, tls);
			kb_attr_setvp(&a, (int)n);
			CHECK_EQ(kb_thread_create(&t, &a, faults[i].fn, NULL), 0);
			CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
			CHECK_EQ(kb_thread_crash_info(t, &info), 0);
			CHECK_EQ(info.signal, faults[i].signal);
			n++;
		}
	CHECK_EQ(kb_crash_count(), n);
	printf("streams work\n");
}

int main(void)
{
	static const char *const scheds[] = { "rotator", "lb2", "steal" },
		*const counts[] = { "1", "2", "4" };
	static struct child c;

	for (int i = 0; i < 9; i++) {
		sched = scheds[i / 3];
		vps = counts[i % 3];
		child_run(&c, each, NULL);
		if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
			SKIP("no process bodies here");
		child_exited(&c, 0);
		child_said(&c, "streams work");
	}
	return 0;
}
