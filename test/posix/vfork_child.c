/* posix/vfork: calls that a child of vfork makes before its exec, in its parent's memory, concern
 * the child only: masks, actions, closed descriptors. Programs block all signals around vfork, as
 * CPython does, and miss no signal afterwards. Further threads wait for these descriptors
 * meanwhile. */
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 30 };

static int ends[2], there[2];
static atomic_int told;

static void handler(int sig)
{
	(void)sig;
	told++;
}

static void childs(int sig)
{
	(void)sig;
}

/* Waits all the time for the descriptors that the children close. */
static void *waits(void *arg)
{
	char c;

	CHECK_EQ(write(there[1], "x", 1), 1);
	CHECK_EQ(read(ends[0], &c, 1), 1);
	CHECK_EQ(c, 'e');
	return arg;
}

/* Changes only state that every system has; the parent may see none of it. */
static void __attribute__((noinline)) in_child(const sigset_t *old)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, other = { .sa_handler = childs };

	if (sigaction(SIGPIPE, &plain, NULL) || sigaction(SIGUSR1, &other, NULL) || sigaction(SIGURG, &plain, NULL) ||
	    sigaction(SIGUSR2, NULL, &other) || other.sa_handler != handler)
		_exit(2);
	if (pthread_sigmask(SIG_SETMASK, old, NULL))
		_exit(3);
	if (close(ends[0]) || dup2(there[1], ends[1]) != ends[1])
		_exit(4);
	execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
	_exit(5);
}

static void one_child(void)
{
	sigset_t all, old, now;
	struct sigaction is;
	int status, before = told;
	pid_t pid;

	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, &old), 0);
	pid = vfork();
	if (pid == 0)
		in_child(&old);
	CHECK(pid > 0);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
	CHECK(sigismember(&now, SIGCHLD) == 1 && sigismember(&now, SIGUSR1) == 1);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 7);
	CHECK_EQ(sigaction(SIGPIPE, NULL, &is), 0);
	CHECK(is.sa_handler == SIG_IGN);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &is), 0);
	CHECK(is.sa_handler == handler);
	/* that of the child, and this, come while it waits for nothing else */
	while (told == before)
		poll(NULL, 0, 10);
	before = told;
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	while (told == before)
		poll(NULL, 0, 10);
}

/* A child of the child: each returns to its own caller. */
static int __attribute__((noinline)) inner(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(9);
	return pid > 0 ? 3 : 0;
}

static void nested(void)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0)
		_exit(inner() + 1);
	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(WEXITSTATUS(status), 4);
}

static void *makes(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		one_child();
		nested();
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART }, ignore = { .sa_handler = SIG_IGN };
	pthread_t waiter, maker;
	char c;

	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(pipe(there), 0);
	CHECK_EQ(sigaction(SIGCHLD, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGPIPE, &ignore, NULL), 0);
	CHECK_EQ(pthread_create(&waiter, NULL, waits, NULL), 0);
	CHECK_EQ(read(there[0], &c, 1), 1);
	makes(NULL);
	CHECK_EQ(pthread_create(&maker, NULL, makes, NULL), 0);
	CHECK_EQ(pthread_join(maker, NULL), 0);
	CHECK_EQ(write(ends[1], "e", 1), 1);
	CHECK_EQ(pthread_join(waiter, NULL), 0);
	return 0;
}
