/* posix/affinity: the processors of threads by their numbers, set and asked while the threads end,
 * on stacks of the program's own that go with them: each call finds the thread or says ESRCH, and
 * nobody else gets the set. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SETTERS = 2, AT_ONCE = 8, ROUNDS = 200, STACK = 256 << 10 };

static int last, over, astray;
static cpu_set_t all, one;

static void look(void)
{
	cpu_set_t mine;

	CHECK_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
	if (!CPU_EQUAL(&mine, &all))
		__atomic_add_fetch(&astray, 1, __ATOMIC_RELAXED);
}

static void *ends(void *unused)
{
	__atomic_store_n(&last, gettid(), __ATOMIC_RELAXED);
	sched_yield();
	return unused;
}

/* Nobody has its number. */
static void *is_let_alone(void *unused)
{
	look();
	sched_yield();
	look();
	return unused;
}

static void *sets(void *unused)
{
	cpu_set_t its;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		int to = __atomic_load_n(&last, __ATOMIC_RELAXED);

		if (to && sched_setaffinity(to, sizeof one, &one))
			CHECK(errno == ESRCH || errno == EAGAIN);
		if (to && sched_getaffinity(to, sizeof its, &its))
			CHECK_EQ(errno, ESRCH);
		sched_yield();
	}
	return unused;
}

static void *on_its_stack(pthread_t *id, void *(*fn)(void *))
{
	pthread_attr_t attr;
	void *low = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	CHECK(low != MAP_FAILED);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, low, STACK), 0);
	CHECK_EQ(pthread_create(id, &attr, fn, NULL), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
	return low;
}

static void round_of_threads(void)
{
	void *low[AT_ONCE];
	pthread_t id[AT_ONCE], other[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		low[i] = on_its_stack(&id[i], ends);
	for (int i = 0; i < AT_ONCE; i++) {
		CHECK_EQ(pthread_join(id[i], NULL), 0);
		CHECK_EQ(munmap(low[i], STACK), 0);
	}
	for (int i = 0; i < AT_ONCE; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, ends, NULL), 0);
	for (int i = 0; i < AT_ONCE; i++) {
		CHECK_EQ(pthread_join(id[i], NULL), 0);
		CHECK_EQ(pthread_create(&other[i], NULL, is_let_alone, NULL), 0);
	}
	for (int i = 0; i < AT_ONCE; i++)
		CHECK_EQ(pthread_join(other[i], NULL), 0);
}

/* A thread that has ended, and is not joined yet. */
static void ended(void)
{
	pthread_t id, next;
	int number;

	CHECK_EQ(pthread_create(&id, NULL, ends, NULL), 0);
	do
		number = __atomic_load_n(&last, __ATOMIC_RELAXED);
	while (!number || syscall(SYS_tgkill, getpid(), number, 0) == 0);
	usleep(10000);
	CHECK_EQ(sched_setaffinity(number, sizeof one, &one), -1);
	CHECK_EQ(errno, ESRCH);
	/* older ones of libc's have set the caller's here: 0 was the number of a thread that has ended */
	pthread_setaffinity_np(id, sizeof one, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
	CHECK_EQ(pthread_join(id, NULL), 0);
	CHECK_EQ(pthread_create(&next, NULL, is_let_alone, NULL), 0);
	CHECK_EQ(pthread_join(next, NULL), 0);
	CHECK_EQ(astray, 0);
}

int main(void)
{
	pthread_t id[SETTERS];

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	if (CPU_EQUAL(&one, &all))
		SKIP("one processor");
	ended();
	for (int i = 0; i < SETTERS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, sets, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		round_of_threads();
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < SETTERS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	CHECK_EQ(astray, 0);
	return 0;
}
