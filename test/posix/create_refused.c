/* posix/thread: pthread_create where code may not be written to, and where the system has no processes left: it says
 * EAGAIN at most, and once there are some the program has its threads, children and signals.
 * matrix: vps=1,2 sched=rotator */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

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

static void child(void)
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
	child();
	CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	while (!handled)
		usleep(1000);
}

static void code_is_fixed(rlim_t unused)
{
	(void)unused;
	if (!prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)) /* Linux 6.3 */
		works();
}

static void no_processes(rlim_t limit)
{
	uid_t nobody = 1000000 + (uid_t)getpid(); /* nobody else is */
	struct rlimit l = { limit, 1000 };
	pthread_t t;
	int e;

	if (setresuid(nobody, nobody, nobody))
		return;
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &l), 0);
	for (int i = 0; i < 3; i++) {
		e = pthread_create(&t, NULL, adds, NULL);
		CHECK(e == 0 || e == EAGAIN);
		if (e == 0)
			CHECK_EQ(pthread_join(t, NULL), 0);
	}
	l.rlim_cur = l.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &l), 0);
	works();
}

static void in_child(void (*fn)(rlim_t), rlim_t arg)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		fn(arg);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("sanitizers have kernel threads of their own"); /* and want the rights that the test gives up */
#endif
	in_child(code_is_fixed, 0);
	for (rlim_t limit = 1; limit <= LIMITS; limit++)
		in_child(no_processes, limit);
	return 0;
}
