/* A thread that blocks in a system call, or keeps its kernel thread, and comes back, perhaps on
 * another kernel thread: its clock goes on, and is not advanced by other threads meanwhile. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

static int enough;

static void *computes(void *arg)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		cpu_compute();
	return arg;
}

/* Sleeps without the library's knowledge. */
static void sleep_raw(long ms)
{
	struct timespec t = { 0, ms * MS };

	while (syscall(SYS_ppoll, NULL, 0, &t, NULL, 8) != 0)
		;
}

static void go(int64_t ns)
{
	int64_t begun = cpu_own(), last = begun;

	for (int i = 0; i < 10; i++) {
		int64_t now;

		sleep_raw(5);
		now = cpu_own();
		CHECK(now >= last);
		last = now;
	}
	CHECK(last - begun < 100 * MS);
	cpu_use_and(ns, false);
	CHECK(cpu_own() - begun >= ns);
}

static void *blocks(void *arg)
{
	CHECK(cpu_own() < NEAR_NOTHING);
	go(20 * MS);
	/* it keeps its kernel thread */
	CHECK_EQ(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 0), 0);
	go(20 * MS);
	CHECK(cpu_own() >= 40 * MS);
	return arg;
}

int main(void)
{
	pthread_t t[4];

	cpu_use_alone(300 * MS);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i < 2 ? computes : blocks, NULL), 0);
	for (int i = 2; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	__atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
