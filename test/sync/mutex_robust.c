/* sync/mutex: robust mutexes of threads that crashed, and plain mutexes as the option on_crash
 * says; waiters sleep already, come later, were moved to the mutex by a broadcast, or give up. (The
 * option contain; all cases run in children, which read it.) */
#include <errno.h>
#include <kochab/kochab.h>
#include <kochab/sync.h>

#include "core/child.h"
#include "core/crashers.h"

enum { WAITERS = 8, ROUNDS = 60, LOCKERS = 20 };

static kb_mutex_t mutex;
static kb_cond_t cond = KB_COND_INIT;
static volatile int crash_now, waiting;

static void start(const char *on_crash)
{
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_ON_CRASH", on_crash, 1);
	if (kb_init() != 0)
		_exit(77);
}

static kb_thread_t thread(void *(*fn)(void *), void *arg)
{
	kb_thread_t t;

	CHECK_EQ(kb_thread_create(&t, NULL, fn, arg), 0);
	return t;
}

static int result_of(kb_thread_t t)
{
	void *result;

	CHECK_EQ(kb_thread_join(t, &result), 0);
	return (int)(intptr_t)result;
}

static void *crashes_holding(void *arg)
{
	int e = kb_mutex_lock(arg);

	CHECK(e == 0 || e == EOWNERDEAD);
	while (!crash_now)
		kb_yield();
	return writes(NULL);
}

static void crash_holding(void)
{
	crash_now = 1;
	CHECK_EQ(kb_thread_join(thread(crashes_holding, &mutex), NULL), EOWNERDEAD);
}

/* Locks, repairs, and returns 1 + the result of lock. */
static void *wants(void *arg)
{
	int e = kb_mutex_lock(arg);

	if (e == EOWNERDEAD)
		CHECK_EQ(kb_mutex_consistent(arg), 0);
	CHECK_EQ(kb_mutex_unlock(arg), 0);
	return (void *)(intptr_t)e;
}

static void *waits(void *arg)
{
	int e;

	CHECK_EQ(kb_mutex_lock(arg), 0);
	waiting++;
	e = kb_cond_wait(&cond, arg);
	if (e == EOWNERDEAD)
		CHECK_EQ(kb_mutex_consistent(arg), 0);
	CHECK_EQ(kb_mutex_unlock(arg), 0);
	return (void *)(intptr_t)e;
}

/* Threads sleep for the mutex when its holder crashes: a single thread is told. */
static int left_to(kb_mutex_t *m)
{
	kb_thread_t t, w[WAITERS];
	int dead = 0;

	crash_now = 0;
	t = thread(crashes_holding, m);
	while (kb_mutex_trylock(m) == 0) {
		kb_mutex_unlock(m);
		kb_yield();
	}
	for (int i = 0; i < WAITERS; i++)
		w[i] = thread(wants, m);
	kb_sleep(2000000);
	CHECK_EQ(kb_mutex_timedlock(m, kb_now() + 1000000), ETIMEDOUT);
	crash_now = 1;
	CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
	for (int i = 0; i < WAITERS; i++) {
		int e = result_of(w[i]);

		CHECK(e == 0 || e == EOWNERDEAD);
		dead += e == EOWNERDEAD;
	}
	CHECK_EQ(kb_mutex_trylock(m), 0);
	CHECK_EQ(kb_mutex_unlock(m), 0);
	return dead;
}

/* Waiters are moved by a broadcast while the holder lives, or when it is lost already. */
static int left_to_waiters(kb_mutex_t *m)
{
	kb_thread_t w[WAITERS];
	int dead = 0;

	waiting = 0;
	for (int i = 0; i < WAITERS; i++)
		w[i] = thread(waits, m);
	while (waiting < WAITERS)
		kb_yield();
	crash_now = 1; /* the next holder comes when the last waiter has given the mutex up */
	CHECK_EQ(kb_thread_join(thread(crashes_holding, m), NULL), EOWNERDEAD);
	kb_cond_broadcast(&cond);
	for (int i = 0; i < WAITERS; i++)
		dead += result_of(w[i]) == EOWNERDEAD;
	return dead;
}

static void robust(void *arg)
{
	(void)arg;
	start("abort");
	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_ROBUST), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), EDEADLK);
	CHECK_EQ(kb_mutex_consistent(&mutex), EINVAL);
	CHECK_EQ(kb_cond_timedwait(&cond, &mutex, kb_now() + 1000000), ETIMEDOUT);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), EPERM);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(left_to(&mutex), 1);
		CHECK_EQ(left_to_waiters(&mutex), 1);
	}
	crash_holding();
	CHECK_EQ(kb_mutex_trylock(&mutex), EOWNERDEAD);
	CHECK_EQ(kb_mutex_consistent(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);

	/* the thread that got EOWNERDEAD crashes, too */
	crash_holding();
	crash_holding();
	CHECK_EQ(kb_mutex_lock(&mutex), EOWNERDEAD);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), ENOTRECOVERABLE);
	CHECK_EQ(kb_mutex_trylock(&mutex), ENOTRECOVERABLE);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);

	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_ROBUST | KB_MUTEX_RECURSIVE), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(left_to(&mutex), 1);
}

static void released(void *arg)
{
	(void)arg;
	start("release");
	for (int kind = KB_MUTEX_NORMAL; kind <= KB_MUTEX_ERRORCHECK; kind++) {
		CHECK_EQ(kb_mutex_init(&mutex, kind), 0);
		CHECK_EQ(left_to(&mutex), 0);
		CHECK_EQ(left_to_waiters(&mutex), 0);
		crash_holding();
		CHECK_EQ(kb_mutex_trylock(&mutex), 0);
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	}
}

static void not_released(void *arg)
{
	(void)arg;
	start("abort");
	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_NORMAL), 0);
	left_to(&mutex);
}

static void not_released_later(void *arg)
{
	(void)arg;
	start("abort");
	crash_holding();
	kb_mutex_lock(&mutex);
}

/* All threads lock; at times a thread crashes with the mutex held. */
static volatile unsigned inside;

static void *locks_until_it_crashes(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 20 + n % 7; i++) {
		int e = kb_mutex_lock(&mutex);

		if (e) {
			CHECK_EQ(e, EOWNERDEAD);
			CHECK_EQ(kb_mutex_consistent(&mutex), 0);
		} else {
			CHECK_EQ(inside, 0);
		}
		inside = 1;
		if (i % 3 == 0)
			kb_yield();
		if (i == 15 + n % 4)
			return writes(NULL);
		inside = 0;
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	}
	return NULL;
}

static void storm(void *arg)
{
	kb_thread_t t[LOCKERS];

	(void)arg;
	start("abort");
	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_ROBUST), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < LOCKERS; i++)
			t[i] = thread(locks_until_it_crashes, (void *)(uintptr_t)(round + i));
		for (unsigned i = 0; i < LOCKERS; i++)
			CHECK_EQ(kb_thread_join(t[i], NULL), EOWNERDEAD);
	}
	CHECK_EQ(kb_crash_count(), LOCKERS * ROUNDS);
}

static void run(void (*fn)(void *))
{
	static struct child c;

	child_run(&c, fn, NULL);
	child_exited(&c, 0);
}

static void aborts_with(void (*fn)(void *))
{
	static struct child c;

	child_run(&c, fn, NULL);
	child_killed(&c, SIGABRT);
	child_said(&c, "which was lost");
}

int main(void)
{
	skip_unless_contained();
	run(robust);
	run(released);
	aborts_with(not_released);
	aborts_with(not_released_later);
	run(storm);
	return 0;
}
