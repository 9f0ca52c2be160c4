/* The options contain and on_crash under the drop-in: mutexes that are not robust, and
 * readers-writer locks, of crashed threads are unlocked for the waiters, or end the program.
 * Waiters sleep already, or come through a condition variable, or come later.
 * matrix: run-only */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/crashers.h"
#include "test.h"

enum { WAITERS = 6 };
static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int locked, crash_now;

static void *crashes_holding(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	locked = 1;
	while (!crash_now)
		sched_yield();
	return writes(arg);
}

static void *wants(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	return arg;
}

static void *waits(void *arg)
{
	struct timespec until = test_in_ms(CLOCK_REALTIME, 20);

	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &until), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	return arg;
}

static void crash_with(int type)
{
	pthread_mutexattr_t a;
	pthread_t t, w[WAITERS];

	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, type);
	CHECK_EQ(pthread_mutex_init(&mutex, &a), 0);
	locked = crash_now = 0;
	for (int i = 0; i < WAITERS; i += 2)
		CHECK_EQ(pthread_create(&w[i], NULL, waits, NULL), 0);
	usleep(2000);
	CHECK_EQ(pthread_create(&t, NULL, crashes_holding, NULL), 0);
	while (!locked)
		sched_yield();
	for (int i = 1; i < WAITERS; i += 2)
		CHECK_EQ(pthread_create(&w[i], NULL, wants, NULL), 0);
	usleep(2000);
	crash_now = 1;
	CHECK_EQ(pthread_join(t, NULL), EOWNERDEAD);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(w[i], NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, crashes_holding, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
}

static pthread_rwlock_t rwlock;

static void *crashes_in_rwlock(void *writer)
{
	CHECK_EQ(writer ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock), 0);
	locked = 1;
	while (!crash_now)
		sched_yield();
	return writes(NULL);
}

static void *writes_rwlock(void *arg)
{
	CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	return arg;
}

static void crash_in_rwlock(void *writer)
{
	pthread_t t, w[WAITERS];

	CHECK_EQ(pthread_rwlock_init(&rwlock, NULL), 0);
	locked = crash_now = 0;
	CHECK_EQ(pthread_create(&t, NULL, crashes_in_rwlock, writer), 0);
	while (!locked)
		sched_yield();
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_create(&w[i], NULL, writes_rwlock, NULL), 0);
	usleep(2000);
	crash_now = 1;
	CHECK_EQ(pthread_join(t, NULL), EOWNERDEAD);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(w[i], NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, crashes_in_rwlock, writer), 0);
	CHECK_EQ(pthread_join(t, NULL), EOWNERDEAD);
	CHECK_EQ(pthread_rwlock_trywrlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_destroy(&rwlock), 0);
}

static int run_with(const char *on_crash, char **argv)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		setenv("KOCHAB_CONTAIN", "1", 1);
		setenv("KOCHAB_ON_CRASH", on_crash, 1);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

int main(int argc, char **argv)
{
	char *rwlock_only[] = { argv[0], "rwlock", NULL };
	int status;

	if (getenv("KOCHAB_CONTAIN")) {
		crash_in_rwlock(NULL);
		if (argc > 1) {
			crash_in_rwlock(argv);
			return 0;
		}
		crash_with(PTHREAD_MUTEX_NORMAL);
		crash_with(PTHREAD_MUTEX_RECURSIVE);
		crash_with(PTHREAD_MUTEX_ERRORCHECK);
		return 0;
	}
	status = run_with("release", argv);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	status = run_with("abort", argv);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	status = run_with("release", rwlock_only);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	status = run_with("abort", rwlock_only);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	return 0;
}
