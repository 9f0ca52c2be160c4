/* core/body_children, core/revive: processes of a program are killed while its threads ask for any child. It has none:
 * those that were killed and are not reaped yet are not to be waited for.
 * matrix: none
 * body: thread (it chooses by itself) */
#include <errno.h>
#include <kochab/kochab.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/child.h"
#include "core/children.h"

enum { THREADS = 3, KILLS = 60 };

/* Of the killer and the program. */
static struct shared {
	unsigned ready, stop, kills;
} *shared;

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)

static void *asks(void *arg)
{
	while (!GET(shared->stop)) {
		CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
		CHECK_EQ(errno, ECHILD);
		kb_yield();
	}
	return arg;
}

static void program(void *unused)
{
	kb_thread_t t[THREADS];
	struct kb_crash_counts c;

	(void)unused;
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_ON_KILL", "spare", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		_exit(77);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, asks, NULL), 0);
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!GET(shared->stop)) {
		kb_crash_counts(&c);
		__atomic_store_n(&shared->kills, c.kills, __ATOMIC_RELEASE);
		kb_yield();
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	printf("none seen\n");
}

static int has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid != 0;
}

int main(void)
{
	static struct child c;
	uint64_t rand = test_seed();
	int list[64];

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child_start(&c, program, NULL);
	while (!GET(shared->ready) && !has_ended(c.pid))
		usleep(1000);
	for (unsigned i = 0; GET(shared->kills) < KILLS && !has_ended(c.pid); i++) {
		unsigned n = children_of(c.pid, list, 64);

		if (n)
			kill(list[test_rand(&rand) % n], SIGKILL);
		usleep(2000 + i % 7 * 500);
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	child_end(&c, 60000);
	if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
		SKIP("no process bodies here");
	child_exited(&c, 0);
	CHECK(strstr(c.text, "none seen") != NULL);
	return 0;
}
