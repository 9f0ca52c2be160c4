/* os/lock: two kernel threads are the first to use objects, at the same moment, on a single
 * processor: a thread of the lowest weight, and a thread with a real-time priority that comes while
 * the former is amid the start. The latter waits in the kernel and does not yield: a yield gives
 * the processor to no thread of a lower priority. In many processes, each from the start. */
/* matrix: none */
/* timeout: 120 */
#define _GNU_SOURCE
#include <kochab/kochab.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 100, MOST_US = 200000 };

static kb_mutex_t mutex;
static kb_sem_t sem;

static void uses(void)
{
	kb_mutex_lock(&mutex);
	kb_mutex_unlock(&mutex);
	kb_sem_post(&sem);
	CHECK_EQ(kb_sem_wait(&sem), 0);
}

static void *low(void *arg)
{
	setpriority(PRIO_PROCESS, 0, 19);
	uses();
	return arg;
}

static void *high(void *delay)
{
	struct sched_param p = { .sched_priority = 10 };
	struct timespec t = { 0, (long)delay };
	struct rusage used;

	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &p), 0);
	nanosleep(&t, NULL);
	uses();
	/* it has slept: a second of yielding is the part of every second that the kernel leaves it */
	CHECK_EQ(getrusage(RUSAGE_THREAD, &used), 0);
	CHECK(used.ru_utime.tv_sec + used.ru_stime.tv_sec == 0 &&
		used.ru_utime.tv_usec + used.ru_stime.tv_usec < MOST_US);
	return NULL;
}

static void child(long delay)
{
	pthread_t a, b;

	CHECK_EQ(pthread_create(&b, NULL, high, (void *)delay), 0);
	CHECK_EQ(pthread_create(&a, NULL, low, NULL), 0);
	CHECK_EQ(pthread_join(a, NULL), 0);
	CHECK_EQ(pthread_join(b, NULL), 0);
	_exit(0);
}

int main(void)
{
	struct sched_param p = { .sched_priority = 10 }, none = { 0 };
	cpu_set_t one;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer's own locks yield");
#endif
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setscheduler(0, SCHED_FIFO, &p) || sched_setaffinity(0, sizeof one, &one))
		SKIP("no real-time priority is to be had");
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			child(1000 + i * 2000L);
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	return 0;
}
