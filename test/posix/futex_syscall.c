/* Futexes made by syscall(): a mutex of 32 threads, with and without the private flag; time-outs, bitsets,
 * requeue; one in shared memory with a child.
 * body: both */
#include "test.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 32, TIMES = 300 };

static uint32_t word;
static int flag = FUTEX_PRIVATE_FLAG;
static volatile long n;

static long futex(uint32_t *w, int op, uint32_t v, const void *t, uint32_t *w2, uint32_t v3)
{
	return syscall(SYS_futex, w, op | flag, v, t, w2, v3);
}

static void lock(uint32_t *w)
{
	uint32_t z = 0;

	if (__atomic_compare_exchange_n(w, &z, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(w, 2, __ATOMIC_ACQUIRE))
		futex(w, FUTEX_WAIT, 2, NULL, NULL, 0);
}

static void unlock(uint32_t *w)
{
	if (__atomic_exchange_n(w, 0, __ATOMIC_RELEASE) == 2)
		futex(w, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *add(void *arg)
{
	for (int i = 0; i < TIMES; i++) {
		long seen;

		lock(&word);
		seen = n;
		if (i % 16 == 0)
			sched_yield();
		n = seen + 1;
		unlock(&word);
	}
	return arg;
}

static void crowd(void)
{
	pthread_t t[THREADS];

	n = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, add, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(n, (long)THREADS * TIMES);
}

static void times(void)
{
	struct timespec t = { 0, 20000000 };
	uint32_t w = 1;
	uint64_t start = test_now_ns();

	CHECK_EQ(futex(&w, FUTEX_WAIT, 0, NULL, NULL, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(futex(&w, FUTEX_WAIT, 1, &t, NULL, 0), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK(test_now_ns() - start >= 19000000);
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK_EQ(futex(&w, FUTEX_WAIT_BITSET, 1, &t, NULL, ~0u), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	clock_gettime(CLOCK_REALTIME, &t);
	CHECK_EQ(futex(&w, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &t, NULL, 1), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(futex(&w, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	CHECK_EQ(syscall(SYS_gettid) > 0, 1);
}

static uint32_t from, to;
static int sleeping, woken;

static void *sleep_on_it(void *bits)
{
	__atomic_add_fetch(&sleeping, 1, __ATOMIC_RELAXED);
	CHECK_EQ(futex(&from, FUTEX_WAIT_BITSET, 0, NULL, NULL, (uint32_t)(uintptr_t)bits), 0);
	__atomic_add_fetch(&woken, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void wait_until(int *counter, int value)
{
	while (__atomic_load_n(counter, __ATOMIC_RELAXED) < value)
		usleep(1000);
}

static void moving(void)
{
	pthread_t t[10];
	long moved = 0;

	sleeping = woken = 0;
	for (int i = 0; i < 10; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, sleep_on_it, (void *)(i < 2 ? 2L : 1L)), 0);
	wait_until(&sleeping, 10);
	usleep(20000);
	CHECK_EQ(futex(&from, FUTEX_WAKE_BITSET, 100, NULL, NULL, 2), 2);
	CHECK_EQ(futex(&from, FUTEX_CMP_REQUEUE, 1, (void *)100L, &to, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	moved = futex(&from, FUTEX_CMP_REQUEUE, 1, (void *)100L, &to, 0);
	CHECK_EQ(moved, 8);
	wait_until(&woken, 3);
	CHECK_EQ(futex(&from, FUTEX_WAKE, 100, NULL, NULL, 0), 0);
	CHECK_EQ(futex(&to, FUTEX_WAKE, 100, NULL, NULL, 0), 7);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *idle(void *arg)
{
	return arg;
}

static void with_a_child(void)
{
	uint32_t *w = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	CHECK(w != MAP_FAILED);
	flag = 0;
	pid = fork();
	if (pid == 0) {
		usleep(20000);
		__atomic_store_n(w, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, w, FUTEX_WAKE, 1, NULL, NULL, 0);
		_exit(0);
	}
	while (__atomic_load_n(w, __ATOMIC_ACQUIRE) == 0)
		futex(w, FUTEX_WAIT, 0, NULL, NULL, 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(void)
{
	pthread_t t;

	times();
	CHECK_EQ(pthread_create(&t, NULL, idle, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	times();
	crowd();
	moving();
	flag = 0;
	times();
	crowd();
	moving();
	with_a_child();
	return 0;
}
