/* A thread sets something for a second thread by its number. The caller has the result at once, and
 * the second thread has the setting when it goes on, whether it waits, computes or is in a blocking
 * call. No other thread has the setting, nor does a thread that is created afterwards. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IO_OF_THREAD = 1, BEST_EFFORT = 2 << 13, NICE = 7, IO = BEST_EFFORT | 6 };
enum how { WAITS, COMPUTES, READS, HOWS };

static sem_t told, end;
static volatile pid_t number;
static volatile int stop;
static int ends[2];

static void has_it(pid_t who)
{
	CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)who), NICE);
	CHECK_EQ(sched_getscheduler(who), SCHED_BATCH);
	CHECK_EQ(syscall(SYS_ioprio_get, IO_OF_THREAD, who), IO);
}

static void lacks_it(pid_t who)
{
	CHECK(getpriority(PRIO_PROCESS, (id_t)who) != NICE);
	CHECK_EQ(sched_getscheduler(who), SCHED_OTHER);
	CHECK(syscall(SYS_ioprio_get, IO_OF_THREAD, who) != IO);
}

static void *works(void *arg)
{
	char byte;

	lacks_it(0);
	number = (pid_t)syscall(SYS_gettid);
	sem_post(&told);
	switch ((enum how)(long)arg) {
	case WAITS:
		while (sem_wait(&end))
			;
		break;
	case COMPUTES:
		while (!stop)
			;
		break;
	default:
		CHECK_EQ(read(ends[0], &byte, 1), 1);
		break;
	}
	/* a thread that computes looks up soon */
	for (int i = 0; i < 5000 && sched_getscheduler(0) != SCHED_BATCH; i++)
		usleep(1000);
	has_it(0);
	has_it(number);
	sched_yield();
	has_it(0);
	return NULL;
}

static void *after(void *arg)
{
	lacks_it(0);
	return arg;
}

static void sets(enum how how)
{
	struct sched_param p = { 0 };
	pthread_t t, other;

	stop = 0;
	CHECK_EQ(pthread_create(&t, NULL, works, (void *)(long)how), 0);
	while (sem_wait(&told))
		;
	lacks_it(number);
	CHECK_EQ(setpriority(PRIO_PROCESS, (id_t)number, NICE), 0);
	CHECK_EQ(sched_setscheduler(number, SCHED_BATCH, &p), 0);
	CHECK_EQ(syscall(SYS_ioprio_set, IO_OF_THREAD, number, IO), 0);
	has_it(number);
	lacks_it(0);
	errno = 0;
	CHECK_EQ(sched_setscheduler(number, 999, &p), -1);
	CHECK_EQ(errno, EINVAL);
	has_it(number);
	if (how == READS)
		CHECK_EQ(write(ends[1], "x", 1), 1);
	stop = 1;
	if (how == WAITS)
		sem_post(&end);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(sched_getscheduler(number), -1);
	lacks_it(0);
	CHECK_EQ(pthread_create(&other, NULL, after, NULL), 0);
	CHECK_EQ(pthread_join(other, NULL), 0);
}

int main(void)
{
	sem_init(&told, 0, 0);
	sem_init(&end, 0, 0);
	CHECK_EQ(pipe(ends), 0);
	for (enum how how = 0; how < HOWS; how++)
		sets(how);
	return 0;
}
