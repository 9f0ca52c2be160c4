/* sync/rwlock, sync/lost: locks of threads that crashed. Places of readers are given back, a
 * writer's as the option on_crash says; waiters sleep already, come later, try, or give up. (The
 * option contain; all cases run in children, which read it.) */
#include <errno.h>
#include <kochab/kochab.h>
#include <kochab/sync.h>

#include "core/child.h"
#include "core/crashers.h"

enum { WAITERS = 8, ROUNDS = 20, LOCKERS = 20, SEVERAL = 6 };

static kb_rwlock_t lock, more[SEVERAL];
static volatile int crash_now;

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

static void crash_until(void)
{
	while (!crash_now)
		kb_yield();
	writes(NULL);
}

static void *reads(void *arg)
{
	CHECK_EQ(kb_rwlock_rdlock(&lock), 0);
	for (int i = 0; i < SEVERAL; i++)
		CHECK_EQ(kb_rwlock_rdlock(&more[i]), 0);
	CHECK_EQ(kb_rwlock_unlock(&more[0]), 0);
	crash_until();
	return arg;
}

static void *writes_to_it(void *arg)
{
	CHECK_EQ(kb_rwlock_wrlock(&lock), 0);
	crash_until();
	return arg;
}

static void *wants(void *arg)
{
	CHECK_EQ(arg ? kb_rwlock_wrlock(&lock) : kb_rwlock_rdlock(&lock), 0);
	kb_yield();
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	return NULL;
}

static void is_free(kb_rwlock_t *l)
{
	CHECK_EQ(kb_rwlock_trywrlock(l), 0);
	CHECK_EQ(kb_rwlock_unlock(l), 0);
	CHECK_EQ(kb_rwlock_tryrdlock(l), 0);
	CHECK_EQ(kb_rwlock_unlock(l), 0);
	CHECK_EQ(kb_rwlock_destroy(l), 0);
}

/* Threads sleep for the lock when its holder crashes. */
static void left_to_waiters(void *(*holds)(void *), int kind)
{
	kb_thread_t t, w[WAITERS];

	CHECK_EQ(kb_rwlock_init(&lock, kind), 0);
	crash_now = 0;
	t = thread(holds, NULL);
	while (kb_rwlock_trywrlock(&lock) == 0) {
		kb_rwlock_unlock(&lock);
		kb_yield();
	}
	for (uintptr_t i = 0; i < WAITERS; i++)
		w[i] = thread(wants, (void *)(i % 3));
	kb_sleep(1000000);
	CHECK_EQ(kb_rwlock_timedwrlock(&lock, kb_now() + 1000000), ETIMEDOUT);
	crash_now = 1;
	CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(kb_thread_join(w[i], NULL), 0);
	is_free(&lock);
}

/* No thread waits when the holder crashes. */
static void left_alone(void *(*holds)(void *), int (*lock_it)(kb_rwlock_t *))
{
	crash_now = 1;
	CHECK_EQ(kb_thread_join(thread(holds, NULL), NULL), EOWNERDEAD);
	CHECK_EQ(lock_it(&lock), 0);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	is_free(&lock);
}

static void readers(void *arg)
{
	(void)arg;
	start("abort");
	for (int kind = KB_RWLOCK_PREFER_WRITER; kind <= KB_RWLOCK_PREFER_READER; kind++)
		for (int i = 0; i < 5; i++)
			left_to_waiters(reads, kind);
	left_alone(reads, kb_rwlock_wrlock);
	left_alone(reads, kb_rwlock_trywrlock);
	left_alone(reads, kb_rwlock_rdlock);
	for (int i = 0; i < SEVERAL; i++)
		is_free(&more[i]);
}

static void writers(void *arg)
{
	(void)arg;
	start("release");
	for (int kind = KB_RWLOCK_PREFER_WRITER; kind <= KB_RWLOCK_PREFER_READER; kind++)
		for (int i = 0; i < 5; i++)
			left_to_waiters(writes_to_it, kind);
	left_alone(writes_to_it, kb_rwlock_wrlock);
	left_alone(writes_to_it, kb_rwlock_trywrlock);
	left_alone(writes_to_it, kb_rwlock_rdlock);
	left_alone(writes_to_it, kb_rwlock_tryrdlock);
}

static void not_released(void *arg)
{
	(void)arg;
	start("abort");
	left_to_waiters(writes_to_it, KB_RWLOCK_PREFER_WRITER);
}

static void not_released_later(void *arg)
{
	(void)arg;
	start("abort");
	left_alone(writes_to_it, kb_rwlock_rdlock);
}

/* A thread that ends with a read lock has it for ever: the next thread with its descriptor is a
 * different thread. */
static void *ends_reading(void *arg)
{
	CHECK_EQ(kb_rwlock_rdlock(arg), 0);
	return NULL;
}

static void *crashes(void *arg)
{
	CHECK_EQ(kb_rwlock_rdlock(arg), 0);
	CHECK_EQ(kb_rwlock_unlock(arg), 0);
	return writes(NULL);
}

static void not_its_own(void *arg)
{
	(void)arg;
	start("abort");
	for (int i = 0; i < 40; i++) {
		CHECK_EQ(kb_thread_join(thread(ends_reading, &lock), NULL), 0);
		CHECK_EQ(kb_thread_join(thread(crashes, &more[0]), NULL), EOWNERDEAD);
		CHECK_EQ(kb_rwlock_trywrlock(&lock), EBUSY);
		CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	}
	is_free(&lock);
}

/* All threads lock; at times a thread crashes with the lock held. */
static volatile unsigned inside;

static void *locks_until_it_crashes(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg, crash_at = 15 + n % 4;

	for (unsigned i = 0;; i++) {
		int write = (i + n) % 3 == 0;

		CHECK_EQ(write ? kb_rwlock_wrlock(&lock) : kb_rwlock_rdlock(&lock), 0);
		if (i >= crash_at)
			return writes(NULL);
		if (write)
			CHECK_EQ(inside++, 0);
		if (i % 3 == 0)
			kb_yield();
		if (write)
			inside--;
		else
			CHECK_EQ(inside, 0);
		CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	}
}

static void storm(void *arg)
{
	kb_thread_t t[LOCKERS];

	(void)arg;
	start("release");
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < LOCKERS; i++)
			t[i] = thread(locks_until_it_crashes, (void *)(uintptr_t)(round + i));
		for (unsigned i = 0; i < LOCKERS; i++)
			CHECK_EQ(kb_thread_join(t[i], NULL), EOWNERDEAD);
	}
	is_free(&lock);
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
	run(readers);
	run(writers);
	aborts_with(not_released);
	aborts_with(not_released_later);
	run(not_its_own);
	run(storm);
	return 0;
}
