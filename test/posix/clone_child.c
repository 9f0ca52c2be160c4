/* posix/fork: the child that a program makes by clone() with its memory and a stack of its own, as
 * some runtimes do to start programs, is a process of its own and no thread. The child waits,
 * yields, sets its mask, its actions and its identity, raises signals and closes descriptors, and
 * no other thread sees anything of that. Its parent stands still until the child has executed
 * another program or ended; other threads go on, and the child may wait for them. */
#include "test.h"
#include "libc_age.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20, STACK = 65536 };
enum way { EXECUTES, EXITS, RETURNS, IS_KILLED, KILLS_ITSELF, WAYS };

static int here[2], go[2], never[2];
static atomic_int told;
static volatile int stage; /* clone is declared as if it did not call in_child */
static sigset_t before;
static char stack[STACK] __attribute__((aligned(16)));

static void handler(int sig)
{
	(void)sig;
	told++;
}

/* Waits all the time for descriptors that the children close. */
static void *waits(void *arg)
{
	char c;

	CHECK_EQ(read(never[0], &c, 1), 1);
	return arg;
}

/* Answers children while their parent stands still. */
static void *answers(void *arg)
{
	char c;

	for (;;) {
		CHECK_EQ(read(here[0], &c, 1), 1);
		if (c == 'e')
			return arg;
		CHECK_EQ(write(go[1], "g", 1), 1);
	}
}

static void must(int ok, int line)
{
	if (!ok)
		_exit(line);
}
#define MUST(cond) must(cond, __LINE__)

static int in_child(void *arg)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, is;
	enum way way = (enum way)(intptr_t)arg;
	sigset_t set, now;
	char c;

	stage = 1;
	MUST(setpgid(0, 0) == 0 && getpgid(0) == syscall(SYS_getpid));
	MUST(setuid(getuid()) == 0 && setgid(getgid()) == 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	MUST(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGUSR2) == 1);
	MUST(raise(SIGUSR2) == 0);
	MUST(sigpending(&now) == 0 && sigismember(&now, SIGUSR2) == 1);
	usleep(1000);
	sched_yield();
	MUST(write(here[1], "c", 1) == 1 && read(go[0], &c, 1) == 1 && c == 'g');
	MUST(close(never[0]) == 0 && dup2(here[1], never[1]) == never[1]);
	MUST(sigaction(SIGUSR2, &plain, &is) == 0 && is.sa_handler == handler);
	MUST(sigaction(SIGUSR1, &plain, NULL) == 0);
	stage = 2;
	switch (way) {
	case EXECUTES:
		signal(SIGUSR2, SIG_IGN);
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		break;
	case EXITS:
		_exit(7);
	case RETURNS:
		return 7;
	case IS_KILLED:
		MUST(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
		break;
	default:
		MUST(pthread_kill(pthread_self(), SIGUSR1) == 0);
	}
	_exit(1);
}

static void one_child(enum way way)
{
	int status, got = told;
	struct sigaction is;
	sigset_t now;
	pid_t pid, group = getpgid(0);

	stage = 0;
	pid = clone(in_child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)(intptr_t)way);
	CHECK_EQ(stage, 2);
	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	if (way == IS_KILLED || way == KILLS_ITSELF) {
		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), way == IS_KILLED ? SIGUSR2 : SIGUSR1);
	} else {
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 7);
	}
	CHECK_EQ(getpgid(0), group);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
	CHECK_EQ(memcmp(&now, &before, sizeof(long)), 0);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &is), 0);
	CHECK(is.sa_handler == handler);
	CHECK_EQ(told, got);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK_EQ(told, got + 2);
}

static void *makes(void *arg)
{
	/* before 2.34 libc's own pthread_kill(pthread_self()) does not find a child like this */
	int old = !under_kochab() && libc_is_before("2.34");

	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	for (int i = 0; i < ROUNDS; i++)
		for (int way = 0; way < (old ? KILLS_ITSELF : WAYS); way++)
			one_child((enum way)way);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t waiter, answerer, maker;

	CHECK_EQ(pipe(here), 0);
	CHECK_EQ(pipe(go), 0);
	CHECK_EQ(pipe(never), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&waiter, NULL, waits, NULL), 0);
	CHECK_EQ(pthread_create(&answerer, NULL, answers, NULL), 0);
	makes(NULL);
	CHECK_EQ(pthread_create(&maker, NULL, makes, NULL), 0);
	CHECK_EQ(pthread_join(maker, NULL), 0);
	CHECK_EQ(clone(in_child, NULL, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(write(here[1], "e", 1), 1);
	CHECK_EQ(write(never[1], "e", 1), 1);
	CHECK_EQ(pthread_join(answerer, NULL), 0);
	CHECK_EQ(pthread_join(waiter, NULL), 0);
	return 0;
}
