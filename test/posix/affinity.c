/* An affinity is obeyed, inherited by the threads that a thread creates, and not seen by any
 * further thread, however it is set: by the thread, in the attributes with which it is made, by
 * another thread before and after it runs, by number. An affinity that is reset is gone. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKS = 40, TIMES = 20 };

static cpu_set_t all;
static int low = -1, high = -1;

static cpu_set_t only(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

static void has(pthread_t t, const cpu_set_t *expected)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	CHECK_EQ(pthread_getaffinity_np(t, sizeof(set), &set), 0);
	CHECK(CPU_EQUAL(&set, expected));
}

static void has_number(pid_t number, const cpu_set_t *expected)
{
	unsigned long bits[1024 / 8 / sizeof(long)] = { 0 };
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	CHECK_EQ(sched_getaffinity(number, sizeof(set), &set), 0);
	CHECK(CPU_EQUAL(&set, expected));
	CHECK(syscall(SYS_sched_getaffinity, number, sizeof(bits), bits) > 0);
	CHECK(!memcmp(bits, expected, sizeof(*expected)));
}

static void stays_on(int cpu)
{
	for (int i = 0; i < LOOKS; i++) {
		for (volatile int n = 0; n < 20000; n++)
			;
		CHECK_EQ(sched_getcpu(), cpu);
		if (i % 3)
			sched_yield();
		else
			usleep(200);
	}
}

static void *is_on(void *cpu)
{
	cpu_set_t set = only(*(int *)cpu);

	CHECK_EQ(sched_getcpu(), *(int *)cpu);
	has(pthread_self(), &set);
	has_number(0, &set);
	has_number(gettid(), &set);
	stays_on(*(int *)cpu);
	return cpu;
}

static void *is_free(void *arg)
{
	has(pthread_self(), &all);
	has_number(0, &all);
	return arg;
}

static void run(const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, a, fn, arg), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void child_is_on(int cpu)
{
	cpu_set_t set = only(cpu), childs;
	pid_t pid = fork();
	char line[128] = "";
	int status;
	FILE *f;

	if (!pid)
		_exit(sched_getaffinity(0, sizeof(childs), &childs) || !CPU_EQUAL(&childs, &set));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	f = popen("grep Cpus_allowed_list /proc/self/status", "r");
	CHECK(f != NULL && fgets(line, sizeof(line), f));
	pclose(f);
	CHECK_EQ(atoi(strchr(line, ':') + 1), cpu);
	CHECK(strpbrk(line, ",-") == NULL);
}

/* ---- by the thread itself -------------------------------------------------------------------- */

static int set_by(int way, const cpu_set_t *set)
{
	switch (way) {
	case 0:
		return pthread_setaffinity_np(pthread_self(), sizeof(*set), set);
	case 1:
		return sched_setaffinity(0, sizeof(*set), set);
	case 2:
		return sched_setaffinity(gettid(), sizeof(*set), set);
	default:
		return (int)syscall(SYS_sched_setaffinity, syscall(SYS_gettid), sizeof(*set), set);
	}
}

static void *pins_itself(void *way)
{
	cpu_set_t set = only(high);

	CHECK_EQ(set_by(*(int *)way, &set), 0);
	is_on(&high);
	run(NULL, is_on, &high);
	child_is_on(high);
	/* resets the affinity */
	CHECK_EQ(set_by(*(int *)way, &all), 0);
	is_free(NULL);
	run(NULL, is_free, NULL);
	return way;
}

static void by_itself(void)
{
	for (int way = 0; way < 4; way++) {
		run(NULL, pins_itself, &way);
		run(NULL, is_free, NULL);
		is_free(NULL);
	}
	pins_itself(&(int){ 0 });
}

/* ---- by another thread ----------------------------------------------------------------------- */

static sem_t begun, over;
static volatile int wanted, stop, busy;
static volatile pid_t number;

/* busy: the thread calls no function of the library. */
static void *watches(void *arg)
{
	bool pinned = false;

	number = gettid();
	sem_post(&begun);
	/* looks once more after the stop: on a busy machine it may not have run before */
	for (bool last = false; !last;) {
		last = stop;
		if (wanted >= 0 && sched_getcpu() == wanted)
			pinned = true;
		CHECK(!pinned || sched_getcpu() == wanted);
		if (!busy)
			usleep(500);
	}
	CHECK(pinned || wanted < 0);
	if (wanted >= 0)
		run(NULL, is_on, (void *)&wanted);
	sem_post(&over);
	return arg;
}

static void by_another(bool computes, bool by_number)
{
	cpu_set_t set = only(high);
	pthread_t t;

	wanted = -1;
	stop = 0;
	busy = computes;
	CHECK_EQ(pthread_create(&t, NULL, watches, NULL), 0);
	while (sem_wait(&begun))
		;
	if (by_number)
		CHECK_EQ(sched_setaffinity(number, sizeof(set), &set), 0);
	else
		CHECK_EQ(pthread_setaffinity_np(t, sizeof(set), &set), 0);
	has(t, &set);
	has_number(number, &set);
	is_free(NULL);
	usleep(20000);
	wanted = high;
	usleep(20000);
	stop = 1;
	while (sem_wait(&over))
		;
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *waits_first(void *arg)
{
	while (sem_wait(&begun))
		;
	is_on(&low);
	return arg;
}

static void while_it_waits(void)
{
	cpu_set_t set = only(low), none;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, waits_first, NULL), 0);
	usleep(2000);
	CPU_ZERO(&none);
	CHECK_EQ(pthread_setaffinity_np(t, sizeof(none), &none), EINVAL);
	has(t, &all);
	CHECK_EQ(pthread_setaffinity_np(t, sizeof(set), &set), 0);
	has(t, &set);
	sem_post(&begun);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- from the beginning; invalid sets -------------------------------------------------------- */

static void from_the_beginning(void)
{
	cpu_set_t set = only(low), none;
	pthread_attr_t a;
	pthread_t t;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setaffinity_np(&a, sizeof(set), &set), 0);
	for (int i = 0; i < TIMES; i++)
		run(&a, is_on, &low);
	CHECK_EQ(pthread_attr_setaffinity_np(&a, sizeof(all), &all), 0);
	run(&a, is_free, NULL);
	CPU_ZERO(&none);
	CHECK_EQ(pthread_attr_setaffinity_np(&a, sizeof(none), &none), 0);
	CHECK_EQ(pthread_create(&t, &a, is_free, NULL), EINVAL);
	pthread_attr_destroy(&a);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(none), &none), EINVAL);
	CHECK(sched_setaffinity(0, sizeof(none), &none) == -1 && errno == EINVAL);
	CHECK(sched_setaffinity(0, sizeof(none), NULL) == -1 && errno == EFAULT);
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), 1, &none), EINVAL);
	is_free(NULL);
}

int main(void)
{
	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		low = low < 0 ? i : low;
		high = i;
	}
	if (low == high) {
		puts("needs two processors");
		return 77;
	}
	CHECK_EQ(sem_init(&begun, 0, 0), 0);
	CHECK_EQ(sem_init(&over, 0, 0), 0);
	run(NULL, is_free, NULL);
	by_itself();
	by_another(false, false);
	by_another(false, true);
	by_another(true, false);
	while_it_waits();
	from_the_beginning();
	return 0;
}
