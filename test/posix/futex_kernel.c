/* Futexes that wait in the kernel: words that processes share, several words at once, and the newer
 * system calls of Linux. Threads that wait there keep no thread from running, however many they
 * are, and any kind of wake reaches any kind of wait. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { WAITV = 449, WAKE2 = 454, WAIT2 = 455, SIZE_U32 = 2, PRIVATE2 = 128 };
enum { CROWD = 9, WORDS = 3 };

struct one_of {
	uint64_t value, addr;
	uint32_t flags, reserved;
};

static uint32_t *shared, word[WORDS];
static int awake;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static struct timespec in(long sec, long nsec)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += sec + (t.tv_nsec + nsec) / 1000000000;
	t.tv_nsec = (t.tv_nsec + nsec) % 1000000000;
	return t;
}

/* ---- words that processes share ----------------------------------------------------------- */

static void *wait_shared(void *arg)
{
	struct timespec limit = { 20, 0 };

	while (syscall(SYS_futex, shared, FUTEX_WAIT, 0, &limit, NULL, 0) == -1 && errno == EINTR)
		;
	__atomic_fetch_add(&awake, 1, __ATOMIC_RELEASE);
	return arg;
}

/* All of them sleep, and a single wake takes them all. */
static void crowd(void)
{
	pthread_t t[CROWD];
	long woken = 0;

	awake = 0;
	for (long i = 0; i < CROWD; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_shared, NULL), 0);
	for (long long end = now() + 10000000000ll; woken < CROWD && now() < end; usleep(1000))
		if (!woken || __atomic_load_n(&awake, __ATOMIC_ACQUIRE) == woken)
			woken += syscall(SYS_futex, shared, FUTEX_WAKE, CROWD, NULL, NULL, 0);
	CHECK_EQ(woken, CROWD);
	for (long i = 0; i < CROWD; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *times(void *arg)
{
	struct timespec limit = { 0, 30000000 }, wrong = { 0, 1000000000 };
	long long begun = now();

	CHECK_EQ(syscall(SYS_futex, shared, FUTEX_WAIT, 0, &limit, NULL, 0), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK(now() - begun >= 30000000);
	CHECK_EQ(syscall(SYS_futex, shared, FUTEX_WAIT, 0, &wrong, NULL, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(syscall(SYS_futex, shared, FUTEX_WAIT, 1, &limit, NULL, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	return arg;
}

static void handler(int sig)
{
	(void)sig;
}

static int inside;

static void *interrupted(void *arg)
{
	__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
	CHECK_EQ(syscall(SYS_futex, shared, FUTEX_WAIT, 0, arg, NULL, 0), -1);
	CHECK_EQ(errno, EINTR);
	__atomic_store_n(&inside, 2, __ATOMIC_RELEASE);
	return NULL;
}

static void signals(const struct timespec *limit)
{
	struct sigaction a = { .sa_handler = handler };
	pthread_t t;

	inside = 0;
	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, interrupted, (void *)limit), 0);
	while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		usleep(1000);
	/* it may not have been in the call yet */
	while (__atomic_load_n(&inside, __ATOMIC_ACQUIRE) != 2) {
		pthread_kill(t, SIGUSR1);
		usleep(2000);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- several words ------------------------------------------------------------------------ */

static void *wait_for_one_of(void *arg)
{
	struct one_of w[WORDS];
	struct timespec until = in(20, 0);

	for (int i = 0; i < WORDS; i++)
		w[i] = (struct one_of){ 0, (uintptr_t)&word[i], SIZE_U32 | (arg ? PRIVATE2 : 0), 0 };
	return (void *)syscall(WAITV, w, WORDS, 0, &until, CLOCK_MONOTONIC);
}

static void one_of(int flag)
{
	void *which;
	pthread_t t;

	for (int i = 0; i < WORDS; i++) {
		CHECK_EQ(pthread_create(&t, NULL, wait_for_one_of, flag ? &word : NULL), 0);
		while (syscall(SYS_futex, &word[i], FUTEX_WAKE | flag, 1, NULL, NULL, 0) == 0)
			usleep(1000);
		CHECK_EQ(pthread_join(t, &which), 0);
		CHECK_EQ((long)which, i);
	}
}

static void one_of_none(void)
{
	struct one_of w = { 1, (uintptr_t)&word[0], SIZE_U32 | PRIVATE2, 0 };
	struct timespec until = in(0, 20000000);

	CHECK_EQ(syscall(WAITV, &w, 1, 0, &until, CLOCK_MONOTONIC), -1);
	CHECK_EQ(errno, EAGAIN);
	w.value = 0;
	CHECK_EQ(syscall(WAITV, &w, 1, 0, &until, CLOCK_MONOTONIC), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(syscall(WAITV, &w, 0, 0, NULL, 0), -1);
	CHECK_EQ(errno, EINVAL);
}

/* ---- newer system calls ------------------------------------------------------------------- */

static void *wait_new(void *arg)
{
	struct timespec until = in(20, 0);

	(void)arg;
	return (void *)syscall(WAIT2, &word[0], 0, 1, SIZE_U32 | PRIVATE2, &until, CLOCK_MONOTONIC);
}

static void *wait_old(void *arg)
{
	struct timespec limit = { 20, 0 };

	(void)arg;
	return (void *)syscall(SYS_futex, &word[0], FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
}

static void woken_by(void *(*wait)(void *), int by_new)
{
	void *r;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, wait, NULL), 0);
	while ((by_new ? syscall(WAKE2, &word[0], 1, 1, SIZE_U32 | PRIVATE2) :
		      syscall(SYS_futex, &word[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0)) == 0)
		usleep(1000);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK_EQ((long)r, 0);
}

int main(void)
{
	static const struct timespec limit = { 20, 0 };
	pthread_t t;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	crowd();
	CHECK_EQ(pthread_create(&t, NULL, times, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	signals(NULL);
	signals(&limit);
	if (syscall(WAITV, NULL, 0, 0, NULL, 0) == -1 && errno != ENOSYS) {
		one_of_none();
		one_of(FUTEX_PRIVATE_FLAG);
		one_of(0);
	}
	if (syscall(WAKE2, &word[0], 1, 0, SIZE_U32 | PRIVATE2) == 0) {
		woken_by(wait_new, 1);
		woken_by(wait_new, 0);
		woken_by(wait_old, 1);
	}
	return 0;
}
