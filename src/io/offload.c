/* io/offload.c - a bounded number of kernel threads that make others' system calls. Contract in offload.h.
 * Queue and numbers are under one lock, held for a few instructions; a worker that finds nothing sleeps on `work`, which
 * each new job counts up. Workers are no VPs and run with all signals blocked. */
#include "io/offload.h"

#include <errno.h>
#include <signal.h>

#include "base/option.h"
#include "core/body_thread.h"
#include "os/real.h"
#include "os/sys.h"

enum { QUEUED, BEGUN, DONE };
enum { IDLE_NS = 200000000 };

static struct {
	a32 lock;
	a32 work; /* a futex */
	/* under lock */
	struct kbi_offload *first, **last;
	uint32_t threads, idle, jobs;
} pool;

static struct kbi_offload *take(void)
{
	struct kbi_offload *o;

	kbi_spin_lock_bit(&pool.lock, 1);
	o = pool.first;
	if (o) {
		pool.first = o->next;
		if (!pool.first)
			pool.last = NULL;
		pool.jobs--;
		a_store_rlx(&o->state, BEGUN);
	}
	kbi_spin_unlock_bit(&pool.lock, 1);
	return o;
}

static void run(struct kbi_offload *o)
{
	struct kbi_task *t = o->task;

	o->result = kbi_sys6(o->nr, o->arg[0], o->arg[1], o->arg[2], o->arg[3], o->arg[4], o->arg[5]);
	/* release: partner is the acquire in kbi_offload_call. The job is gone */
	a_store_rel(&o->state, DONE);
	kbi_wait_wake(t);
}

/* False: nothing has come for long, and the thread is no longer counted. */
static bool sleep_for_work(void)
{
	struct timespec ts = { 0, IDLE_NS };
	uint32_t seen;
	bool over;

	kbi_spin_lock_bit(&pool.lock, 1);
	seen = a_load_rlx(&pool.work);
	over = pool.first != NULL;
	pool.idle += !over;
	kbi_spin_unlock_bit(&pool.lock, 1);
	if (over)
		return true;
	over = kbi_sys_futex_wait(&pool.work, seen, &ts) == -ETIMEDOUT;
	kbi_spin_lock_bit(&pool.lock, 1);
	pool.idle--;
	over = over && !pool.first;
	pool.threads -= over;
	kbi_spin_unlock_bit(&pool.lock, 1);
	return !over;
}

static void *worker(void *arg)
{
	struct kbi_offload *o;

	do
		while ((o = take()) != NULL)
			run(o);
	while (sleep_for_work());
	return arg;
}

static bool start_worker(void)
{
	sigset_t all, old;
	int e;

	sigfillset(&all);
	kbi_real.pthread_sigmask(SIG_SETMASK, &all, &old);
	e = kbi_body_kernel_thread(worker, NULL);
	kbi_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e == 0;
}

/* Queued; *more: and a new worker is counted that the caller must start. */
static void enqueue(struct kbi_offload *o, bool *more)
{
	kbi_spin_lock_bit(&pool.lock, 1);
	o->next = NULL;
	if (pool.first)
		*pool.last = o;
	else
		pool.first = o;
	pool.last = &o->next;
	pool.jobs++;
	*more = pool.jobs > pool.idle && pool.threads < kbi_options.io_threads;
	pool.threads += *more;
	a_store_rlx(&pool.work, a_load_rlx(&pool.work) + 1);
	kbi_spin_unlock_bit(&pool.lock, 1);
	kbi_sys_futex_wake(&pool.work, 1);
}

/* Out of the queue, if nobody has begun it. Links are few: the queue is as long as the pool is behind. */
static bool withdraw(struct kbi_offload *o)
{
	struct kbi_offload **at;
	bool queued;

	kbi_spin_lock_bit(&pool.lock, 1);
	queued = a_load_rlx(&o->state) == QUEUED;
	if (queued) {
		for (at = &pool.first; *at != o; at = &(*at)->next)
			;
		*at = o->next;
		if (!o->next)
			pool.last = at;
		pool.jobs--;
	}
	kbi_spin_unlock_bit(&pool.lock, 1);
	return queued;
}

/* The worker that was counted could not be started. True: there is no other either, and the job is the caller's again. */
static bool nobody_works(struct kbi_offload *o)
{
	bool none;

	kbi_spin_lock_bit(&pool.lock, 1);
	none = --pool.threads == 0;
	kbi_spin_unlock_bit(&pool.lock, 1);
	return none && withdraw(o);
}

/* Waits for its end, or withdraws it. */
static void await(struct kbi_offload *o, struct kbi_until until)
{
	/* acquire: partner is the release in run */
	while (a_load_acq(&o->state) != DONE) {
		int e = kbi_waitq_sleep(o->task, until);

		if (!e || e == EAGAIN)
			continue;
		kbi_np_enter(o->task);
		if (withdraw(o)) {
			kbi_np_leave(o->task);
			o->result = -e;
			return;
		}
		kbi_np_leave(o->task);
		until = kbi_waitq_until(KBI_FOREVER);
	}
}

bool kbi_offload_call(struct kbi_offload *o, struct kbi_until until)
{
	struct kbi_task *self = kbi_self();
	bool more, none = false;

	o->task = self;
	a_store_rlx(&o->state, QUEUED);
	kbi_np_enter(self);
	enqueue(o, &more);
	if (more && !start_worker())
		none = nobody_works(o);
	kbi_np_leave(self);
	if (!none)
		await(o, until);
	return !none;
}
