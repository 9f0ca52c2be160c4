/* A debugger stops a kernel thread at a time, each for some milliseconds, while threads compute,
 * sleep and talk through pipes. Nothing is lost, no call ends with EINTR, and all threads end.
 * matrix: vps=1,2 sched=rotator,steal */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 3, HOGS = 2, ROUNDS = 40, STOP_US = 3000, LONG = 60 };

/* ---- the program that is stopped ---------------------------------------------------------- */

static int there[PAIRS][2], back[PAIRS][2];
static volatile int over;

static void *asks(void *arg)
{
	long i = (long)arg;
	struct pollfd p = { back[i][0], POLLIN, 0 };

	for (int n = 0; n < ROUNDS; n++) {
		char c = (char)n, d = 0;

		CHECK_EQ(write(there[i][1], &c, 1), 1);
		CHECK_EQ(poll(&p, 1, -1), 1);
		CHECK_EQ(read(back[i][0], &d, 1), 1);
		CHECK_EQ(d, c);
		if (n % 8 == 0)
			CHECK_EQ(usleep(500), 0);
	}
	return NULL;
}

static void *answers(void *arg)
{
	long i = (long)arg;
	char c;

	for (int n = 0; n < ROUNDS; n++) {
		CHECK_EQ(read(there[i][0], &c, 1), 1);
		CHECK_EQ(write(back[i][1], &c, 1), 1);
	}
	return NULL;
}

static void *computes(void *unused)
{
	while (!over)
		;
	return unused;
}

static void work(void)
{
	pthread_t hog[HOGS], pair[2 * PAIRS];

	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(pthread_create(&hog[i], NULL, computes, NULL), 0);
	for (long i = 0; i < PAIRS; i++) {
		CHECK(pipe(there[i]) == 0 && pipe(back[i]) == 0);
		CHECK_EQ(pthread_create(&pair[2 * i], NULL, asks, (void *)i), 0);
		CHECK_EQ(pthread_create(&pair[2 * i + 1], NULL, answers, (void *)i), 0);
	}
	for (int i = 0; i < 2 * PAIRS; i++)
		CHECK_EQ(pthread_join(pair[i], NULL), 0);
	over = 1;
	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(pthread_join(hog[i], NULL), 0);
}

/* ---- the debugger ------------------------------------------------------------------------- */

/* False: tracing is not allowed here. A thread that ends meanwhile is no error. */
static int stop(pid_t tid, int *status)
{
	const struct timespec nap = { 0, STOP_US * 1000 };
	static int allowed;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return allowed || errno != EPERM;
	allowed = 1;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	CHECK_EQ(waitpid(tid, status, __WALL), tid);
	if (WIFSTOPPED(*status)) {
		nanosleep(&nap, NULL);
		/* a signal that the thread was about to get is given back */
		int sig = *status >> 16 ? 0 : WSTOPSIG(*status);
		/* the process has ended meanwhile: the thread is gone once its end has been seen here */
		if (ptrace(PTRACE_DETACH, tid, NULL, (void *)(long)sig) != 0)
			CHECK_EQ(waitpid(tid, status, __WALL), tid);
	}
	return 1;
}

/* Stops each thread in turn. True: the process is over. */
static int stop_each(pid_t pid, int *status)
{
	char name[64];
	struct dirent *e;
	DIR *d;

	snprintf(name, sizeof name, "/proc/%d/task", pid);
	d = opendir(name);
	while (d && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name);

		if (tid <= 0)
			continue;
		if (!stop(tid, status)) {
			kill(pid, SIGKILL);
			waitpid(pid, status, 0);
			SKIP("nobody may trace here");
		}
		if (tid == pid && (WIFEXITED(*status) || WIFSIGNALED(*status))) {
			closedir(d);
			return 1;
		}
	}
	if (d)
		closedir(d);
	return waitpid(pid, status, WNOHANG) == pid;
}

__attribute__((unused)) static void under_a_debugger(void)
{
	uint64_t end = test_now_ns() + LONG * 1000000000ull;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		work();
		exit(42);
	}
	CHECK(pid > 0);
	while (!stop_each(pid, &status))
		CHECK(test_now_ns() < end);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 42);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("sanitizers look for leaks as a debugger does, and there is one already");
#else
	under_a_debugger();
	return 0;
#endif
}
