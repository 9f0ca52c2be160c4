/* core/process_birth: where a seccomp filter takes libc's calls over the supervisor makes the
 * program's children. They have the attributes of the thread that asks, and nothing of the filter;
 * a child of vfork has the thread's memory, a child of fork a copy; attributes that would be a
 * single process's are refused.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <kochab/kochab.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/child.h"

enum { STACK = 65536, THREADS = 6, ROUNDS = 20, NICE = 5, FIVE = 5 };

extern char **environ;
static volatile int seen;
static char filters[32];

static void wants(const char *vps)
{
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_LIBCALLS", "seccomp", 1);
	setenv("KOCHAB_VPS", vps, 1);
}

/* Returns a line of a status file of the kernel's, without its name. */
static void status_line(const char *name, char *value, size_t n)
{
	FILE *f = fopen("/proc/thread-self/status", "r");
	char line[256];

	value[0] = 0;
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			snprintf(value, n, "%s", strtok(line + strlen(name) + 1, " \t\n"));
	fclose(f);
}

static void starts(const char *vps)
{
	int e;

	status_line("Seccomp_filters", filters, sizeof filters);
	wants(vps);
	e = kb_init();
	if (e == ENOTSUP)
		exit(CHILD_CANNOT);
	CHECK_EQ(e, 0);
}

static int status_of(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- attributes of a child ------------------------------------------------------------------- */

static bool has(const char *name, const char *value)
{
	char now[64];

	status_line(name, now, sizeof now);
	if (strcmp(now, value))
		fprintf(stderr, "%s is %s, not %s\n", name, now, value);
	return !strcmp(now, value);
}

/* The child executes this shell script, which checks its attributes. */
static const char *script =
	"line() { grep \"^$1:\" /proc/self/status | tr -d ' \\t' | cut -d: -f2; }\n"
	"[ \"$(nice)\" = 5 ] || exit 11\n"
	"[ \"$(line Cpus_allowed_list)\" = 0 ] || exit 12\n"
	"[ $(( 0x$(line SigBlk) >> 9 & 1 )) = 1 ] || exit 13\n"
	"[ $(( 0x$(line SigIgn) >> 16 & 1 )) = $IGNORED ] || exit 14\n"
	"[ \"$(line NoNewPrivs)\" = $PRIVILEGES ] || exit 15\n"
	"[ \"$(line Seccomp_filters)\" = \"$FILTERS\" ] || exit 16\n"
	"[ $PPID = $PROGRAM ] || exit 17\n"
	"exit 5\n";

static int executes(void)
{
	char *const words[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)script, NULL };

	execv("/bin/sh", words);
	return 127;
}

static bool is_heir(const char *name)
{
	cpu_set_t cpus;
	char now[16];
	sigset_t mask;

	CHECK_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
	CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
	CHECK_EQ(prctl(PR_GET_NAME, now, 0, 0, 0), 0);
	return CPU_COUNT(&cpus) == 1 && CPU_ISSET(0, &cpus) && getpriority(PRIO_PROCESS, 0) == NICE &&
	       sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGUSR2) == 0 &&
	       strcmp(now, name) == 0 &&
	       has("Seccomp_filters", filters);
}

static void makes_all_kinds(const char *name)
{
	char *const words[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)script, NULL };
	pid_t pid = fork();

	if (pid == 0)
		_exit(is_heir(name) && status_of(fork() ?: (_exit(3), 0)) == 3 ? executes() : 1);
	CHECK_EQ(status_of(pid), FIVE);
	pid = vfork();
	if (pid == 0)
		_exit(executes());
	CHECK_EQ(status_of(pid), FIVE);
	CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ), 0);
	CHECK_EQ(status_of(pid), FIVE);
}

static void inherits(void *unused)
{
	char number[32], privileges[32];
	sigset_t usr1;
	cpu_set_t cpu;

	(void)unused;
	status_line("NoNewPrivs", privileges, sizeof privileges);
	starts("1");
	snprintf(number, sizeof number, "%d", (int)getpid());
	setenv("PROGRAM", number, 1);
	setenv("FILTERS", filters, 1);
	setenv("PRIVILEGES", privileges, 1);
	setenv("IGNORED", "0", 1);
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	CHECK_EQ(sched_setaffinity(0, sizeof cpu, &cpu), 0);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, NICE), 0);
	CHECK_EQ(prctl(PR_SET_NAME, "parent", 0, 0, 0), 0);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &usr1, NULL), 0);
	makes_all_kinds("parent");
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), atoi(privileges));
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	setenv("PRIVILEGES", "1", 1);
	makes_all_kinds("parent");
	exit(20);
}

static void ignores_children(void *unused)
{
	(void)unused;
	starts("1");
	CHECK(signal(SIGCHLD, SIG_IGN) == SIG_DFL);
	if (fork() == 0) {
		char ignored[32];

		status_line("SigIgn", ignored, sizeof ignored);
		seen = (int)(strtoull(ignored, NULL, 16) >> (SIGCHLD - 1) & 1);
		fprintf(stderr, "ignored: %d\n", seen);
		_exit(0);
	}
	CHECK_EQ(waitpid(-1, NULL, 0), -1);
	CHECK_EQ(errno, ECHILD);
	exit(21);
}

/* ---- the memory of a child ------------------------------------------------------------------- */

static int sets(void *value)
{
	seen = (int)(intptr_t)value;
	return 7;
}

static void memory(void *unused)
{
	char *stack = malloc(STACK);
	pid_t pid;

	(void)unused;
	CHECK(stack != NULL);
	starts("2");
	pid = vfork();
	if (pid == 0) {
		seen = 1;
		_exit(6);
	}
	CHECK_EQ(seen, 1);
	CHECK_EQ(status_of(pid), 6);
	CHECK_EQ(status_of(clone(sets, stack + STACK, SIGCHLD, (void *)2)), 7);
	CHECK_EQ(seen, 1);
	CHECK_EQ(status_of(clone(sets, stack + STACK, CLONE_VM | SIGCHLD, (void *)3)), 7);
	CHECK_EQ(seen, 3);
	CHECK_EQ(status_of(clone(sets, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)4)), 7);
	CHECK_EQ(seen, 4);
	CHECK_EQ(clone(sets, stack + STACK, CLONE_VM | CLONE_SIGHAND | SIGCHLD, (void *)5), -1);
	CHECK_EQ(errno, ENOSYS);
	CHECK_EQ(seen, 4);
	exit(22);
}

/* ---- the session of a child ------------------------------------------------------------------ */

static void session(void *unused)
{
	pid_t pid;
	int status;

	(void)unused;
	starts("1");
	CHECK_EQ(setsid(), getpid());
	CHECK_EQ(getsid(0), getpid());
	CHECK_EQ(getpgrp(), getpid());
	pid = fork();
	if (pid == 0)
		_exit(getsid(0) == getppid() && getpgrp() == getppid() ? 3 : 1);
	CHECK_EQ(waitpid(0, &status, 0), pid);
	CHECK_EQ(status, 3 << 8);
	pid = fork();
	if (pid == 0)
		_exit(usleep(10000000));
	CHECK_EQ(setpgid(pid, pid), 0);
	CHECK_EQ(getpgid(pid), pid);
	CHECK_EQ(kill(-pid, SIGTERM), 0);
	CHECK_EQ(status_of(pid), -SIGTERM);
	exit(25);
}

/* ---- many at once ---------------------------------------------------------------------------- */

static pid_t copies(const char *p, char now)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(*p == now ? FIVE : 1);
	return pid;
}

static pid_t shares(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(FIVE);
	return pid;
}

static void *makes(void *arg)
{
	char *const words[] = { (char *)"sh", (char *)"-c", (char *)"exit 5", NULL };
	pid_t pid;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		char *p = malloc((size_t)i * 100 + 1);

		*p = (char)i;
		CHECK_EQ(status_of(i % 2 ? copies(p, (char)i) : shares()), FIVE);
		if (i % 4 == 0) {
			CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ), 0);
			CHECK_EQ(status_of(pid), FIVE);
		}
		free(p);
	}
	return NULL;
}

static void many(void *unused)
{
	kb_thread_t t[THREADS];

	(void)unused;
	starts("3");
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, makes, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	exit(23);
}

/* ---- refused attributes ---------------------------------------------------------------------- */

static void refuses(long nr, long a, int e)
{
	errno = 0;
	CHECK_EQ(syscall(nr, a, 0, 0, 0, 0), -1);
	CHECK_EQ(errno, e);
}

static void refusals(void *unused)
{
	(void)unused;
	starts("1");
	refuses(SYS_unshare, CLONE_FS, ENOSYS);
	refuses(SYS_setns, -1, ENOSYS);
	refuses(SYS_seccomp, 0, ENOSYS);
	refuses(SYS_prctl, PR_SET_SECCOMP, EINVAL);
	CHECK_EQ(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), strcmp(filters, "0") ? 2 : 0);
	if (getuid() == 0 && syscall(SYS_setresgid, 12345, 12345, 12345) == 0) {
		CHECK_EQ(fork(), -1);
		CHECK_EQ(errno, EPERM);
	}
	exit(24);
}

int main(void)
{
	static struct child c;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	if (!child_does(&c, memory, NULL, 22))
		SKIP("no seccomp filters here");
	child_does(&c, inherits, NULL, 20);
	child_does(&c, ignores_children, NULL, 21);
	child_said(&c, "ignored: 1");
	child_does(&c, session, NULL, 25);
	child_does(&c, many, NULL, 23);
	child_does(&c, refusals, NULL, 24);
	child_said(&c, "unshare is refused");
	return 0;
}
