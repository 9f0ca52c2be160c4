/* posix/thread: pthread_create where code must not be written to, and where the system has no
 * processes left. It returns at most EAGAIN, and when there are processes again the program has its
 * threads, children and signals.
 * matrix: vps=1,2 sched=rotator */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "core/child.h"
#include "core/refusals.h"

enum { THREADS = 4, LIMITS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int handled;
static int sum;

static void *adds(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	sum++;
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	return arg;
}

static void on_signal(int sig)
{
	handled = sig;
}

static void has_a_child(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(7);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void works(void)
{
	pthread_t t[THREADS];

	sum = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, adds, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(sum, THREADS);
	has_a_child();
	CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	while (!handled)
		usleep(1000);
}

static void code_is_fixed(void *unused)
{
	(void)unused;
	if (refuse_new_code())
		works();
}

static void no_processes(void *limit)
{
	pthread_t t;
	int e;

	if (!become(nobody_of(getpid())))
		return;
	allow_processes(*(rlim_t *)limit);
	for (int i = 0; i < 3; i++) {
		e = pthread_create(&t, NULL, adds, NULL);
		CHECK(e == 0 || e == EAGAIN);
		if (e == 0)
			CHECK_EQ(pthread_join(t, NULL), 0);
	}
	allow_processes(MANY);
	works();
}

int main(void)
{
	static struct child c;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* and want the rights that the test gives up */
	SKIP("sanitizers have kernel threads of their own");
#endif
	child_run(&c, code_is_fixed, NULL);
	child_exited(&c, 0);
	for (rlim_t limit = 1; limit <= LIMITS; limit++) {
		child_run(&c, no_processes, &limit);
		child_exited(&c, 0);
	}
	return 0;
}
