/* core/worker_pool.c - idle workers: workers without a VP. Contract in worker_pool.h. The pool is a
 * stack under a lock, the hottest first. A taker of an idle worker fills in the worker's job and
 * rings; an idle worker that gives up takes itself out under the same lock, and if it is not there
 * any more its job is on the way. Runs on the workers' own stacks; take and give also on threads'
 * stacks, inside np brackets or with none. */
#include "core/worker_pool.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/place.h"
#include "os/lock.h"
#include "os/sys.h"
#include "os/uring.h"

enum {
	READY = 1,   /* idle workers kept although no VP needs them */
	/* workers that their threads keep (kbi_worker_pool_keep), beside the workers that may run */
	KEPT = 4096,
};

struct kbi_worker *kbi_workers;
a32 kbi_worker_pool_low;
void (*kbi_worker_adopted)(struct kbi_vp *vp);

static struct {
	a32 lock;
	/* under the lock */
	struct kbi_worker *idle; /* idle workers */
	struct kbi_worker *unused; /* records whose kernel thread has ended */
	uint32_t max;            /* constant after setup */
	a32 used;                /* records ever used; grows under the lock */
	a32 n_idle, fresh, running, most; /* fresh: on their way to idle for the first time; running:
	                                   * without kept */
	a32 kept;                         /* kept by their threads for good */
	a64 given;
} pool;

static void lock_worker_pool(void)
{
	kbi_lock_take(&pool.lock);
}

static void unlock_worker_pool(void)
{
	kbi_lock_leave(&pool.lock);
}

int kbi_worker_pool_setup(unsigned n)
{
	pool.max = n + kbi_options.spares;
	kbi_workers = kbi_sys_map((pool.max + KEPT + 1) * sizeof *kbi_workers);
	return kbi_workers ? 0 : ENOMEM;
}

/* ---- records --------------------------------------------------------------------------------- */

uint32_t kbi_worker_limit(void)
{
	/* acquire: partner is the release in kbi_worker_pool_record */
	return a_load_acq(&pool.used);
}

struct kbi_worker *kbi_worker_of_tid(int tid)
{
	for (uint32_t i = 1, n = kbi_worker_limit(); i <= n; i++)
		if (a_load_rlx(&kbi_workers[i].tid) == (uint32_t)tid)
			return &kbi_workers[i];
	return NULL;
}

struct kbi_worker *kbi_worker_of_task(struct kbi_task *self)
{
	if (self->vp)
		return self->vp->worker;
	return kbi_thread_of(self)->worker ? &kbi_workers[kbi_thread_of(self)->worker] : NULL;
}

struct kbi_worker *kbi_worker_pool_record(bool fresh)
{
	struct kbi_worker *b;
	uint32_t n;

	lock_worker_pool();
	b = a_load_rlx(&pool.running) < pool.max ? pool.unused : NULL;
	if (b) {
		pool.unused = b->next;
	} else if (a_load_rlx(&pool.running) < pool.max &&
	    (n = a_load_rlx(&pool.used)) < pool.max + KEPT) {
		b = &kbi_workers[n + 1];
		b->index = (uint16_t)(n + 1);
		/* release: partner is the acquire in kbi_worker_limit */
		a_store_rel(&pool.used, n + 1);
	}
	if (b) {
		b->fresh = fresh;
		a_add_rlx(&pool.fresh, fresh);
		a_add_rlx(&pool.running, 1);
		if (a_load_rlx(&pool.running) > a_load_rlx(&pool.most))
			a_store_rlx(&pool.most, a_load_rlx(&pool.running));
	}
	unlock_worker_pool();
	return b;
}

/* Notes, under the lock, that worker b waits, or never will. */
static void note_idle_worker_came(struct kbi_worker *b)
{
	a_sub_rlx(&pool.fresh, b->fresh);
	b->fresh = 0;
}

void kbi_worker_pool_drop(struct kbi_worker *b)
{
	a_store_rlx(&b->tid, 0);
	kbi_worker_pool_keep(b, false);
	a_store_rlx(&b->sigcancel, 0);
	a_store_rlx(&b->posted, 0);
	lock_worker_pool();
	note_idle_worker_came(b);
	b->next = pool.unused;
	pool.unused = b;
	a_sub_rlx(&pool.running, 1);
	unlock_worker_pool();
}

void kbi_worker_pool_keep(struct kbi_worker *b, bool kept)
{
	if (a_load_rlx(&b->changed) == kept)
		return;
	a_store_rlx(&b->changed, kept);
	lock_worker_pool();
	if (kept) {
		a_add_rlx(&pool.kept, 1);
		a_sub_rlx(&pool.running, 1);
	} else {
		a_sub_rlx(&pool.kept, 1);
		a_add_rlx(&pool.running, 1);
	}
	unlock_worker_pool();
}

void kbi_worker_pool_after_fork(void)
{
	a_store_rlx(&pool.lock, 0);
	a_store_rlx(&pool.n_idle, 0);
	pool.idle = NULL;
}

struct kbi_worker_pool_counts kbi_worker_pool_counts(void)
{
	return (struct kbi_worker_pool_counts){
		.workers = a_load_rlx(&pool.running) + a_load_rlx(&pool.kept),
		.idle = a_load_rlx(&pool.n_idle),
		.most = a_load_rlx(&pool.most),
		.given = a_load_rlx(&pool.given),
	};
}

int kbi_worker_pool_idle_tid(void)
{
	int tid;

	lock_worker_pool();
	tid = pool.idle ? (int)a_load_rlx(&pool.idle->tid) : 0;
	unlock_worker_pool();
	return tid;
}

/* ---- taking and giving ----------------------------------------------------------------------- */

bool kbi_worker_pool_may_grow(void)
{
	return a_load_rlx(&pool.running) < pool.max;
}

bool kbi_worker_pool_is_low(void)
{
	return a_load_rlx(&pool.n_idle) + a_load_rlx(&pool.fresh) < READY && kbi_worker_pool_may_grow();
}

bool kbi_worker_pool_is_scarce(void)
{
	return a_load_rlx(&pool.n_idle) + a_load_rlx(&pool.fresh) + pool.max <=
	       a_load_rlx(&pool.running) + kbi_vp_n;
}

void kbi_worker_pool_tell(void)
{
	/* a full fence between the caller's taking and this; partner: the fence in core/worker_maker */
	if (!a_xchg_acqrel(&kbi_worker_pool_low, 1))
		kbi_sys_futex_wake(&kbi_worker_pool_low, 1);
}

struct kbi_worker *kbi_worker_pool_take(void)
{
	struct kbi_worker *b;

	if (!a_load_rlx(&pool.n_idle))
		return NULL;
	lock_worker_pool();
	b = pool.idle;
	if (b) {
		pool.idle = b->next;
		a_sub_rlx(&pool.n_idle, 1);
	}
	unlock_worker_pool();
	if (b && kbi_worker_pool_is_low())
		kbi_worker_pool_tell();
	return b;
}

void kbi_worker_pool_put(struct kbi_worker *b)
{
	lock_worker_pool();
	note_idle_worker_came(b);
	b->next = pool.idle;
	pool.idle = b;
	a_add_rlx(&pool.n_idle, 1);
	unlock_worker_pool();
}

void kbi_worker_pool_give(struct kbi_worker *b, struct kbi_vp *vp)
{
	a_add_rlx(&pool.given, 1);
	/* release: partner is the acquire in wait_for_job; vp's state goes with it */
	a_store_rel(&b->job, vp);
	a_store_rel(&b->bell, 1);
	kbi_sys_futex_wake(&b->bell, 1);
}

/* Takes me out of the pool. Returns false if me has been taken and its job comes, or me is kept
 * ready. */
static bool leave_pool(struct kbi_worker *me)
{
	bool found = false;

	lock_worker_pool();
	for (struct kbi_worker **b = &pool.idle; *b && a_load_rlx(&pool.n_idle) > READY; b =
		&(*b)->next) if (*b == me) {
			*b = me->next;
			a_sub_rlx(&pool.n_idle, 1);
			found = true;
			break;
		}
	unlock_worker_pool();
	return found;
}

/* Returns true if this very kernel thread has children: some asked for a signal at its end, or are
 * traced until then (prctl's PR_SET_PDEATHSIG). The kernel would give them another parent in the
 * process, but not without that signal. */
static bool has_children(void)
{
	siginfo_t info;

	return kbi_sys(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD,
	       NULL) != -ECHILD;
}

/* Returns true if the kernel would end or report anything at the end of this kernel thread, whose
 * thread has gone on elsewhere. */
static bool is_end_noticeable(void)
{
	return has_children() || kbi_uring_used_here();
}

/* Waits for a VP as an idle worker. NULL: me has waited for long and has left the pool. */
static struct kbi_vp *wait_for_job(struct kbi_worker *me)
{
	uint32_t ms = kbi_options.spare_ms;
	struct timespec patience = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	bool stays = me->leader;
	struct kbi_vp *vp;

	a_store_rlx(&me->bell, 0);
	a_store_rlx(&me->job, NULL);
	kbi_worker_pool_put(me);
	/* acquire: partner is the release in kbi_worker_pool_give */
	while (!(vp = a_load_acq(&me->job))) {
		long e = kbi_sys_futex_wait(&me->bell, 0, stays ? NULL : &patience);

		if (e == -ETIMEDOUT && !is_end_noticeable()) {
			if (leave_pool(me))
				return NULL;
			stays = true; /* surplus workers end by themselves */
		}
		/* the bell is late, or belongs to the next job: the job before ended before its giver,
		 * between job and bell, had rung. acquire: partner is the release in
		 * kbi_worker_pool_give */
		if (e == -EAGAIN)
			a_xchg_acqrel(&me->bell, 0);
	}
	return vp;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Makes me the worker of vp: the agent runs here from now on. */
static void adopt_vp(struct kbi_worker *me, struct kbi_vp *vp)
{
	vp->cur = NULL;
	vp->cur_tp = (kbi_tpword)me->tp;
	*me->self_slot = NULL;
	kbi_vp_embody(vp, me);
	kbi_place_take(vp);
	if (kbi_worker_adopted)
		kbi_worker_adopted(vp);
	/* release: partners are the acquires in kbi_handoff_is_given and core/lending */
	a_store_rel(&vp->lent, 0);
}

/* Returns true if the worker is a thread's for good. The process's first kernel thread then stays,
 * because the process's name and more depend on it, but serves no VP and does not count. */
static bool is_worker_kept(struct kbi_worker *me)
{
	if (!a_load_rlx(&me->changed) || !me->leader)
		return a_load_rlx(&me->changed);
	a_sub_rlx(&pool.kept, 1);
	for (;;)
		kbi_sys_futex_wait(&me->bell, a_load_rlx(&me->bell), NULL);
}

void kbi_worker_life(struct kbi_worker *me)
{
	struct kbi_vp *vp = me->vp;

	while (vp || (!is_worker_kept(me) && (vp = wait_for_job(me)))) {
		adopt_vp(me, vp);
		kbi_agent_run(me);
		vp = NULL;
	}
}
