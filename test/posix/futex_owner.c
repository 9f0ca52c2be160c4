/* Futex operations with priority inheritance, on private and on shared memory: threads take a free
 * word themselves with their gettid, and otherwise make the kernel's operations; the word always
 * contains the owner's number. Deadlines of both clocks, errors, a child of fork beside the
 * threads, and condition variables made of WAIT_REQUEUE_PI and CMP_REQUEUE_PI. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 6, ROUNDS = 40, LOCK_PI2 = 13 };

struct words {
	uint32_t lock, sequence;
	int inside, total, waiting, ready;
};

static struct words *w;
static int private;

static long call(uint32_t *word, int op, uint32_t value, const void *limit, uint32_t *second,
	uint32_t third)
{
	long r = syscall(SYS_futex, word, op | private, value, limit, second, third);

	return r < 0 ? -errno : r;
}

static uint32_t me(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void lock(void)
{
	uint32_t free_word = 0;
	long r = 0;

	if (!__atomic_compare_exchange_n(&w->lock, &free_word, me(), 0, __ATOMIC_ACQUIRE,
		__ATOMIC_RELAXED))
		do
			r = call(&w->lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
		while (r == -EAGAIN || r == -EINTR);
	CHECK_EQ(r, 0);
	CHECK_EQ(w->lock & FUTEX_TID_MASK, me());
}

static void unlock(void)
{
	uint32_t mine = me();

	CHECK_EQ(w->lock & FUTEX_TID_MASK, mine);
	if (!__atomic_compare_exchange_n(&w->lock, &mine, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		CHECK_EQ(call(&w->lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
}

static void *contend(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock();
		CHECK_EQ(w->inside++, 0);
		if (i % 8 == 0) {
			CHECK_EQ(call(&w->lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0), -EDEADLK);
			CHECK_EQ(call(&w->lock, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0), -EDEADLK);
		}
		usleep(200);
		w->total++;
		w->inside--;
		unlock();
	}
	return arg;
}

static void exclude(int with_child)
{
	pthread_t t[THREADS];
	pid_t child = 0;
	int status;

	w->total = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, contend, NULL), 0);
	if (with_child && (child = fork()) == 0) {
		contend(NULL);
		_exit(0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	if (child) {
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(w->total, (THREADS + (child != 0)) * ROUNDS);
	CHECK_EQ(w->lock, 0);
}

static sem_t has, give_up;

static void *hold(void *arg)
{
	lock();
	sem_post(&has);
	while (sem_wait(&give_up))
		;
	unlock();
	return arg;
}

static void try_until(int op, clockid_t clock)
{
	struct timespec begun, limit, end;

	clock_gettime(clock, &begun);
	limit = begun;
	limit.tv_nsec += 20000000;
	limit.tv_sec += limit.tv_nsec / 1000000000;
	limit.tv_nsec %= 1000000000;
	long r = call(&w->lock, op, 0, &limit, NULL, 0);

	if (r == -ENOSYS)
		return;
	CHECK_EQ(r, -ETIMEDOUT);
	clock_gettime(clock, &end);
	CHECK(end.tv_sec > limit.tv_sec ||
		(end.tv_sec == limit.tv_sec && end.tv_nsec >= limit.tv_nsec));
	limit.tv_nsec = 1000000000;
	CHECK_EQ(call(&w->lock, op, 0, &limit, NULL, 0), -EINVAL);
}

static void errors(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, hold, NULL), 0);
	while (sem_wait(&has))
		;
	CHECK_EQ(call(&w->lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), -EPERM);
	CHECK_EQ(call(&w->lock, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0), -EAGAIN);
	try_until(FUTEX_LOCK_PI, CLOCK_REALTIME);
	try_until(LOCK_PI2, CLOCK_MONOTONIC);
	try_until(LOCK_PI2 | FUTEX_CLOCK_REALTIME, CLOCK_REALTIME);
	sem_post(&give_up);
	CHECK_EQ(pthread_join(t, NULL), 0);
	w->lock = 0x1ffffff0; /* no thread's number */
	CHECK_EQ(call(&w->lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0), -ESRCH);
	w->lock = 0;
}

/* Waits; returns with the lock held. */
static void wait_with_condition(void)
{
	uint32_t seen = __atomic_load_n(&w->sequence, __ATOMIC_RELAXED);
	long r;

	unlock();
	r = call(&w->sequence, FUTEX_WAIT_REQUEUE_PI, seen, NULL, &w->lock, 0);
	if (r == -EAGAIN) {
		lock();
		return;
	}
	CHECK_EQ(r, 0);
	CHECK_EQ(w->lock & FUTEX_TID_MASK, me());
}

static void *wait_until_ready(void *arg)
{
	lock();
	w->waiting++;
	while (!w->ready)
		wait_with_condition();
	CHECK_EQ(w->inside++, 0);
	usleep(100);
	w->inside--;
	w->total++;
	unlock();
	return arg;
}

static void condition(void)
{
	struct timespec soon;
	pthread_t t[THREADS];

	w->total = w->waiting = w->ready = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_until_ready, NULL), 0);
	while (__atomic_load_n(&w->waiting, __ATOMIC_RELAXED) < THREADS)
		usleep(1000);
	lock();
	w->ready = 1;
	w->sequence++;
	CHECK_EQ(call(&w->sequence, FUTEX_CMP_REQUEUE_PI, 1, (void *)1000, &w->lock, w->sequence - 1),
		-EAGAIN);
	CHECK(call(&w->sequence, FUTEX_CMP_REQUEUE_PI, 1, (void *)1000, &w->lock, w->sequence) >= 0);
	unlock();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(w->total, THREADS);
	clock_gettime(CLOCK_MONOTONIC, &soon);
	CHECK_EQ(call(&w->sequence, FUTEX_WAIT_REQUEUE_PI, w->sequence, &soon, &w->lock, 0),
		-ETIMEDOUT);
	CHECK_EQ(w->lock, 0);
}

static void all(int flags, int with_child)
{
	w = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
	CHECK(w != MAP_FAILED);
	exclude(with_child);
	errors();
	condition();
}

int main(void)
{
	sem_init(&has, 0, 0);
	sem_init(&give_up, 0, 0);
	private = FUTEX_PRIVATE_FLAG;
	all(MAP_PRIVATE, 0);
	private = 0;
	all(MAP_PRIVATE, 0);
	all(MAP_SHARED, 0);
	all(MAP_SHARED, 1);
	return 0;
}
