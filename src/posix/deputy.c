/* posix/deputy.c - contract in deputy.h. A list of deputies under a lock that no handler
 * interrupts; a deputy frees its own entry at its end.
 * Rejected: to note the change and to compare it with the kernel's rules here (they are many); to
 * wake the thread so that it makes the call itself (the caller would have to wait for it). */
#include "posix/deputy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/handoff.h"
#include "core/worker_thread.h"
#include "posix/bind.h"
#include "posix/signal_priv.h"

enum { IO_OF_THREAD = 1 /* IOPRIO_WHO_PROCESS */ };

struct deputy {
	struct deputy *next;       /* under the lock */
	struct kbi_signal_to whom; /* constant */
	bool wishes;               /* its thread has to take over a change; under the lock */
	a32 tid;                   /* 0: not known yet; written by the deputy */
	a32 over;
};

/* What the kernel keeps for a kernel thread and another thread may set, except for affinity
 * (posix/affinity). */
struct kept {
	struct kbi_sys_schedule sched;
	long io;
};

static a32 lock;
static struct deputy *all; /* under the lock */
static a32 n_wishes;       /* number of deputies whose `wishes` is set; changed under the lock */

/* ---- what is kept ------------------------------------------------------------------------- */

static void read_kept(struct kept *k, int tid)
{
	memset(k, 0, sizeof(*k));
	kbi_sys(SYS_sched_getattr, tid, &k->sched, sizeof(k->sched), 0);
	k->io = kbi_sys(SYS_ioprio_get, IO_OF_THREAD, tid);
}

/* Gives it to the calling kernel thread, as far as that has permission. */
static void take_kept(const struct kept *k)
{
	struct kept mine;

	read_kept(&mine, 0);
	if (memcmp(&mine.sched, &k->sched, sizeof(mine.sched)) != 0)
		kbi_sys(SYS_sched_setattr, 0, &k->sched, 0);
	if (k->io >= 0 && mine.io != k->io)
		kbi_sys(SYS_ioprio_set, IO_OF_THREAD, 0, k->io);
}

/* ---- a deputy's life ---------------------------------------------------------------------- */

struct birth {
	struct deputy *d;
	const struct kept *like;
};

static void *run_deputy(void *arg)
{
	const struct birth *b = arg;
	struct deputy *d = b->d;
	uint64_t set = ~(kbi_signal_bit(KBI_LIBC_FIRST) | kbi_signal_bit(KBI_LIBC_LAST) |
		kbi_broadcast_bit());
	siginfo_t info;

	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, KBI_MASK_BYTES);
	kbi_handoff_helps();
	take_kept(b->like);
	/* release: pairs with the acquire in start_deputy; b's memory may be gone from here on */
	a_store_rel(&d->tid, (uint32_t)kbi_sys_gettid());
	kbi_sys_futex_wake(&d->tid, 1);
	/* acquire: pairs with the release in dismiss_deputy */
	while (!a_load_acq(&d->over)) {
		long sig = kbi_sys(SYS_rt_sigtimedwait, &set, &info, NULL, KBI_MASK_BYTES);

		if (sig > 0 && !a_load_acq(&d->over) && kbi_signal_ok((int)sig) && kbi_bind_has(d->whom))
			kbi_signal_send(d->whom, &info, false);
	}
	kbi_handoff_helps_no_more();
	free(d);
	return NULL;
}

/* Starts a kernel thread with the state of the kernel thread number `like`. False: no more kernel
 * threads. */
static bool start_deputy(struct deputy *d, int like)
{
	struct kept kept;
	struct birth b = { d, &kept };

	read_kept(&kept, like);
	if (kbi_worker_kernel_thread(run_deputy, &b))
		return false;
	/* acquire: pairs with the release in run_deputy */
	while (!a_load_acq(&d->tid))
		kbi_sys_futex_wait(&d->tid, 0, NULL);
	return true;
}

/* Ends a deputy. Call under the lock, with the deputy off the list. */
static void dismiss_deputy(struct deputy *d)
{
	int tid = (int)a_load_rlx(&d->tid);

	if (d->wishes)
		a_sub_rlx(&n_wishes, 1);
	/* release: pairs with the acquire in run_deputy */
	a_store_rel(&d->over, 1);
	kbi_sys_signal(tid, kbi_preempt_signal());
}

/* ---- the list ----------------------------------------------------------------------------- */

static bool is_deputy_for(const struct deputy *d, const struct kbi_signal_to *to)
{
	return d->whom.t == to->t && d->whom.number == to->number;
}

static struct deputy *find_deputy(struct kbi_signal_to to)
{
	struct deputy *d = all;

	while (d && !is_deputy_for(d, &to))
		d = d->next;
	return d;
}

/* Returns the thread's deputy. Call under the lock. NULL: there are no more kernel threads, no
 * memory, or the thread ends. */
static struct deputy *find_or_make_deputy(struct kbi_signal_to to)
{
	struct deputy *d = find_deputy(to);

	if (d)
		return d;
	a_store_rlx(&kbi_posix_helped, 1);
	/* pairs with the fence at the end of an ending thread's signals, before it reads
	 * kbi_posix_helped */
	a_fence_sc();
	if (kbi_signal_is_over(to.t) || !kbi_bind_has(to))
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->whom = to;
	if (!start_deputy(d, kbi_bind_shown(to.t))) {
		free(d);
		return NULL;
	}
	d->next = all;
	all = d;
	return d;
}

/* ---- the thread takes over ---------------------------------------------------------------- */

static int tid_of_wish(struct kbi_signal_to to)
{
	uint64_t old = kbi_signal_enter(&lock);
	const struct deputy *d = find_deputy(to);
	int tid = d && d->wishes ? (int)a_load_rlx(&d->tid) : 0;

	kbi_signal_leave(&lock, old);
	return tid;
}

static bool has_errand(void)
{
	struct kbi_task *self = kbi_self_raw();

	return kbi_unlikely(a_load_rlx(&n_wishes)) && kbi_bind_is_light() &&
		tid_of_wish(kbi_signal_to(kbi_thread_of(self)));
}

/* Takes the change over, on the thread itself, before it goes on. */
static void run_errand(void)
{
	struct kept kept;
	struct deputy *d;
	uint64_t old;

	struct kbi_task *self = kbi_self_raw();

	if (kbi_likely(!has_errand()) || a_load_rlx(&self->np) ||
		(!self->vp && !a_load_rlx(&kbi_posix_me.bound)))
		return; /* the errand stays due and is run later */
	if (!kbi_bind_change("what another thread has set for it", KBI_BIND_TURNED))
		return;
	old = kbi_signal_enter(&lock);
	d = find_deputy(kbi_signal_to(kbi_thread_of(kbi_self_raw())));
	if (d && d->wishes) {
		read_kept(&kept, (int)a_load_rlx(&d->tid));
		take_kept(&kept);
		d->wishes = false;
		a_sub_rlx(&n_wishes, 1);
	}
	kbi_signal_leave(&lock, old);
	kbi_thread_attrs_adopted();
}

static const struct kbi_signal_errand errand = { has_errand, run_errand };

/* Makes a thread that runs, or is in a blocking call, look for its errand. */
static void nudge_thread(const struct kb_thread *t)
{
	/* acquire: pairs with the release store of the state by the task's owner */
	uint64_t st = a_load_acq(&t->task.state);

	a_store_rlx(&kbi_signal_watch, 1);
	if (kbi_state_kind(st) == KBI_TASK_RUNNING || kbi_state_kind(st) == KBI_TASK_BLOCKED)
		kbi_signal_kick(kbi_bind_shown(t));
}

/* ---- from outside ------------------------------------------------------------------------- */

long kbi_deputy_change(struct kbi_signal_to to, long n, const long *a, int at)
{
	long b[6], r = kbi_signal_is_over(to.t) || !kbi_bind_has(to) ? -ESRCH : -EAGAIN;
	struct kept before, after;
	struct deputy *d;
	uint64_t old;

	memcpy(b, a, sizeof(b));
	/* release: pairs with the acquire in kbi_signal_resumed_slow */
	a_store_rel(&kbi_signal_errand, (void *)(uintptr_t)&errand);
	kbi_signal_listen();
	old = kbi_signal_enter(&lock);
	d = find_or_make_deputy(to);
	if (d) {
		b[at] = (long)a_load_rlx(&d->tid);
		read_kept(&before, (int)b[at]);
		r = kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
		read_kept(&after, (int)b[at]);
		if (!d->wishes && memcmp(&before, &after, sizeof(before)) != 0) {
			d->wishes = true;
			a_add_rlx(&n_wishes, 1);
		}
	}
	kbi_signal_leave(&lock, old);
	if (d)
		nudge_thread(to.t);
	return r;
}

int kbi_deputy_shows(struct kbi_signal_to to)
{
	return kbi_likely(!a_load_rlx(&n_wishes)) ? 0 : tid_of_wish(to);
}

int kbi_deputy_receives(struct kbi_signal_to to)
{
	struct deputy *d;
	uint64_t old;
	int tid;

	kbi_signal_need_dispatcher();
	kbi_signal_listen();
	old = kbi_signal_enter(&lock);
	d = find_or_make_deputy(to);
	tid = d ? (int)a_load_rlx(&d->tid) : -EAGAIN;
	kbi_signal_leave(&lock, old);
	return tid;
}

static struct kb_thread *find_master(int tid)
{
	uint64_t old = kbi_signal_enter(&lock);
	struct deputy *d = all;
	struct kb_thread *t;

	while (d && (int)a_load_rlx(&d->tid) != tid)
		d = d->next;
	t = d && kbi_bind_has(d->whom) ? d->whom.t : NULL;
	kbi_signal_leave(&lock, old);
	return t;
}

void kbi_deputy_thread_ends(void)
{
	struct kbi_signal_to to = kbi_signal_to(kbi_thread_of(kbi_self_raw()));
	struct deputy **at, *d;
	uint64_t old;

	if (kbi_likely(!a_load_rlx(&kbi_posix_helped)) || kbi_posix_forked)
		return;
	old = kbi_signal_enter(&lock);
	for (at = &all; (d = *at) && !is_deputy_for(d, &to);)
		at = &d->next;
	if (d) {
		*at = d->next;
		dismiss_deputy(d);
	}
	kbi_signal_leave(&lock, old);
}

/* ---- owners of descriptors ---------------------------------------------------------------- */

int kbi_deputy_set_owner(Fcntl *original, int fd, const struct f_owner_ex *given)
{
	struct f_owner_ex own = *given;
	struct kb_thread *t = own.type == F_OWNER_TID ? kbi_bind_find(own.pid) : NULL;

	if (!t)
		return original(fd, F_SETOWN_EX, (long)(uintptr_t)given);
	if (kbi_bind_is_self(own.pid)) {
		kbi_bind_self("F_SETOWN_EX", KBI_BIND_WATCHED);
		own.pid = kbi_sys_gettid();
		a_store_rlx(&kbi_posix_me.owns, 1);
	} else {
		own.pid = kbi_deputy_receives((struct kbi_signal_to){ t, (uint32_t)own.pid });
	}
	if (own.pid > 0)
		return original(fd, F_SETOWN_EX, (long)(uintptr_t)&own);
	errno = -own.pid;
	return -1;
}

int kbi_deputy_owner(Fcntl *original, int fd, struct f_owner_ex *own)
{
	int r = original(fd, F_GETOWN_EX, (long)(uintptr_t)own);
	const struct kb_thread *t;

	if (r != 0 || own->type != F_OWNER_TID)
		return r;
	if (own->pid == kbi_sys_gettid()) {
		own->pid = kbi_bind_number();
		return r;
	}
	t = find_master(own->pid);
	if (t || (t = kbi_bind_keeper(own->pid)))
		own->pid = (int)a_load_rlx(&t->number);
	return r;
}
