/* posix/standin_libc.c - libc stand-ins: kernel threads that wait in libc for lightweight threads.
 * Process-shared condition variables and barriers are libc's, and libc waits in the kernel.
 * Lightweight threads wait there themselves (posix/aside) while there are enough kernel threads.
 * For each further one a kernel thread of ours calls libc. It enters the condition variable with a
 * mutex of its own; once that mutex is free the wait is known to other processes, and the
 * lightweight thread unlocks the program's mutex.
 * A thread that waits long for a process-shared semaphore also has a kernel thread that waits in
 * libc: posts of other processes wake that kernel thread only. It is called back before a handler
 * of the program runs, since a handler may leave by a jump. Readers-writer locks work equally, but
 * handlers run during the wait, as in libc.
 * A killed process with a successor (option contain) loses these kernel threads, and libc's
 * condition variable would count on them for ever. Then stand-ins are used for barriers only.
 * Callers: posix/cond, barrier, sem, rwlock. Waiting may switch. */
#include "posix/posix.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "libc/tcb.h"
#include "os/sys.h"
#include "posix/aside.h"
#include "sync/sem.h"

enum job { JOB_COND, JOB_BARRIER, JOB_SEM, JOB_READ, JOB_WRITE, JOB_QUIT };

struct waiter {
	struct waiter *next; /* while idle: the stack's; else the owner's */
	pthread_t id;
	kb_sem_t job, ready, done;
	/* libc's mutex; held by this kernel thread from before `ready` until it waits */
	pthread_mutex_t own;
	/* written by the lightweight thread before it posts `job` */
	enum job kind;
	void *object;
	/* -1: the condition variable's. Unused for another object unless the wait is timed */
	clockid_t clock;
	bool timed;
	struct timespec until;
	/* written by the kernel thread before it posts `done` */
	int result;
};

/* Each waiter is a kernel thread with a stack, which a fork copies, too. Waiters above IDLE_MAX end
 * with their work; at most WORD_MAX threads have a waiter for a semaphore or a readers-writer lock,
 * at which a thread can also look itself. */
enum { IDLE_MAX = 64, WORD_MAX = 64, LOOK_NS = 1000000 };

static aptr idle;  /* stack of struct waiter; any thread, atomic */
static a32 n_idle; /* about how many */
static a32 n_word; /* threads with a waiter for a semaphore or a readers-writer lock */

static void push_idle_waiters(struct waiter *first, struct waiter *last)
{
	void *old = a_load_rlx(&idle);

	do
		last->next = old;
	while (!a_cas_rel(&idle, &old, first)); /* release: partner is take_or_make_waiter */
}

/* ---- by the caller itself ----------------------------------------------------------------- */

/* True if libc may unlock and lock m: no thread here sleeps for the mutex, as libc would not tell
 * that thread that the mutex is free; and m is neither robust, PI nor PP, as its owner is our
 * number, not the kernel thread's. */
static bool is_left_to_libc(const pthread_mutex_t *m)
{
	enum { ROBUST = 16, PI = 32, PP = 64, SHARED = 128 };

	return (m->__data.__kind & (ROBUST | PI | PP | SHARED)) == SHARED &&
		!kbi_libc_mutex_has_sleepers();
}

int kbi_standin_libc_call_cond(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime)
{
	if (!abstime)
		return kbi_libc()->pthread_cond_wait(c, m);
	if (clock < 0)
		return kbi_libc()->pthread_cond_timedwait(c, m, abstime);
	return kbi_libc()->pthread_cond_clockwait(c, m, clock, abstime);
}

/* Waits aside. -1: it cannot. */
static int cond_aside(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime)
{
	bool aside KBI_ASIDE = is_left_to_libc(m) && kbi_aside_begin();

	return aside ? kbi_standin_libc_call_cond(c, m, clock, abstime) : -1;
}

/* Waits aside. ENOSYS: it cannot. */
static int barrier_aside(pthread_barrier_t *b)
{
	bool aside KBI_ASIDE = kbi_aside_begin();

	return aside ? kbi_libc()->pthread_barrier_wait(b) : ENOSYS;
}

/* Waits in libc. EINTR: a handler of the program has run. */
static int sem_in_libc(sem_t *s, clockid_t clock, const struct timespec *abstime)
{
	uint32_t before = kbi_posix_me.handled;
	int r;

	do
		r = abstime ? kbi_libc()->sem_clockwait(s, clock, abstime) : kbi_libc()->sem_wait(s);
	while (r && errno == EINTR && kbi_posix_me.handled == before);
	return r ? errno : 0;
}

static int sem_aside(sem_t *s, clockid_t clock, const struct timespec *abstime)
{
	bool aside KBI_ASIDE = kbi_aside_begin();

	return aside ? sem_in_libc(s, clock, abstime) : -1;
}

static int rwlock_in_libc(pthread_rwlock_t *l, bool write, clockid_t clock,
	const struct timespec *abstime)
{
	if (abstime)
		return write ? kbi_libc()->pthread_rwlock_clockwrlock(l, clock, abstime) :
			       kbi_libc()->pthread_rwlock_clockrdlock(l, clock, abstime);
	return write ? kbi_libc()->pthread_rwlock_wrlock(l) : kbi_libc()->pthread_rwlock_rdlock(l);
}

static int rwlock_aside(pthread_rwlock_t *l, bool write, clockid_t clock,
	const struct timespec *abstime)
{
	bool aside KBI_ASIDE = kbi_aside_begin();

	return aside ? rwlock_in_libc(l, write, clock, abstime) : -1;
}

/* ---- by a kernel thread of ours ----------------------------------------------------------- */

static const struct timespec *limit_of_waiter(const struct waiter *w)
{
	return w->timed ? &w->until : NULL;
}

/* Ends the wait if the lightweight thread was cancelled. Then this kernel thread ends, and the
 * lightweight thread frees w. */
static void on_waiter_cancelled(void *arg)
{
	struct waiter *w = arg;

	if (w->kind == JOB_COND)
		kbi_libc()->pthread_mutex_unlock(&w->own);
	w->result = ECANCELED;
	kb_sem_post(&w->done);
}

static void wait_cond(struct waiter *w)
{
	int e;

	kbi_libc()->pthread_mutex_lock(&w->own);
	kb_sem_post(&w->ready);
	pthread_cleanup_push(on_waiter_cancelled, w);
	e = kbi_standin_libc_call_cond(w->object, &w->own, w->clock, limit_of_waiter(w));
	pthread_cleanup_pop(0);
	kbi_libc()->pthread_mutex_unlock(&w->own);
	w->result = e;
	kb_sem_post(&w->done);
}

static void wait_sem(struct waiter *w)
{
	int e;

	pthread_cleanup_push(on_waiter_cancelled, w);
	/* signals are blocked here, except for libc's own */
	e = sem_in_libc(w->object, w->clock, limit_of_waiter(w));
	pthread_cleanup_pop(0);
	w->result = e;
	kb_sem_post(&w->done);
}

static int wait_uncancelled(struct waiter *w)
{
	if (w->kind == JOB_BARRIER)
		return kbi_libc()->pthread_barrier_wait(w->object);
	return rwlock_in_libc(w->object, w->kind == JOB_WRITE, w->clock, limit_of_waiter(w));
}

static void *run_standin_waiter(void *arg)
{
	struct waiter *w = arg;

	kbi_standin_block_signals();
	for (;;) {
		kbi_sem_wait_asked(&w->job, kbi_waitq_until(KBI_FOREVER));
		if (w->kind == JOB_QUIT)
			break;
		if (w->kind == JOB_COND) {
			wait_cond(w);
			continue;
		}
		if (w->kind == JOB_SEM) {
			wait_sem(w);
			continue;
		}
		w->result = wait_uncancelled(w);
		kb_sem_post(&w->done);
	}
	free(w);
	return NULL;
}

static struct waiter *make_waiter(void)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (w && kbi_standin_start(&w->id, run_standin_waiter, w)) {
		free(w);
		w = NULL;
	}
	return w;
}

static struct waiter *take_or_make_waiter(void)
{
	/* acquire: pairs with the release in push_idle_waiters */
	struct waiter *first = a_xchg_acqrel(&idle, NULL), *last;

	if (!first)
		return make_waiter();
	a_sub_rlx(&n_idle, 1);
	last = first->next;
	if (last) {
		struct waiter *rest = last;

		while (last->next)
			last = last->next;
		push_idle_waiters(rest, last);
	}
	return first;
}

static void post_waiter_job(struct waiter *w, enum job kind)
{
	w->kind = kind;
	kb_sem_post(&w->job);
}

/* Puts a waiter back that has done its work. */
static void release_waiter(struct waiter *w)
{
	if (a_add_rlx(&n_idle, 1) < IDLE_MAX) {
		push_idle_waiters(w, w);
		return;
	}
	a_sub_rlx(&n_idle, 1);
	post_waiter_job(w, JOB_QUIT);
}

static int try_waiter_mutex(void *m)
{
	return kbi_libc()->pthread_mutex_trylock(m);
}

/* Waits until w has entered the condition variable. */
static void await_entry(struct waiter *w)
{
	kbi_sem_wait_asked(&w->ready, kbi_waitq_until(KBI_FOREVER));
	kbi_libc_mutex_wait(try_waiter_mutex, &w->own, NULL, CLOCK_MONOTONIC, NULL);
	kbi_libc()->pthread_mutex_unlock(&w->own);
}

/* Calls w back: ECANCELED, or the result that it had before. */
static int recall_waiter(struct waiter *w)
{
	int e;

	pthread_cancel(w->id);
	kbi_sem_wait_asked(&w->done, kbi_waitq_until(KBI_FOREVER));
	e = w->result;
	if (e == ECANCELED)
		free(w);
	else
		post_waiter_job(w, JOB_QUIT); /* its cancellation is pending */
	return e;
}

/* Waits for the result. A signal's handler may run meanwhile. */
static int await_result(struct waiter *w)
{
	int e;

	do {
		e = kbi_sem_wait(&w->done, w->kind == JOB_COND ? kbi_posix_until_cancelled(KBI_FOREVER) :
								 kbi_posix_until(KBI_FOREVER));
		kbi_signal_resumed();
	} while (e == EINTR);
	if (e)
		return recall_waiter(w);
	e = w->result;
	release_waiter(w);
	return e;
}

static void begin_waiter_job(struct waiter *w, enum job kind, void *object, clockid_t clock,
	const struct timespec *abstime)
{
	w->object = object;
	w->clock = clock;
	w->timed = abstime != NULL;
	if (abstime)
		w->until = *abstime;
	post_waiter_job(w, kind);
}

static clockid_t clock_of_shared_cond(const pthread_cond_t *c)
{
	return kbi_cond_flags(c) & KBI_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* Waits without a kernel thread that could be lost: each wait is a short sleep with a spurious
 * wake-up. The program checks its condition, and waits again. */
static int wait_cond_without_standin(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime)
{
	uint64_t at = kbi_timer_now() + LOOK_NS, until = KBI_FOREVER;
	int e = pthread_mutex_unlock(m);

	if (e)
		return e;
	clock = clock < 0 ? clock_of_shared_cond(c) : clock;
	if (abstime)
		until = kbi_timer_deadline(clock, abstime->tv_sec, abstime->tv_nsec);
	kbi_timer_sleep(kbi_self(), at < until ? at : until);
	kbi_signal_resumed();
	e = pthread_mutex_lock(m);
	kbi_cancel_test();
	return !e && abstime && kbi_timer_passed(clock, abstime->tv_sec, abstime->tv_nsec) ? ETIMEDOUT
		: e;
}

int kbi_standin_libc_cond(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime)
{
	struct waiter *w;
	int e, locked;

	if (kbi_standin_may_be_lost())
		return wait_cond_without_standin(c, m, clock, abstime);
	e = cond_aside(c, m, clock, abstime);
	if (e >= 0)
		return e;
	w = take_or_make_waiter();
	if (!w)
		return kbi_mutex_is_libcs(m) ? -1 : wait_cond_without_standin(c, m, clock, abstime);
	begin_waiter_job(w, JOB_COND, c, clock, abstime);
	await_entry(w);
	e = pthread_mutex_unlock(m);
	if (e) { /* not the caller's mutex */
		recall_waiter(w);
		return e;
	}
	e = await_result(w);
	locked = pthread_mutex_lock(m);
	if (e == ECANCELED) {
		kbi_cancel_test();
		e = 0;
	}
	return locked ? locked : e;
}

static struct waiter *take_word_waiter(void)
{
	struct waiter *w = NULL;

	if (kbi_standin_may_be_lost())
		return NULL;
	if (a_add_rlx(&n_word, 1) < WORD_MAX)
		w = take_or_make_waiter();
	if (!w)
		a_sub_rlx(&n_word, 1);
	return w;
}

/* libc locks: for a reader it only counts; for a writer it stores the kernel thread's number, which
 * is replaced. */
static int wait_rwlock(pthread_rwlock_t *l, enum job kind, clockid_t clock,
	const struct timespec *abstime)
{
	int e = rwlock_aside(l, kind == JOB_WRITE, clock, abstime);
	struct waiter *w;

	if (e >= 0)
		return e;
	w = take_word_waiter();
	if (!w)
		return -1;
	begin_waiter_job(w, kind, l, clock, abstime);
	e = await_result(w);
	a_sub_rlx(&n_word, 1);
	/* relaxed: the lock is held, and threads compare it only with their own number */
	if (e == 0 && kind == JOB_WRITE)
		__atomic_store_n(&l->__data.__cur_writer, kbi_posix_owner_tid(), __ATOMIC_RELAXED);
	return e;
}

int kbi_standin_libc_read(void *l, clockid_t clock, const struct timespec *abstime)
{
	return wait_rwlock(l, JOB_READ, clock, abstime);
}

int kbi_standin_libc_write(void *l, clockid_t clock, const struct timespec *abstime)
{
	return wait_rwlock(l, JOB_WRITE, clock, abstime);
}

int kbi_standin_libc_sem(void *s, clockid_t clock, const struct timespec *abstime)
{
	int e = sem_aside(s, clock, abstime);
	struct waiter *w;

	if (e >= 0)
		return e;
	w = take_word_waiter();
	if (!w)
		return -1;
	begin_waiter_job(w, JOB_SEM, s, clock, abstime);
	e = kbi_sem_wait(&w->done, kbi_posix_until_cancelled(KBI_FOREVER));
	if (e) {
		e = recall_waiter(w);
	} else {
		e = w->result;
		release_waiter(w);
	}
	a_sub_rlx(&n_word, 1);
	return e == ECANCELED ? EINTR : e;
}

int kbi_standin_libc_barrier(pthread_barrier_t *b)
{
	int e = barrier_aside(b);
	struct waiter *w = e == ENOSYS ? take_or_make_waiter() : NULL;

	if (e != ENOSYS)
		return e;
	if (!w)
		return kbi_libc()->pthread_barrier_wait(b);
	w->object = b;
	post_waiter_job(w, JOB_BARRIER);
	return await_result(w);
}
