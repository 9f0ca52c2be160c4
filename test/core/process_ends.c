/* core/process: a program whose virtual processors are processes looks like a single process:
 * its number, its exit status, signals, children; and it ends as a single process, whichever of its
 * processes is killed.
 * matrix: none
 * body: thread (it chooses by itself) */
#define _GNU_SOURCE
#include <errno.h>
#include <kochab/kochab.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "core/child.h"
#include "libc_age.h"

extern char **environ;

static int handled;

static void with_processes(void)
{
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		_exit(77);
}

static void *number(void *arg)
{
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(getpid(), *(pid_t *)arg);
		kb_yield();
	}
	return NULL;
}

/* Another process runs main now; its number is the number that the parent knows. */
static void numbers(void *arg)
{
	pid_t before = getpid(), parent = getppid();
	kb_thread_t t[8];

	(void)arg;
	with_processes();
	CHECK_EQ(getpid(), before);
	CHECK_EQ(getppid(), parent);
	CHECK(syscall(SYS_getpid) != syscall(SYS_gettid) || syscall(SYS_getpid) != before);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, number, &before), 0);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	exit(23);
}

static void *exits(void *arg)
{
	exit(*(int *)arg);
}

static void from_thread(void *arg)
{
	int status = 24;
	kb_thread_t t;

	(void)arg;
	with_processes();
	CHECK_EQ(kb_thread_create(&t, NULL, exits, &status), 0);
	kb_thread_join(t, NULL);
}

static void aborts(void *arg)
{
	(void)arg;
	with_processes();
	abort();
}

/* No line comes behind it. */
static void kills_itself(void *how)
{
	with_processes();
	if (how)
		sigqueue(getpid(), SIGKILL, (union sigval){ 0 });
	else
		kill(getpid(), SIGKILL);
	_exit(9);
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

/* The action is set when there are several processes; the signal goes to the program. */
static void signals(void *arg)
{
	(void)arg;
	with_processes();
	signal(SIGUSR1, on_signal);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	while (!__atomic_load_n(&handled, __ATOMIC_RELAXED))
		kb_sleep(1000000);
	CHECK_EQ(raise(SIGUSR1), 0);
	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < 2)
		kb_sleep(1000000);
}

static void *spawns(void *arg)
{
	char *words[] = { "/bin/sh", "-c", "exit 5", NULL };

	CHECK_EQ(posix_spawn(arg, words[0], NULL, NULL, words, environ), 0);
	return NULL;
}

/* The thread that started it ran elsewhere, perhaps. */
static void children(void *arg)
{
	kb_thread_t t;
	int status;
	pid_t pid;

	(void)arg;
	with_processes();
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(kb_thread_create(&t, NULL, spawns, &pid), 0);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
		CHECK_EQ(waitpid(i % 2 ? pid : -1, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
	}
	CHECK_EQ(waitpid(-1, &status, 0), -1);
	CHECK_EQ(errno, ECHILD);
	CHECK_EQ(system("exit 3"), 3 << 8);
}

static void wait_for_handled(int n)
{
	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < n)
		kb_sleep(1000000);
}

static void *sets_timers(void *arg)
{
	struct itimerval soon = { .it_value.tv_usec = 1000 };
	struct itimerspec every = { { 0, 1000000 }, { 0, 1000000 } };
	timer_t id;

	CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
	wait_for_handled(1);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, NULL, &id), 0);
	CHECK_EQ(timer_settime(id, 0, &every, NULL), 0);
	wait_for_handled(4);
	*(timer_t *)arg = id;
	return NULL;
}

/* The thread that sets a timer runs in some process; the program has the timer, and another thread
 * may remove it. */
static void timers(void *arg)
{
	kb_thread_t t;
	timer_t id;

	(void)arg;
	with_processes();
	signal(SIGALRM, on_signal);
	CHECK_EQ(kb_thread_create(&t, NULL, sets_timers, &id), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(timer_delete(id), 0);
	/* before 2.34 librt has freed what the number leads to, and might free it again */
	if (!libc_is_before("2.34"))
		CHECK_EQ(timer_delete(id), -1);
	CHECK_EQ(alarm(100), 0);
	CHECK(alarm(0) > 90);
}

/* main never leaves its process. */
static void spins(void *arg)
{
	(void)arg;
	with_processes();
	printf("process %ld\n", (long)syscall(SYS_gettid));
	fflush(stdout);
	for (;;)
		__asm__ volatile("");
}

static void waits(void *arg)
{
	(void)arg;
	with_processes();
	printf("process %ld\n", (long)syscall(SYS_gettid));
	fflush(stdout);
	for (;;)
		kb_sleep(1000000000);
}

static void is_gone(pid_t pid)
{
	for (int i = 0; i < 5000 && kill(pid, 0) == 0; i++)
		usleep(1000);
	CHECK(kill(pid, 0) == -1);
}

/* Kills a process: 0 the first, 1 the process that runs main. */
static void killed(int which, int sig)
{
	static struct child c;
	pid_t vp;

	child_start(&c, which ? spins : waits, NULL);
	CHECK(child_read(&c, "\n", 30000));
	vp = atoi(strstr(c.text, "process ") + 8);
	CHECK_EQ(kill(which ? vp : c.pid, sig), 0);
	child_end(&c, 10000);
	child_killed(&c, sig);
	is_gone(vp);
}

static void *executes(void *arg)
{
	CHECK_EQ(execl("/nowhere/at/all", "all", NULL), -1);
	CHECK_EQ(errno, ENOENT);
	CHECK_EQ(execl("/tmp", "tmp", NULL), -1);
	CHECK_EQ(errno, EACCES);
	execl("/bin/sh", "sh", "-c", "echo number $$; exit 6", NULL);
	CHECK(!"executed");
	return arg;
}

/* The program that is executed has the number of the program before, and nothing else is left of
 * that. */
static void becomes(void *arg)
{
	kb_thread_t t;

	(void)arg;
	with_processes();
	CHECK_EQ(kb_thread_create(&t, NULL, executes, NULL), 0);
	kb_thread_join(t, NULL);
}

static void run(void (*fn)(void *), int status)
{
	static struct child c;

	child_run(&c, fn, NULL);
	if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
		SKIP("no process bodies here");
	child_exited(&c, status);
}

int main(void)
{
	static struct child c;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	run(numbers, 23);
	run(from_thread, 24);
	run(signals, 0);
	run(timers, 0);
	run(children, 0);
	child_run(&c, becomes, NULL);
	child_exited(&c, 6);
	CHECK(strstr(c.text, "number ") && atoi(strstr(c.text, "number ") + 7) == c.pid);
	child_run(&c, aborts, NULL);
	child_killed(&c, SIGABRT);
	for (int i = 0; i < 10; i++) {
		child_run(&c, kills_itself, i % 2 ? &c : NULL);
		child_killed(&c, SIGKILL);
	}
	killed(0, SIGTERM);
	killed(0, SIGKILL);
	killed(1, SIGKILL);
	return 0;
}
