/* Use of destroyed objects: a mutex of any kind returns EINVAL to lock, unlock, a wait with it and
 * pthread_mutex_consistent, until it is initialised again; further objects work as before. Zeroed
 * objects count as statically initialised. The error numbers are glibc's, and the run on kernel
 * threads checks them. */
#include "crowd.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <threads.h>
#include <time.h>

enum { THREADS = 32 };

__attribute__((weak)) unsigned kb_vp_count(void); /* defined by the runtime */

static const struct timespec past = { 1, 0 };
static __thread pthread_cond_t nobody_signals = PTHREAD_COND_INITIALIZER;

/* ---- mutexes ------------------------------------------------------------------------------ */

static int init(pthread_mutex_t *m, int type, int protocol, int robust, int shared)
{
	pthread_mutexattr_t a;
	int e;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, protocol), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, robust), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, shared), 0);
	e = pthread_mutex_init(m, &a);
	CHECK_EQ(pthread_mutexattr_destroy(&a), 0);
	return e;
}

static void is_refused(pthread_mutex_t *m)
{
	CHECK_EQ(pthread_mutex_lock(m), EINVAL);
	CHECK_EQ(pthread_mutex_trylock(m), EINVAL);
	CHECK_EQ(pthread_mutex_timedlock(m, &past), EINVAL);
	CHECK_EQ(pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &past), EINVAL);
	CHECK_EQ(pthread_mutex_unlock(m), EINVAL);
	CHECK_EQ(pthread_cond_wait(&nobody_signals, m), EINVAL);
	CHECK_EQ(pthread_cond_timedwait(&nobody_signals, m, &past), EINVAL);
	CHECK_EQ(pthread_cond_clockwait(&nobody_signals, m, CLOCK_MONOTONIC, &past), EINVAL);
	CHECK_EQ(pthread_mutex_consistent(m), EINVAL);
}

/* A mutex that is not the caller's: the wait fails, and the mutex changes no owner. */
static void is_not_waited_with(pthread_mutex_t *m)
{
	CHECK_EQ(pthread_cond_wait(&nobody_signals, m), EPERM);
	CHECK_EQ(pthread_cond_timedwait(&nobody_signals, m, &past), EPERM);
}

static void mutex_of(int type, int protocol, int robust, int shared)
{
	int checks = type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE || robust;
	pthread_mutex_t m;

	if (init(&m, type, protocol, robust, shared))
		return; /* libc has no mutex that is both robust and protected */
	for (int round = 0; round < 2; round++) {
		if (checks)
			is_not_waited_with(&m);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
		is_refused(&m);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
		is_refused(&m);
		CHECK_EQ(init(&m, type, protocol, robust, shared), 0);
		if (protocol == PTHREAD_PRIO_PROTECT)
			continue; /* a ceiling is for real-time threads */
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		if (!robust)
			CHECK_EQ(pthread_mutex_destroy(&m), EBUSY);
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	}
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
	memset(&m, 0, sizeof(m));
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void mutexes(void)
{
	static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
		PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP };
	static const int protocols[] = { PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT,
		PTHREAD_PRIO_PROTECT };

	for (int kind = 0; kind < 4 * 3 * 2 * 2; kind++)
		mutex_of(types[kind % 4], protocols[kind / 4 % 3], kind / 12 % 2, kind / 24);
}

static void mutex_of_c11(int type)
{
	mtx_t m;

	CHECK_EQ(mtx_init(&m, type), thrd_success);
	mtx_destroy(&m);
	CHECK_EQ(mtx_lock(&m), thrd_error);
	CHECK_EQ(mtx_trylock(&m), thrd_error);
	CHECK_EQ(mtx_timedlock(&m, &past), thrd_error);
	CHECK_EQ(mtx_unlock(&m), thrd_error);
	mtx_destroy(&m);
	CHECK_EQ(mtx_init(&m, type), thrd_success);
	CHECK_EQ(mtx_lock(&m), thrd_success);
	CHECK_EQ(mtx_unlock(&m), thrd_success);
	mtx_destroy(&m);
}

/* ---- objects without a trace of their destruction ----------------------------------------- */

static void condition(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	CHECK_EQ(pthread_mutex_lock(&m), 0);
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(pthread_cond_timedwait(&c, &m, &past), ETIMEDOUT);
		CHECK_EQ(pthread_cond_signal(&c), 0);
		CHECK_EQ(pthread_cond_broadcast(&c), 0);
		CHECK_EQ(pthread_cond_destroy(&c), 0);
		if (round == 1)
			memset(&c, 0, sizeof(c));
	}
	CHECK_EQ(pthread_cond_init(&c, NULL), 0);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &past), ETIMEDOUT);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void rwlock(void)
{
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;

	for (int round = 0; round < 3; round++) {
		CHECK_EQ(pthread_rwlock_rdlock(&l), 0);
		CHECK_EQ(pthread_rwlock_trywrlock(&l), EBUSY);
		CHECK_EQ(pthread_rwlock_destroy(&l), 0); /* libc does not check whether it is held */
		CHECK_EQ(pthread_rwlock_unlock(&l), 0);
		CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
		CHECK_EQ(pthread_rwlock_unlock(&l), 0);
		CHECK_EQ(pthread_rwlock_destroy(&l), 0);
		if (round == 1)
			memset(&l, 0, sizeof(l));
	}
	CHECK_EQ(pthread_rwlock_init(&l, NULL), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&l), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	CHECK_EQ(pthread_rwlock_destroy(&l), 0);
}

static void semaphore(void)
{
	sem_t s;
	int value;

	CHECK_EQ(sem_init(&s, 0, 1), 0);
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(sem_destroy(&s), 0);
		if (round == 1) {
			memset(&s, 0, sizeof(s));
			CHECK_EQ(sem_trywait(&s), -1);
			CHECK_EQ(errno, EAGAIN);
			CHECK_EQ(sem_post(&s), 0);
		}
		CHECK_EQ(sem_wait(&s), 0);
		CHECK_EQ(sem_timedwait(&s, &past), -1);
		CHECK_EQ(errno, ETIMEDOUT);
		CHECK_EQ(sem_post(&s), 0);
		CHECK_EQ(sem_getvalue(&s, &value), 0);
		CHECK_EQ(value, 1);
	}
	CHECK_EQ(sem_destroy(&s), 0);
	CHECK_EQ(sem_init(&s, 0, 2), 0);
	CHECK_EQ(sem_trywait(&s), 0);
	CHECK_EQ(sem_destroy(&s), 0);
}

static void spin_lock(void)
{
	pthread_spinlock_t l;

	CHECK_EQ(pthread_spin_init(&l, PTHREAD_PROCESS_PRIVATE), 0);
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(pthread_spin_lock(&l), 0);
		CHECK_EQ(pthread_spin_destroy(&l), 0);
		CHECK_EQ(pthread_spin_trylock(&l), EBUSY);
		CHECK_EQ(pthread_spin_unlock(&l), 0);
	}
}

/* A zeroed barrier was never initialised, and none of its rounds ends: on libc a division by
 * zero. */
static void barrier(void)
{
	pthread_barrier_t b;

	CHECK_EQ(pthread_barrier_init(&b, NULL, 1), 0);
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(pthread_barrier_wait(&b), PTHREAD_BARRIER_SERIAL_THREAD);
		CHECK_EQ(pthread_barrier_destroy(&b), 0);
	}
	CHECK_EQ(pthread_barrier_init(&b, NULL, 1), 0);
	CHECK_EQ(pthread_barrier_wait(&b), PTHREAD_BARRIER_SERIAL_THREAD);
	CHECK_EQ(pthread_barrier_destroy(&b), 0);
	if (!kb_vp_count)
		return;
	memset(&b, 0, sizeof(b));
	CHECK_EQ(pthread_barrier_wait(&b), EINVAL);
	CHECK_EQ(pthread_barrier_destroy(&b), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Attributes with an affinity have memory that libc frees; they are not used again. */
static void attributes(void)
{
	pthread_mutexattr_t m;
	pthread_attr_t a;
	pthread_t t;
	size_t size;
	int scope;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	CHECK_EQ(pthread_attr_getstacksize(&a, &size), 0);
	CHECK_EQ(pthread_attr_getscope(&a, &scope), 0);
	CHECK_EQ(pthread_create(&t, &a, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	CHECK_EQ(pthread_mutexattr_init(&m), 0);
	CHECK_EQ(pthread_mutexattr_destroy(&m), 0);
	CHECK_EQ(pthread_mutexattr_settype(&m, PTHREAD_MUTEX_RECURSIVE), 0);
}

static void key(void)
{
	pthread_key_t k;

	CHECK_EQ(pthread_key_create(&k, NULL), 0);
	CHECK_EQ(pthread_setspecific(k, &k), 0);
	CHECK_EQ(pthread_key_delete(k), 0);
	CHECK_EQ(pthread_key_delete(k), EINVAL);
}

/* ---- all at once -------------------------------------------------------------------------- */

static pthread_mutex_t common;

static void *all(void *arg)
{
	(void)arg;
	mutexes();
	mutex_of_c11(mtx_timed);
	mutex_of_c11(mtx_timed | mtx_recursive);
	condition();
	rwlock();
	semaphore();
	spin_lock();
	barrier();
	attributes();
	key();
	is_refused(&common);
	return NULL;
}

int main(void)
{
	CHECK_EQ(pthread_mutex_init(&common, NULL), 0);
	CHECK_EQ(pthread_mutex_destroy(&common), 0);
	all(NULL);
	crowd_run(all, THREADS);
	all(NULL);
	CHECK_EQ(pthread_mutex_init(&common, NULL), 0);
	CHECK_EQ(pthread_mutex_lock(&common), 0);
	CHECK_EQ(pthread_mutex_unlock(&common), 0);
	return 0;
}
