/* test/core/killed.h - a program whose virtual processors are processes that are killed at random
 * while its threads work; with on_kill=spare all of them go on. */
#ifndef KB_TEST_KILLED_H
#define KB_TEST_KILLED_H

#include <kochab/kochab.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/child.h"
#include "core/children.h"

enum { KILLED_THREADS_MOST = 8 };

struct killed {
	void *(*thread)(void *); /* until killed_is_over() */
	unsigned threads, kills;
	void (*pause)(void);     /* main's, between two looks at the number of kills */
};

/* Shared by the killer and the program. */
static struct killed_shared {
	unsigned ready, stop, kills;
} *killed_shared;

#define KILLED_GET(x) __atomic_load_n(&killed_shared->x, __ATOMIC_ACQUIRE)

static inline int killed_is_over(void)
{
	return KILLED_GET(stop) != 0;
}

static inline void killed_program(void *arg)
{
	const struct killed *k = arg;
	kb_thread_t t[KILLED_THREADS_MOST];
	struct kb_crash_counts c;

	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_ON_KILL", "spare", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		_exit(CHILD_CANNOT);
	for (unsigned i = 0; i < k->threads; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, k->thread, NULL), 0);
	__atomic_store_n(&killed_shared->ready, 1, __ATOMIC_RELEASE);
	while (!killed_is_over()) {
		kb_crash_counts(&c);
		__atomic_store_n(&killed_shared->kills, c.kills, __ATOMIC_RELEASE);
		k->pause();
	}
	for (unsigned i = 0; i < k->threads; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	printf("all went on\n");
}

static inline int killed_has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid != 0;
}

static inline int killed_run(struct killed *k)
{
	static struct child c;
	uint64_t rand = test_seed();
	int list[64];

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	CHECK(k->threads <= KILLED_THREADS_MOST);
	killed_shared = mmap(NULL, sizeof *killed_shared, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child_start(&c, killed_program, k);
	while (!KILLED_GET(ready) && !killed_has_ended(c.pid))
		usleep(1000);
	while (KILLED_GET(kills) < k->kills && !killed_has_ended(c.pid)) {
		unsigned n = children_of(c.pid, list, 64);

		if (n)
			kill(list[test_rand(&rand) % n], SIGKILL);
		usleep(2000 + (unsigned)(test_rand(&rand) % 3000));
	}
	__atomic_store_n(&killed_shared->stop, 1, __ATOMIC_RELEASE);
	child_end(&c, 60000);
	if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == CHILD_CANNOT)
		SKIP("no process bodies here");
	if (ended_unseen(&c))
		SKIP(UNSEEN);
	child_exited(&c, 0);
	child_said(&c, "all went on");
	return 0;
}

#endif
