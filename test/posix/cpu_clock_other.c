/* The CPU clock of another thread, by pthread_getcpuclockid. A thread that computes has used its
 * time, a thread that waits or sleeps has used none, and no clock goes back. clock_nanosleep waits
 * until that much time is used. A thread that has ended has no clock. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>

static int enough;
static sem_t over;

static void *computes(void *arg)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		cpu_compute();
	return arg;
}

static void *waits(void *arg)
{
	sem_wait(&over);
	return arg;
}

static void *sleeps(void *arg)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		usleep(2000);
	return arg;
}

static void watch(clockid_t clock, int64_t ns)
{
	int64_t last = cpu_of(clock), until = last + ns;

	while (last < until) {
		int64_t now = cpu_of(clock);

		CHECK(now >= last);
		last = now;
		usleep(1000);
	}
}

static void wait_for(clockid_t clock)
{
	struct timespec half = { 0, 50 * MS }, at;
	int64_t before = cpu_of(clock);

	CHECK_EQ(clock_nanosleep(clock, 0, &half, NULL), 0);
	CHECK(cpu_of(clock) - before >= 50 * MS);
	before = cpu_of(clock) + 20 * MS;
	at = (struct timespec){ before / 1000000000, before % 1000000000 };
	CHECK_EQ(clock_nanosleep(clock, TIMER_ABSTIME, &at, NULL), 0);
	CHECK(cpu_of(clock) >= before);
}

static void try_others(clockid_t clock, clockid_t own)
{
	struct timespec t = { 1, 0 };
	timer_t timer;

	CHECK_EQ(clock_getres(clock, &t), 0);
	CHECK(t.tv_sec == 0 && t.tv_nsec > 0);
	CHECK_EQ(clock_getres(clock, NULL), 0);
	CHECK_EQ(clock_settime(clock, &t), -1);
	CHECK(errno == EPERM || errno == EINVAL);
	CHECK_EQ(clock_nanosleep(own, 0, &t, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &t, NULL), EINVAL);
	if (timer_create(clock, NULL, &timer) == 0)
		CHECK_EQ(timer_delete(timer), 0);
	else
		CHECK_EQ(errno, ENOTSUP);
	CHECK_EQ(syscall(SYS_clock_gettime, clock, &t), 0);
	CHECK(t.tv_sec * 1000000000ll + t.tv_nsec <= cpu_of(clock));
}

int main(void)
{
	clockid_t clock[3], own;
	int64_t before[3], mine;
	struct timespec t;
	pthread_t id[3];

	sem_init(&over, 0, 0);
	CHECK_EQ(pthread_create(&id[0], NULL, computes, NULL), 0);
	CHECK_EQ(pthread_create(&id[1], NULL, waits, NULL), 0);
	CHECK_EQ(pthread_create(&id[2], NULL, sleeps, NULL), 0);
	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &own), 0);
	mine = cpu_of(own);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_getcpuclockid(id[i], &clock[i]), 0);
		before[i] = cpu_of(clock[i]);
	}
	CHECK(clock[0] != clock[1] && clock[1] != clock[2] && clock[0] != own);
	watch(clock[0], 200 * MS);
	CHECK(cpu_of(clock[1]) - before[1] < 40 * MS);
	CHECK(cpu_of(clock[2]) - before[2] < 100 * MS);
	CHECK(cpu_of(own) - mine < 100 * MS);
	CHECK(cpu_own() >= mine && cpu_of(own) >= mine);
	wait_for(clock[0]);
	try_others(clock[0], own);
	__atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
	sem_post(&over);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_join(id[i], NULL), 0);
		CHECK_EQ(clock_gettime(clock[i], &t), -1);
		CHECK_EQ(errno, EINVAL);
	}
	return 0;
}
