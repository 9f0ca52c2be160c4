/* libc/intercept: each way to take over libc's system calls, forced by the option libcalls, gives
 * the same program: locks of libc's between processes, memory, children, signals of all masks,
 * pointers that lead nowhere, the program's own actions for SIGSYS and SIGTRAP. Where code may not
 * be written to `auto` finds a way, and `patch` is refused.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <kochab/kochab.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "core/child.h"
#include "core/refusals.h"

enum {
	THREADS = 8,
	ROUNDS = 300,
	PAGE = 4096,
	DISPATCH = 59 /* PR_SET_SYSCALL_USER_DISPATCH */
};

static const char *const ways[] = { "patch", "dispatch", "seccomp" };

static volatile sig_atomic_t handled[NSIG];
static uint32_t shared;
extern char **environ;

static void on_signal(int sig)
{
	handled[sig]++;
}

static void want(const char *way)
{
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "3", 1);
	setenv("KOCHAB_LIBCALLS", way, 1);
}

/* Before Linux 5.11 there is none. */
static bool has_dispatch;

static __attribute__((constructor)) void ask_for_dispatch(void)
{
	has_dispatch = prctl(DISPATCH, 0, 0, 0, 0) == 0;
}

/* While dispatch is used the program may not turn it off; while a filter is used, the program may
 * add none, not even a missing filter. */
static const char *way_taken(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno == EINVAL)
		return "seccomp";
	return has_dispatch && prctl(DISPATCH, 0, 0, 0, 0) && errno == EINVAL ? "dispatch" : "patch";
}

/* ---- a program ------------------------------------------------------------------------------- */

/* Memory that a process maps is every process's, and libc's locks are known everywhere. */
static void *allocates(void *arg)
{
	char **place = arg;

	for (int i = 0; i < ROUNDS; i++) {
		char *p = malloc((size_t)(i % 50) * 100 + 1), *q;

		CHECK(p != NULL);
		p[0] = 'p';
		kb_yield();
		CHECK_EQ(p[0], 'p');
		free(p);
		q = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(q != MAP_FAILED);
		q[0] = 'q';
		q = __atomic_exchange_n(place, q, __ATOMIC_ACQ_REL);
		if (q) {
			CHECK_EQ(q[0], 'q');
			CHECK_EQ(munmap(q, PAGE), 0);
		}
		fprintf(stdout, ".");
		if (i % 50 == 0)
			fflush(stdout);
	}
	return NULL;
}

static void has_threads(void)
{
	kb_thread_t t[THREADS];
	static char *place;

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, allocates, &place), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

static int status_of(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The children go on as any process does: nothing of a way is left in them. */
static void has_children(void)
{
	char *const words[] = { "sh", "-c", "test $PPID = $PROGRAM && exit 5", NULL };
	char number[32];
	pid_t pid;

	snprintf(number, sizeof number, "%d", (int)getpid());
	setenv("PROGRAM", number, 1);
	pid = fork();
	if (pid == 0) {
		char *p = malloc(100000);

		shared = 1;
		CHECK(p && getppid() == atoi(number) && getpid() != atoi(number));
		CHECK_EQ(prctl(DISPATCH, 0, 0, 0, 0), has_dispatch ? 0 : -1);
		CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno == EFAULT);
		_exit(status_of(fork() ?: (_exit(3), 0)) + system("exit 4") / 256);
	}
	CHECK_EQ(status_of(pid), 7);
	CHECK_EQ(shared, 0);
	pid = fork();
	if (pid == 0)
		_exit(execv("/bin/sh", words) ? 127 : 0);
	CHECK_EQ(status_of(pid), 5);
	CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ), 0);
	CHECK_EQ(status_of(pid), 5);
	pid = vfork();
	if (pid == 0)
		_exit(execv("/bin/sh", words) ? 127 : 0);
	CHECK_EQ(status_of(pid), 5);
	CHECK_EQ(system("exit 6"), 6 << 8);
}

static void calls_libc(void)
{
	has_threads();
	CHECK_EQ(system("exit 6"), 6 << 8);
}

/* A call that waits with such a mask is interrupted by a signal that it lets through, whose handler
 * calls libc. */
static void handler_calls(int sig)
{
	free(malloc(1000));
	CHECK_EQ(access("/", F_OK), 0);
	handled[sig]++;
}

static void waits_with(const sigset_t *mask, int how)
{
	struct timespec long_time = { 20, 0 };
	struct epoll_event e;
	int fd = epoll_create1(0), before = handled[SIGUSR2];

	CHECK_EQ(kill(getpid(), SIGUSR2), 0); /* the caller waits for that */
	errno = 0;
	if (how == 0)
		CHECK_EQ(ppoll(NULL, 0, &long_time, mask), -1);
	else if (how == 1)
		CHECK_EQ(pselect(0, NULL, NULL, NULL, &long_time, mask), -1);
	else if (how == 2)
		CHECK_EQ(epoll_pwait(fd, &e, 1, 20000, mask), -1);
	else
		CHECK_EQ(sigsuspend(mask), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(handled[SIGUSR2], before + 1);
	close(fd);
}

static void blocks_all(void)
{
	struct sigaction sa = { .sa_handler = handler_calls };
	sigset_t all, old, but;

	sigfillset(&sa.sa_mask);
	sigfillset(&all);
	but = all;
	sigdelset(&but, SIGUSR2);
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	CHECK_EQ(sigprocmask(SIG_SETMASK, &all, &old), 0);
	calls_libc();
	for (int how = 0; how < 4; how++)
		waits_with(&but, how);
	CHECK_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

static void handles(int sig)
{
	struct sigaction sa = { .sa_handler = on_signal }, old;

	CHECK_EQ(sigaction(sig, NULL, &old), 0);
	CHECK(old.sa_handler == SIG_DFL);
	CHECK_EQ(sigaction(sig, &sa, NULL), 0);
	handled[sig] = 0;
	calls_libc();
	CHECK_EQ(handled[sig], 0);
	CHECK_EQ(kill(getpid(), sig), 0);
	for (int i = 0; !handled[sig] && i < 20000; i++)
		usleep(1000);
	CHECK_EQ(handled[sig], 1);
	CHECK_EQ(sigaction(sig, NULL, &old), 0);
	CHECK(old.sa_handler == on_signal);
	CHECK(signal(sig, SIG_IGN) == on_signal);
	CHECK_EQ(kill(getpid(), sig), 0);
	calls_libc();
	CHECK(signal(sig, SIG_DFL) == SIG_IGN);
}

static void program(void)
{
	has_threads();
	has_children();
	handles(SIGSYS);
	handles(SIGTRAP);
	has_children();
	if (status_of(fork() ?: (raise(SIGSYS), 1)) != -SIGSYS)
		exit(1);
}

/* Pointers that lead nowhere: the kernel's error is returned, there is no fault. By libc, and by
 * the program's own instruction. */
static long own_call(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
		"r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#else
	return syscall(nr, a, b, c, d, e, f) == -1 ? -errno : 0;
#endif
}

static void refuses(long nr, long a, long b, long c, long d, long e, long f)
{
	errno = 0;
	CHECK_EQ(syscall(nr, a, b, c, d, e, f), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(own_call(nr, a, b, c, d, e, f), -EFAULT);
}

static void bad_pointers(void)
{
	const struct timespec now = { 0, 0 };
	struct epoll_event event;
	char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long bad = (long)page, time = (long)&now, mask[2] = { bad, 8 };
	int fd = epoll_create1(0);

	CHECK(page != MAP_FAILED && fd >= 0);
	refuses(SYS_ppoll, 0, 0, time, bad, 8, 0);
	refuses(SYS_epoll_pwait, fd, (long)&event, 1, 0, bad, 8);
	refuses(SYS_pselect6, 0, 0, 0, 0, time, (long)mask);
	refuses(SYS_pselect6, 0, 0, 0, 0, time, bad);
	refuses(SYS_rt_sigsuspend, bad, 8, 0, 0, 0, 0);
	refuses(SYS_rt_sigtimedwait, bad, 0, time, 8, 0, 0);
	refuses(SYS_rt_sigprocmask, SIG_BLOCK, bad, 0, 8, 0, 0);
	refuses(SYS_rt_sigprocmask, SIG_BLOCK, 0, bad, 8, 0, 0);
	for (int sig = SIGUSR1; sig; sig = sig == SIGUSR1 ? SIGSYS : sig == SIGSYS ? SIGTRAP : 0) {
		refuses(SYS_rt_sigaction, sig, bad, 0, 8, 0, 0);
		refuses(SYS_rt_sigaction, sig, 0, bad, 8, 0, 0);
	}
	close(fd);
	munmap(page, PAGE);
}

/* ---- each way -------------------------------------------------------------------------------- */

static void forced(void *way)
{
	int e;

	want(way);
	e = kb_init();
	CHECK(e != EINVAL);
	if (e)
		exit(CHILD_CANNOT);
	CHECK(strcmp(way_taken(), way) == 0);
	program();
	exit(20);
}

/* Signals that the program blocks when it starts are blocked before a way is chosen. */
static void blocked_at_start(void *way)
{
	sigset_t all;

	sigfillset(&all);
	CHECK_EQ(sigprocmask(SIG_SETMASK, &all, NULL), 0);
	want(way);
	CHECK_EQ(kb_init(), 0);
	calls_libc();
	exit(21);
}

/* On one virtual processor: the mask is a kernel thread's. */
static void blocks(void *way)
{
	want(way);
	setenv("KOCHAB_VPS", "1", 1);
	CHECK_EQ(kb_init(), 0);
	blocks_all();
	bad_pointers();
	exit(25);
}

static void killed_by_it(void *way)
{
	want(way);
	setenv("KOCHAB_VPS", "1", 1);
	CHECK_EQ(kb_init(), 0);
	has_threads();
	raise(SIGSYS);
	for (;;)
		pause();
}

static void executes(void *way)
{
	want(way);
	CHECK_EQ(kb_init(), 0);
	has_threads();
	execl("/bin/sh", "sh", "-c", "kill -0 $$ && (exit 4) || exit 22", (char *)NULL);
	exit(1);
}

/* ---- code that may not be written to --------------------------------------------------------- */

static void fixed(void *way)
{
	if (!refuse_new_code())
		exit(CHILD_CANNOT);
	want(way);
	CHECK_EQ(kb_init(), 0);
	CHECK(strcmp(way_taken(), strcmp(way, "auto") ? way : "dispatch") == 0);
	program();
	exit(23);
}

/* And the kernel is older, and there is a filter already. */
static void fixed_and_old(void *unused)
{
	(void)unused;
	if (!refuse_new_code() || !refuse_dispatch())
		exit(CHILD_CANNOT);
	want("auto");
	CHECK_EQ(kb_init(), 0);
	CHECK(strcmp(way_taken(), "seccomp") == 0);
	has_threads();
	if (status_of(fork() ?: (_exit(system("exit 4") / 256), 0)) != 4)
		exit(1);
	exit(26);
}

static void fixed_and_patched(void *unused)
{
	(void)unused;
	if (!refuse_new_code())
		exit(CHILD_CANNOT);
	want("patch");
	CHECK_EQ(kb_init(), ENOTSUP);
	free(malloc(1000));
	CHECK_EQ(system("exit 6"), 6 << 8);
	exit(24);
}

int main(void)
{
	static struct child c;
	int tried = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		void *way = (void *)(uintptr_t)ways[i];

		if (!child_does(&c, forced, way, 20))
			continue;
		tried++;
		child_does(&c, blocked_at_start, way, 21);
		child_does(&c, blocks, way, 25);
		child_does(&c, executes, way, 22);
		child_run(&c, killed_by_it, way);
		child_killed(&c, SIGSYS);
	}
	if (!tried)
		SKIP("no process bodies here");
	if (tried == sizeof ways / sizeof *ways) {
		child_does(&c, fixed, "auto", 23);
		child_does(&c, fixed, "dispatch", 23);
		child_does(&c, fixed, "seccomp", 23);
		child_does(&c, fixed_and_old, NULL, 26);
	}
	if (child_does(&c, fixed_and_patched, NULL, 24))
		child_said(&c, "libc's code cannot be changed");
	return 0;
}
