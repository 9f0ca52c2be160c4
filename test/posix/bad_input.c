/* Errors that libc detects and POSIX lists are returned in the same way: the numbers here are
 * glibc's, and the plain run checks them. A wrong program may make each of these calls; none leaves
 * anything behind. */
#include "test.h"
#include "libc_age.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define FAILS_WITH(call, error) \
	do { \
		errno = 0; \
		CHECK_EQ(call, -1); \
		CHECK_EQ(errno, error); \
	} while (0)

static const struct timespec past = { 1, 0 }, wrong = { 1, 1000000000 }, negative = { 1, -1 },
	before_1970 = { -1, 0 };
static sem_t go, done;

/* ---- attributes ------------------------------------------------------------------------------ */

static void thread_attributes(void)
{
	struct sched_param p = { .sched_priority = 0 };
	pthread_attr_t a;
	char low[100];

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setdetachstate(&a, 17), EINVAL);
	CHECK_EQ(pthread_attr_setinheritsched(&a, 17), EINVAL);
	CHECK_EQ(pthread_attr_setschedpolicy(&a, 17), EINVAL);
	CHECK_EQ(pthread_attr_setscope(&a, 17), EINVAL);
	CHECK_EQ(pthread_attr_setstacksize(&a, 1), EINVAL);
	CHECK_EQ(pthread_attr_setstack(&a, low, 1), EINVAL);
	CHECK_EQ(pthread_attr_setschedpolicy(&a, SCHED_RR), 0);
	CHECK_EQ(pthread_attr_setschedparam(&a, &p), EINVAL);
	p.sched_priority = 1000;
	CHECK_EQ(pthread_attr_setschedparam(&a, &p), EINVAL);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
}

static void other_attributes(void)
{
	pthread_barrierattr_t ba;
	pthread_rwlockattr_t ra;
	pthread_condattr_t ca;
	pthread_mutexattr_t ma;

	pthread_mutexattr_init(&ma);
	CHECK_EQ(pthread_mutexattr_settype(&ma, 17), EINVAL);
	CHECK_EQ(pthread_mutexattr_setpshared(&ma, 17), EINVAL);
	CHECK_EQ(pthread_mutexattr_setprotocol(&ma, 17), EINVAL);
	CHECK_EQ(pthread_mutexattr_setrobust(&ma, 17), EINVAL);
	CHECK_EQ(pthread_mutexattr_setprioceiling(&ma, 1000), EINVAL);
	pthread_condattr_init(&ca);
	CHECK_EQ(pthread_condattr_setpshared(&ca, 17), EINVAL);
	CHECK_EQ(pthread_condattr_setclock(&ca, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
	pthread_rwlockattr_init(&ra);
	CHECK_EQ(pthread_rwlockattr_setpshared(&ra, 17), EINVAL);
	CHECK_EQ(pthread_rwlockattr_setkind_np(&ra, 17), EINVAL);
	pthread_barrierattr_init(&ba);
	CHECK_EQ(pthread_barrierattr_setpshared(&ba, 17), EINVAL);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void *try_lock(void *arg)
{
	pthread_mutex_t *m = arg;

	return (void *)(long)(pthread_mutex_unlock(m) * 1000 + pthread_mutex_trylock(m));
}

static void *time_lock(void *arg)
{
	CHECK_EQ(pthread_mutex_timedlock(arg, &wrong), EINVAL);
	CHECK_EQ(pthread_mutex_timedlock(arg, &negative), EINVAL);
	CHECK_EQ(pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &wrong), EINVAL);
	CHECK_EQ(pthread_mutex_clocklock(arg, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	CHECK_EQ(pthread_mutex_timedlock(arg, &past), ETIMEDOUT);
	return NULL;
}

/* The kernel returns EINVAL for a mutex with priority inheritance. */
static void *time_lock_early(void *arg)
{
	CHECK_EQ(pthread_mutex_timedlock(arg, &before_1970), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &before_1970), ETIMEDOUT);
	return NULL;
}

static void *elsewhere(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	void *r;

	CHECK_EQ(pthread_create(&t, NULL, fn, arg), 0);
	CHECK_EQ(pthread_join(t, &r), 0);
	return r;
}

static void mutex_kind(int type, int protocol, int robust)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	int old, again = type == PTHREAD_MUTEX_ERRORCHECK ? EDEADLK : 0;
	int checks = type != PTHREAD_MUTEX_NORMAL || robust || protocol == PTHREAD_PRIO_INHERIT;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, type);
	pthread_mutexattr_setprotocol(&a, protocol);
	pthread_mutexattr_setrobust(&a, robust);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	if (type != PTHREAD_MUTEX_NORMAL) {
		CHECK_EQ(pthread_mutex_lock(&m), again);
		CHECK_EQ(pthread_mutex_timedlock(&m, &past), again);
		if (!again) {
			CHECK_EQ(pthread_mutex_unlock(&m), 0);
			CHECK_EQ(pthread_mutex_unlock(&m), 0);
		}
	}
	if (type == PTHREAD_MUTEX_RECURSIVE) {
		CHECK_EQ(pthread_mutex_trylock(&m), 0);
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	} else {
		CHECK_EQ(pthread_mutex_trylock(&m), again && (robust || protocol) ? EDEADLK : EBUSY);
	}
	if (checks)
		CHECK_EQ((long)elsewhere(try_lock, &m), EPERM * 1000 + EBUSY);
	elsewhere(time_lock, &m);
	if (protocol == PTHREAD_PRIO_NONE)
		elsewhere(time_lock_early, &m);
	if (!robust)
		CHECK_EQ(pthread_mutex_destroy(&m), EBUSY);
	CHECK_EQ(pthread_mutex_consistent(&m), EINVAL);
	CHECK_EQ(pthread_mutex_getprioceiling(&m, &old), EINVAL);
	CHECK_EQ(pthread_mutex_setprioceiling(&m, 1, &old), EINVAL);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	if (checks)
		CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

static void conditions(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, e = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &wrong), EINVAL);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &negative), EINVAL);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &past), ETIMEDOUT);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &before_1970), ETIMEDOUT);
	CHECK_EQ(pthread_cond_clockwait(&c, &m, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	CHECK_EQ(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &wrong), EINVAL);
	CHECK_EQ(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_cond_wait(&c, &e), EPERM);
	CHECK_EQ(pthread_cond_timedwait(&c, &e, &past), EPERM);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
}

static void *rw_timed(void *arg)
{
	CHECK_EQ(pthread_rwlock_timedrdlock(arg, &wrong), EINVAL);
	CHECK_EQ(pthread_rwlock_timedwrlock(arg, &negative), EINVAL);
	CHECK_EQ(pthread_rwlock_timedrdlock(arg, &past), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_timedwrlock(arg, &before_1970), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_clockrdlock(arg, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	CHECK_EQ(pthread_rwlock_clockwrlock(arg, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_tryrdlock(arg), EBUSY);
	CHECK_EQ(pthread_rwlock_trywrlock(arg), EBUSY);
	return NULL;
}

static void rwlocks(void)
{
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;

	CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&l), EDEADLK);
	CHECK_EQ(pthread_rwlock_rdlock(&l), EDEADLK);
	CHECK_EQ(pthread_rwlock_timedwrlock(&l, &past), EDEADLK);
	CHECK_EQ(pthread_rwlock_timedrdlock(&l, &past), EDEADLK);
	CHECK_EQ(pthread_rwlock_tryrdlock(&l), EBUSY);
	CHECK_EQ(pthread_rwlock_trywrlock(&l), EBUSY);
	elsewhere(rw_timed, &l);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	CHECK_EQ(pthread_rwlock_timedwrlock(&l, &wrong), EINVAL);
	CHECK_EQ(pthread_rwlock_rdlock(&l), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&l), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&l), EBUSY);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	CHECK_EQ(pthread_rwlock_destroy(&l), 0);
}

static void semaphores(void)
{
	sem_t s, *named;
	int value;

	FAILS_WITH(sem_init(&s, 0, (unsigned)SEM_VALUE_MAX + 1), EINVAL);
	CHECK_EQ(sem_init(&s, 0, SEM_VALUE_MAX), 0);
	FAILS_WITH(sem_post(&s), EOVERFLOW);
	CHECK_EQ(sem_destroy(&s), 0);
	CHECK_EQ(sem_init(&s, 0, 1), 0);
	CHECK_EQ(sem_clockwait(&s, CLOCK_MONOTONIC, &past), 0);
	FAILS_WITH(sem_trywait(&s), EAGAIN);
	FAILS_WITH(sem_timedwait(&s, &wrong), EINVAL);
	FAILS_WITH(sem_timedwait(&s, &negative), EINVAL);
	FAILS_WITH(sem_timedwait(&s, &past), ETIMEDOUT);
	FAILS_WITH(sem_timedwait(&s, &before_1970), ETIMEDOUT);
	FAILS_WITH(sem_clockwait(&s, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	FAILS_WITH(sem_clockwait(&s, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	CHECK_EQ(sem_post(&s), 0);
	FAILS_WITH(sem_timedwait(&s, &wrong), EINVAL);
	CHECK_EQ(sem_getvalue(&s, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(sem_destroy(&s), 0);
	errno = 0;
	named = sem_open("/kochab-none-of-that-name", 0);
	CHECK(named == SEM_FAILED);
	CHECK_EQ(errno, ENOENT);
	FAILS_WITH(sem_unlink("/kochab-none-of-that-name"), ENOENT);
	named = sem_open("kochab/slash", O_CREAT, 0600, 0);
	CHECK(named == SEM_FAILED);
	CHECK_EQ(errno, EINVAL);
	named = sem_open("/kochab-too-much", O_CREAT, 0600, (unsigned)SEM_VALUE_MAX + 1);
	CHECK(named == SEM_FAILED);
	CHECK_EQ(errno, EINVAL);
	FAILS_WITH(sem_close(&s), EINVAL);
}

static void others(void)
{
	pthread_spinlock_t spin;
	pthread_barrier_t b;
	pthread_key_t key;

	CHECK_EQ(pthread_barrier_init(&b, NULL, 0), EINVAL);
	CHECK_EQ(pthread_barrier_init(&b, NULL, (unsigned)INT_MAX + 1), EINVAL);
	CHECK_EQ(pthread_spin_init(&spin, 0), 0);
	CHECK_EQ(pthread_spin_lock(&spin), 0);
	CHECK_EQ(pthread_spin_trylock(&spin), EBUSY);
	CHECK_EQ(pthread_key_create(&key, NULL), 0);
	CHECK_EQ(pthread_key_delete(key), 0);
	CHECK_EQ(pthread_key_delete(key), EINVAL);
	CHECK_EQ(pthread_setspecific(key, &key), EINVAL);
	CHECK(pthread_getspecific(key) == NULL);
	CHECK_EQ(pthread_key_delete(100000), EINVAL);
	CHECK_EQ(pthread_setconcurrency(-1), EINVAL);
	CHECK_EQ(pthread_setconcurrency(3), 0);
	CHECK_EQ(pthread_getconcurrency(), 3);
}

static void all_keys(void)
{
	pthread_key_t keys[PTHREAD_KEYS_MAX + 1];
	int n = 0, e;

	while ((e = pthread_key_create(&keys[n], NULL)) == 0)
		CHECK(++n <= PTHREAD_KEYS_MAX);
	CHECK_EQ(e, EAGAIN);
	CHECK_EQ(tss_create(&keys[n], NULL), thrd_error);
	while (n > 0)
		CHECK_EQ(pthread_key_delete(keys[--n]), 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *wait_to_go(void *arg)
{
	CHECK_EQ(sem_wait(&go), 0);
	CHECK_EQ(sem_post(&done), 0);
	return arg;
}

static void about_thread(pthread_t t)
{
	struct sched_param p = { .sched_priority = 0 };
	char name[16], too_short[4];
	cpu_set_t none, all;
	int policy;

	CPU_ZERO(&none);
	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CHECK_EQ(pthread_setname_np(t, "a name of more than 15 bytes"), ERANGE);
	CHECK_EQ(pthread_setname_np(t, "fifteen bytes ."), 0);
	CHECK_EQ(pthread_getname_np(t, name, sizeof(name)), 0);
	CHECK_EQ(strcmp(name, "fifteen bytes ."), 0);
	CHECK_EQ(pthread_getname_np(t, too_short, sizeof(too_short)), ERANGE);
	CHECK_EQ(pthread_setschedparam(t, 17, &p), EINVAL);
	CHECK_EQ(pthread_setschedparam(t, SCHED_FIFO, &p), EINVAL);
	p.sched_priority = 1;
	CHECK_EQ(pthread_setschedparam(t, SCHED_OTHER, &p), EINVAL);
	CHECK_EQ(pthread_setschedprio(t, 1000), EINVAL);
	CHECK_EQ(pthread_getschedparam(t, &policy, &p), 0);
	CHECK_EQ(policy, SCHED_OTHER);
	CHECK_EQ(pthread_setaffinity_np(t, sizeof(none), &none), EINVAL);
	CHECK_EQ(pthread_getaffinity_np(t, 1, &none), EINVAL);
	CHECK_EQ(pthread_setaffinity_np(t, sizeof(all), &all), 0);
	CHECK_EQ(pthread_getaffinity_np(t, 1, &none), EINVAL); /* also for the affinity that was set */
	CHECK_EQ(pthread_kill(t, 0), 0);
	CHECK_EQ(pthread_kill(t, 1000), EINVAL);
	CHECK_EQ(pthread_sigqueue(t, 1000, (union sigval){ 0 }), EINVAL);
	CHECK_EQ(pthread_sigqueue(t, 0, (union sigval){ 0 }), 0);
	CHECK_EQ(pthread_kill(t, -1), EINVAL);
}

static void joining(pthread_t t)
{
	CHECK_EQ(pthread_join(pthread_self(), NULL), EDEADLK);
	CHECK_EQ(pthread_tryjoin_np(t, NULL), EBUSY);
	CHECK_EQ(pthread_timedjoin_np(t, NULL, &past), ETIMEDOUT);
	CHECK_EQ(pthread_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	/* old versions of glibc do not test the clock */
	if (under_kochab() || !libc_is_before("2.34"))
		CHECK_EQ(pthread_clockjoin_np(t, NULL, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
}

static void threads(void)
{
	pthread_attr_t a;
	sigset_t set;
	pthread_t t;
	int old;

	CHECK_EQ(pthread_create(&t, NULL, wait_to_go, NULL), 0);
	about_thread(t);
	joining(t);
	CHECK_EQ(sem_post(&go), 0);
	CHECK_EQ(sem_wait(&done), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	CHECK_EQ(pthread_create(&t, &a, wait_to_go, NULL), 0);
	CHECK_EQ(pthread_detach(t), EINVAL);
	CHECK_EQ(pthread_join(t, NULL), EINVAL);
	CHECK_EQ(pthread_tryjoin_np(t, NULL), EBUSY);
	CHECK_EQ(sem_post(&go), 0);
	CHECK_EQ(sem_wait(&done), 0);
	CHECK_EQ(pthread_setcancelstate(17, &old), EINVAL);
	CHECK_EQ(pthread_setcanceltype(17, &old), EINVAL);
	sigemptyset(&set);
	CHECK_EQ(pthread_sigmask(17, &set, NULL), EINVAL);
	CHECK_EQ(pthread_sigmask(17, NULL, &set), 0);
}

static void processes(void)
{
	struct sched_param p = { .sched_priority = 5 };
	cpu_set_t none;

	CPU_ZERO(&none);
	FAILS_WITH(sched_get_priority_max(17), EINVAL);
	FAILS_WITH(sched_setscheduler(0, SCHED_OTHER, &p), EINVAL);
	FAILS_WITH(sched_setscheduler(0, 17, &p), EINVAL);
	FAILS_WITH(sched_getscheduler(-1), EINVAL);
	FAILS_WITH(sched_setaffinity(0, sizeof(none), &none), EINVAL);
	FAILS_WITH(nanosleep(&wrong, NULL), EINVAL);
	FAILS_WITH(nanosleep(&before_1970, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &past, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wrong, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &before_1970, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(17000, 0, &past, NULL), EINVAL);
}

/* ---- C11 ------------------------------------------------------------------------------------- */

static void c11(void)
{
	mtx_t m;
	cnd_t c;

	CHECK_EQ(mtx_init(&m, mtx_timed | mtx_recursive), thrd_success);
	CHECK_EQ(mtx_lock(&m), thrd_success);
	CHECK_EQ(mtx_trylock(&m), thrd_success);
	CHECK_EQ(mtx_unlock(&m), thrd_success);
	CHECK_EQ(mtx_unlock(&m), thrd_success);
	CHECK_EQ(mtx_unlock(&m), thrd_error);
	mtx_destroy(&m);
	CHECK_EQ(mtx_init(&m, mtx_timed), thrd_success);
	CHECK_EQ(cnd_init(&c), thrd_success);
	CHECK_EQ(mtx_lock(&m), thrd_success);
	CHECK_EQ(mtx_trylock(&m), thrd_busy);
	CHECK_EQ(mtx_timedlock(&m, &past), thrd_timedout);
	CHECK_EQ(mtx_timedlock(&m, &wrong), thrd_error);
	CHECK_EQ(cnd_timedwait(&c, &m, &past), thrd_timedout);
	CHECK_EQ(cnd_timedwait(&c, &m, &wrong), thrd_error);
	CHECK_EQ(mtx_unlock(&m), thrd_success);
	CHECK_EQ(thrd_join(thrd_current(), NULL), thrd_error);
	CHECK_EQ(thrd_sleep(&wrong, NULL), -2);
}

static void *all(void *arg)
{
	static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
		PTHREAD_MUTEX_ERRORCHECK };

	thread_attributes();
	other_attributes();
	for (int t = 0; t < 3; t++)
		for (int robust = 0; robust < 2; robust++) {
			mutex_kind(types[t], PTHREAD_PRIO_NONE, robust);
			mutex_kind(types[t], PTHREAD_PRIO_INHERIT, robust);
		}
	conditions();
	rwlocks();
	semaphores();
	others();
	all_keys();
	threads();
	processes();
	c11();
	return arg;
}

int main(void)
{
	CHECK_EQ(sem_init(&go, 0, 0), 0);
	CHECK_EQ(sem_init(&done, 0, 0), 0);
	all(NULL); /* at first without any thread */
	elsewhere(all, NULL);
	return 0;
}
