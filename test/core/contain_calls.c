/* core/revive, os/trace: with the option on_kill=spare the processes of a program are killed while its threads make libc's
 * system calls. Each is made once, and its answer is the right one: not its number, which is what the register says of a
 * call that was refused (libcalls=dispatch) when the process was killed before it knew.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <kochab/kochab.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/child.h"
#include "core/children.h"

enum { THREADS = 4, KILLS = 25 };

/* Of the killer and the program. */
static struct shared {
	unsigned ready, stop, kills;
} *shared;

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)

/* Of each call the answer is known, and it is not its number. */
static void *thread(void *arg)
{
	pid_t me = getpid(), parent = getppid();
	off_t at = 0;
	FILE *f = tmpfile();
	int fd;

	CHECK(f);
	fd = fileno(f);
	for (unsigned long n = 0; !GET(shared->stop); n++) {
		CHECK_EQ(getppid(), parent);
		CHECK_EQ(getpid(), me);
		CHECK_EQ(write(fd, "abc", 3), 3);
		at += 3;
		CHECK_EQ(lseek(fd, 0, SEEK_CUR), at);
		if (n % 64 == 0)
			kb_yield();
	}
	return arg;
}

static void program(void *arg)
{
	kb_thread_t t[THREADS];
	struct kb_crash_counts c;

	(void)arg;
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_ON_KILL", "spare", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		_exit(CHILD_CANNOT);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, thread, NULL), 0);
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!GET(shared->stop)) {
		kb_crash_counts(&c);
		__atomic_store_n(&shared->kills, c.kills, __ATOMIC_RELEASE);
		kb_sleep(200000);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	printf("all went on\n");
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
	unsigned n;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child_start(&c, program, NULL);
	while (!GET(shared->ready) && !has_ended(c.pid))
		usleep(1000);
	while (GET(shared->kills) < KILLS && !has_ended(c.pid)) {
		n = children_of(c.pid, list, 64);
		if (n)
			kill(list[test_rand(&rand) % n], SIGKILL);
		usleep(2000 + (unsigned)(test_rand(&rand) % 3000));
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	child_end(&c, 60000);
	if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == CHILD_CANNOT)
		SKIP("no process bodies here");
	child_exited(&c, 0);
	child_said(&c, "all went on");
	return 0;
}
