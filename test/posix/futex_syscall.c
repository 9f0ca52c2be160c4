/* Futexes made by syscall(): a mutex of 32 threads, with and without the private flag; time-outs,
 * bitsets, requeue, two words at once, priority inheritance; in shared memory with a child, and by
 * more threads than virtual processors; and where no file can be opened to see which memory is
 * shared. */
#include "crowd.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
	n = 0;
	crowd_run(add, THREADS);
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

static uint32_t pi;
static long counted;
/* Follows futex(2): a thread that finds the word free, or its own without waiters, makes no call.
 * Two threads never have the word at once, even on a single virtual processor. */
static void *inherits(void *arg)
{
	uint32_t me = (uint32_t)gettid();

	for (int i = 0; i < 50; i++) {
		uint32_t free = 0, mine = me;

		if (!__atomic_compare_exchange_n(&pi, &free, me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			CHECK_EQ(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
		CHECK_EQ(__atomic_load_n(&pi, __ATOMIC_RELAXED) & FUTEX_TID_MASK, me);
		long n = counted;

		if (i % 10 == 0)
			usleep(100);
		counted = n + 1;
		if (!__atomic_compare_exchange_n(&pi, &mine, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			CHECK_EQ(futex(&pi, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
	}
	return arg;
}

static void *wants(void *arg)
{
	struct timespec t;

	CHECK_EQ(futex(&pi, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(futex(&pi, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), -1);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(clock_gettime(CLOCK_REALTIME, &t), 0);
	t.tv_nsec += 20000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	CHECK_EQ(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, &t, NULL, 0), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	return arg;
}

static void priorities(void)
{
	crowd_run(inherits, 4);
	CHECK_EQ(counted, 200);
	CHECK_EQ(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
	CHECK_EQ(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), -1);
	CHECK_EQ(errno, EDEADLK);
	crowd_run(wants, 2);
	CHECK_EQ(futex(&pi, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
	CHECK_EQ(pi, 0);
}

/* The results of FUTEX_WAKE_OP on 5. */
static void changes(void)
{
	static const struct {
		uint32_t how, then;
	} all[] = {
		{ FUTEX_OP(FUTEX_OP_SET, 7, FUTEX_OP_CMP_EQ, 5), 7 },
		{ FUTEX_OP(FUTEX_OP_ADD, -2, FUTEX_OP_CMP_NE, 5), 3 },
		{ FUTEX_OP(FUTEX_OP_OR, 2, FUTEX_OP_CMP_LT, 6), 7 },
		{ FUTEX_OP(FUTEX_OP_ANDN, 4, FUTEX_OP_CMP_GE, 5), 1 },
		{ FUTEX_OP(FUTEX_OP_XOR, 1, FUTEX_OP_CMP_GT, -1), 4 },
		{ FUTEX_OP((FUTEX_OP_SET | FUTEX_OP_OPARG_SHIFT), 11, FUTEX_OP_CMP_LE, 5), 2048 },
	};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		to = 5;
		CHECK_EQ(futex(&from, FUTEX_WAKE_OP, 2, (void *)2L, &to, (int)all[i].how), 0);
		CHECK_EQ(to, all[i].then);
	}
	CHECK_EQ(futex(&from, FUTEX_WAKE_OP, 1, (void *)1L, &to, 6u << 28), -1);
	CHECK_EQ(errno, ENOSYS);
}

static void *sleep_on_either(void *second)
{
	__atomic_add_fetch(&sleeping, 1, __ATOMIC_RELAXED);
	if (second)
		futex(&to, FUTEX_WAIT, 5, NULL, NULL, 0);
	else
		futex(&from, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

/* Two threads sleep on each word. Stores how many are woken by a WAKE_OP, and then by a WAKE of the
 * second word; the sleepers may come late. */
static void wake_both(int holds, long *both, long *rest)
{
	pthread_t t[4];

	from = 0;
	to = 5;
	sleeping = 0;
	for (long i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, sleep_on_either, (void *)(i & 1)), 0);
	wait_until(&sleeping, 4);
	usleep(10000);
	*both = futex(&from, FUTEX_WAKE_OP, 2, (void *)2L, &to,
		FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, holds ? 5 : 6));
	*rest = futex(&to, FUTEX_WAKE, 2, NULL, NULL, 0);
	__atomic_store_n(&from, 1, __ATOMIC_RELEASE);
	futex(&from, FUTEX_WAKE, 2, NULL, NULL, 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	from = 0;
}

static void changes_and_wakes(void)
{
	for (int holds = 0; holds < 2; holds++) {
		long both = 0, rest = 0;

		for (int i = 0; i < 20 && both + rest < 4; i++)
			wake_both(holds, &both, &rest);
		CHECK_EQ(both, holds ? 4 : 2);
		CHECK_EQ(rest, holds ? 0 : 2);
	}
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

enum { PAGE = 4096, WAITERS = 6 };

struct shared {
	uint32_t word, pi, late;
};

static void *waits_in_the_kernel(void *arg)
{
	struct shared *s = arg;

	__atomic_add_fetch(&sleeping, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&s->word, __ATOMIC_ACQUIRE))
		futex(&s->word, FUTEX_WAIT, 0, NULL, NULL, 0);
	CHECK_EQ(futex(&s->pi, FUTEX_LOCK_PI, 0, NULL, NULL, 0), 0);
	usleep(1000);
	CHECK_EQ(futex(&s->pi, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
	return NULL;
}

static void *waits_in_vain(void *arg)
{
	struct shared *s = arg;
	struct timespec t = { 0, 30000000 };
	uint64_t start = test_now_ns();

	CHECK_EQ(futex(&s->late, FUTEX_WAIT, 0, &t, NULL, 0), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK(test_now_ns() - start >= 30000000);
	return NULL;
}

/* The word is the kernel's; a thread that waits there does not block a virtual processor. */
static void many_in_shared_memory(struct shared *s)
{
	pthread_t t[2 * WAITERS];

	sleeping = 0;
	for (int i = 0; i < 2 * WAITERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i % 2 ? waits_in_vain : waits_in_the_kernel, s), 0);
	wait_until(&sleeping, WAITERS);
	__atomic_store_n(&s->word, 1, __ATOMIC_RELEASE);
	futex(&s->word, FUTEX_WAKE, WAITERS, NULL, NULL, 0);
	for (int i = 0; i < 2 * WAITERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *sleeps_on(void *arg)
{
	uint32_t *w = arg;

	__atomic_add_fetch(&sleeping, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(w, __ATOMIC_ACQUIRE))
		futex(w, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

static void *new_page(int how)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Uses pages that were not looked up yet, without a free descriptor to look them up. */
static void without_descriptors(void)
{
	uint32_t *w = new_page(MAP_PRIVATE);
	struct shared *s = new_page(MAP_SHARED);
	struct rlimit had, none;
	pthread_t t[WAITERS];

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &had), 0);
	sleeping = 0;
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, sleeps_on, w), 0);
	none = had;
	none.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	wait_until(&sleeping, WAITERS);
	__atomic_store_n(w, 1, __ATOMIC_RELEASE);
	futex(w, FUTEX_WAKE, WAITERS, NULL, NULL, 0);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	many_in_shared_memory(s);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &had), 0);
	CHECK_EQ(munmap(w, PAGE), 0);
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
	changes();
	changes_and_wakes();
	priorities();
	flag = 0;
	times();
	crowd();
	moving();
	changes();
	changes_and_wakes();
	with_a_child();
	many_in_shared_memory(new_page(MAP_SHARED));
	without_descriptors();
	return 0;
}
