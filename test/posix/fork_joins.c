/* posix/thread: in a child of fork the parent's further threads, which do not exist there, are as
 * on libc: they are joined at once, without a result unless they had ended before, and only once;
 * signals, names, clocks and policies are refused. So the end of a thread pool, by which a child's
 * exit waits for its workers, does not wait for ever. */
#define _GNU_SOURCE
#include "test.h"
#include "libc_age.h"
#include "cancel_late.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_t sleeper, runner, ended, blocked, forker;
static char marks[4];
enum { STACK = 256 << 10 };
enum { SLEEPER, RUNNER, ENDED, BLOCKED }; /* each thread gets its mark, and returns it */
static int ends[2];
static volatile int over, runs;
static volatile pid_t number; /* of the ended thread */

static void *sleeps(void *arg)
{
	while (!over)
		usleep(20000);
	return arg;
}

static void *computes(void *arg)
{
	while (!over)
		runs = 1;
	return arg;
}

static void *reads(void *arg)
{
	char c;

	CHECK_EQ(read(ends[0], &c, 1), 1);
	return arg;
}

static void *nothing(void *arg)
{
	number = (pid_t)syscall(SYS_gettid);
	return arg;
}

static bool has_ended(void)
{
	return number && syscall(SYS_tgkill, getpid(), number, 0) == -1 && errno == ESRCH;
}

static int timed_join(pthread_t t, void **result)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += 100;
	return pthread_timedjoin_np(t, result, &at);
}

static void asks(pthread_t t)
{
	struct sched_param p = { 0 };
	clockid_t clock;
	char name[16];
	int policy;

	CHECK(pthread_kill(t, 0) != 0);
	CHECK(pthread_kill(t, SIGUSR1) != 0);
	CHECK_EQ(pthread_getname_np(t, name, sizeof name), ENOENT);
	CHECK_EQ(pthread_getschedparam(t, &policy, &p), ESRCH);
	CHECK_EQ(pthread_setschedparam(t, SCHED_OTHER, &p), ESRCH);
	CHECK_EQ(pthread_getcpuclockid(t, &clock), ESRCH);
}

/* The exit of a program whose thread pool is a static object. */
static void ends_pool(void)
{
	void *result = &result;

	over = 1;
	CHECK_EQ(pthread_join(sleeper, &result), 0);
	CHECK(result == NULL);
	CHECK_EQ(pthread_join(runner, NULL), 0);
	CHECK_EQ(timed_join(blocked, &result), 0);
	CHECK(result == NULL);
}

static void in_child(void)
{
	void *result = NULL;

	CHECK_EQ(pthread_kill(pthread_self(), 0), 0);
	CHECK_EQ(pthread_join(pthread_self(), NULL), EDEADLK);
	asks(sleeper);
	asks(runner);
	asks(blocked);
	CHECK_EQ(cancel_late(sleeper), 0);
	CHECK_EQ(pthread_tryjoin_np(ended, &result), 0);
	CHECK(result == &marks[ENDED]);
	CHECK_EQ(atexit(ends_pool), 0);
	exit(0);
}

static void forks(void)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		in_child();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void *forks_apart(void *arg)
{
	int status;
	pid_t child;

	forks();
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK_EQ(pthread_detach(pthread_self()), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	return arg;
}

static void join(pthread_t t, void *expected)
{
	void *result;

	CHECK_EQ(found_late(pthread_kill(t, 0)), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == expected);
}

/* Makes threads on small stacks: libc keeps the stacks of the parent's threads for new threads, and
 * unmaps some if there are many. */
static void make(pthread_t *id, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, STACK), 0);
	CHECK_EQ(pthread_create(id, &attr, fn, arg), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

int main(void)
{
	if (!under_kochab() && !libc_is_before("2.42"))
		SKIP("libc after 2.41 waits for a thread that has not come along, "
			"for ever, and answers as if it ran");
	CHECK_EQ(pipe(ends), 0);
	make(&sleeper, sleeps, &marks[SLEEPER]);
	make(&runner, computes, &marks[RUNNER]);
	make(&blocked, reads, &marks[BLOCKED]);
	make(&ended, nothing, &marks[ENDED]);
	while (!runs || !has_ended())
		sched_yield();
	usleep(20000);
	forks();
	make(&forker, forks_apart, NULL);
	join(forker, NULL);
	over = 1;
	CHECK_EQ(write(ends[1], "x", 1), 1);
	join(sleeper, &marks[SLEEPER]);
	join(runner, &marks[RUNNER]);
	join(blocked, &marks[BLOCKED]);
	if (!libc_is_before("2.35"))
		CHECK_EQ(pthread_kill(ended, 0), 0);
	CHECK_EQ(pthread_join(ended, NULL), 0);
	return 0;
}
