/* posix/standin_libc with the option contain: threads wait at a process-shared condition variable, and the
 * process that runs them is killed. The next signal wakes them as if nothing had happened, and no
 * process waits for the dead process. With a time limit, by either clock, they get ETIMEDOUT in
 * time.
 * matrix: run-only
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/child.h"

enum { WAITERS = 3, KILLS = 2 };

static pthread_mutex_t m;
static pthread_cond_t c;
static int turn, waiting, passed;

static void *waits(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	for (int i = 1; i <= KILLS + 1; i++) {
		waiting++;
		while (turn < i)
			CHECK_EQ(pthread_cond_wait(&c, &m), 0);
		passed++;
	}
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return arg;
}

static void until(const int *what, int n)
{
	int is;

	do {
		usleep(2000);
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		is = *what;
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	} while (is < n);
}

static void make(void)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;

	CHECK(pthread_mutexattr_init(&ma) == 0 && pthread_condattr_init(&ca) == 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED), 0);
	CHECK(pthread_mutex_init(&m, &ma) == 0 && pthread_cond_init(&c, &ca) == 0);
}

/* Returns the process that runs the caller. */
static pid_t process(void)
{
	char number[32] = "";

	CHECK(readlink("/proc/self", number, sizeof number - 1) > 0);
	return atoi(number);
}

static void runs_out(int clock)
{
	pthread_condattr_t ca;
	struct timespec soon;
	pthread_cond_t never;

	CHECK_EQ(pthread_condattr_init(&ca), 0);
	CHECK_EQ(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_condattr_setclock(&ca, clock), 0);
	CHECK_EQ(pthread_cond_init(&never, &ca), 0);
	CHECK_EQ(clock_gettime(clock, &soon), 0);
	soon.tv_sec++;
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	for (int e = 0; e != ETIMEDOUT;) {
		e = pthread_cond_timedwait(&never, &m, &soon);
		CHECK(e == 0 || e == ETIMEDOUT);
	}
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_cond_destroy(&never), 0);
}

/* The process of the only VP is killed: it contains all kernel threads that wait. */
static void program(void)
{
	pthread_t t[WAITERS];

	make();
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits, NULL), 0);
	for (int i = 1; i <= KILLS + 1; i++) {
		until(&waiting, i * WAITERS);
		usleep(20000);
		if (i <= KILLS) {
			CHECK(process() != getpid());
			CHECK_EQ(kill(process(), SIGKILL), 0);
		}
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		turn = i;
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
		CHECK_EQ(pthread_cond_broadcast(&c), 0);
		until(&passed, i * WAITERS);
	}
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	runs_out(CLOCK_REALTIME);
	runs_out(CLOCK_MONOTONIC);
}

static void execute(void *unused)
{
	char *argv[] = { (char *)"program", (char *)"child", NULL };

	(void)unused;
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_ON_KILL", "spare", 1);
	setenv("KOCHAB_VPS", "1", 1);
	execv("/proc/self/exe", argv);
	_exit(1);
}

int main(int argc, char **argv)
{
	static struct child c;

	(void)argv;
	if (argc > 1) {
		program();
		return 21;
	}
	child_run(&c, execute, NULL);
	if (strstr(c.text, "virtual processors cannot be processes") || strstr(c.text, "trace"))
		SKIP("no processes here that may be killed");
	child_exited(&c, 21);
	return 0;
}
