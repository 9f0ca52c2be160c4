/* posix/affinity.c - affinity. Contract in affinity.h. A bound thread's affinity is its kernel
 * thread's, read from the kernel; we keep no copy. A thread on a VP has the VP's affinity. To learn
 * what the kernel would make of a set, the set is installed for a moment on the caller's kernel
 * thread. The affinity of another lightweight thread: if that thread keeps its kernel thread, it is
 * set there. Otherwise the set is left for the thread in a list, and the thread is told
 * (posix/signal_sigcancel): it keeps a kernel thread as soon as it runs the program's code again.
 * The lock protects the list, and the VPs' affinity during that moment; it is held only where no
 * handler of ours takes it. After another thread has ended, its record may belong to the next
 * thread of its block, or its memory be gone. An ending thread first gives its number back and then
 * takes the lock once, so under the lock the record belongs to the number. */
#include "posix/affinity.h"

#include <string.h>
#include <sys/syscall.h>

#include "core/place.h"
#include "core/single_threaded.h"
#include "os/lock.h"
#include "os/sys.h"
#include "posix/bind.h"

static a32 lock;
/* threads look at each other's records. 1: ending threads take the lock from here on; 2: all do */
static a32 used;

static struct kbi_task *lock_affinity(void)
{
	struct kbi_task *self = kbi_self();

	kbi_np_enter(self);
	kbi_lock_take(&lock);
	return self;
}

static void unlock_affinity(struct kbi_task *self)
{
	kbi_lock_leave(&lock);
	kbi_np_leave(self);
}

/* ---- another thread's record ----------------------------------------------------------------- */

static bool is_caller(const struct kb_thread *t)
{
	return t == kbi_thread_of(kbi_self_raw());
}

/* Enters the lock to look at a thread's record. A thread that has given its number back, and has
 * not seen `used`, did so before the barrier. Partner: the read of `used` behind that in
 * kbi_affinity_thread_ends. */
static struct kbi_task *lock_affinity_for(struct kbi_signal_to to)
{
	/* acquire: partner is the release of 2 below */
	if (kbi_unlikely(a_load_acq(&used) != 2) && !is_caller(to.t)) {
		a_store_rlx(&used, 1);
		kbi_single_threaded_barrier();
		a_store_rel(&used, 2);
	}
	return lock_affinity();
}

/* Returns the record of `to`; NULL: that thread has ended. Under the lock. */
static struct kbi_posix_thread *record_of_target(struct kbi_signal_to to)
{
	if (is_caller(to.t))
		return &kbi_posix_me;
	return kbi_bind_has(to) ? to.t->posix : NULL;
}

/* ---- sets that are left for threads ---------------------------------------------------------- */

/* A set left for a thread. Under the lock. Never freed: a thread takes it in handlers, too. */
struct left {
	struct left *next;
	const struct kb_thread *t; /* NULL: free for the next use */
	struct kbi_cpus set;
};
static struct left *all_left;

static struct left *find_left_set(const struct kb_thread *t)
{
	struct left *l = all_left;

	while (l && l->t != t)
		l = l->next;
	return l;
}

/* Leaves the set for t: in t's entry, else in a free entry, else in *fresh, which is set to
 * NULL. */
static void leave_set(const struct kb_thread *t, const struct kbi_cpus *set, struct left **fresh)
{
	struct left *l = find_left_set(t);

	if (!l)
		l = find_left_set(NULL);
	if (!l) {
		l = *fresh;
		*fresh = NULL;
		l->next = all_left;
		all_left = l;
	}
	l->t = t;
	l->set = *set;
}

static void unmap_left_set(struct left *l)
{
	if (l)
		kbi_sys_unmap(l, sizeof(*l));
}

/* Takes the set that was left for the caller; false: none. */
static bool take_left_set(struct kbi_cpus *set)
{
	struct left *l = find_left_set(kbi_thread_of(kbi_self_raw()));
	bool due = a_xchg_rlx(&kbi_posix_me.pin_due, 0);

	if (!l)
		return false;
	l->t = NULL;
	*set = l->set;
	return due;
}

/* Main's record stays. */
void kbi_affinity_thread_ends(void)
{
	struct kb_thread *t = kbi_thread_of(kbi_self_raw());
	struct kbi_task *self;
	struct kbi_cpus unused;

	if (kbi_unlikely(t->is_main))
		return;
	a_store_rlx(&t->number, 0);
	kbi_compiler_barrier(); /* partner: the barrier in lock_affinity_for */
	if (kbi_likely(!a_load_rlx(&used)) || kbi_posix_forked)
		return;
	self = lock_affinity();
	take_left_set(&unused);
	unlock_affinity(self);
}

/* ---- asking the kernel ----------------------------------------------------------------------- */

/* Returns an unchanged kernel thread: a VP's, unless that is about to get another one, or to move
 * to another processor. 0: none. */
static int common_tid(void)
{
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		int tid = (int)a_load_rlx(&kbi_vps[i]->tid);
		const struct kbi_worker *b = kbi_worker_of_tid(tid);

		if (b && !a_load_rlx(&b->changed) && !a_load_rlx(&kbi_vps[i]->spread.moves_now))
			return tid;
	}
	return 0;
}

static int await_common_tid(void)
{
	static const struct timespec nap = { 0, 50000 };
	int tid;

	while (!(tid = common_tid()))
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
	return tid;
}

/* Reads the VPs' affinity; if VPs are bound to processors, the program's. */
static void read_common_affinity(struct kbi_cpus *m)
{
	const struct kbi_cpus *all = kbi_place_programs();

	if (kbi_unlikely(all))
		*m = *all;
	else
		kbi_cpus_read(await_common_tid(), m);
}

/* Reads the affinity of the caller, which keeps no kernel thread. */
static void read_own_affinity(struct kbi_cpus *m)
{
	if (kbi_place_programs())
		read_common_affinity(m);
	else
		kbi_cpus_read(0, m);
}

static bool is_same_set(const struct kbi_cpus *a, const struct kbi_cpus *b)
{
	return a->bytes == b->bytes && !memcmp(a->bits, b->bits, sizeof(a->bits));
}

static bool is_common_affinity(const struct kbi_cpus *m)
{
	struct kbi_task *self = lock_affinity();
	struct kbi_cpus common;

	read_common_affinity(&common);
	unlock_affinity(self);
	return is_same_set(m, &common);
}

/* Finds the affinity that a thread would have after setting `set`: 0 and *m, or -errno. The
 * caller's kernel thread is unchanged afterwards. */
static long try_mask(size_t size, const void *set, struct kbi_cpus *m)
{
	struct kbi_task *self = lock_affinity();
	struct kbi_cpus before;
	long e;

	kbi_cpus_read(0, &before);
	e = kbi_sys(SYS_sched_setaffinity, 0, size, set);
	if (!e) {
		kbi_cpus_read(0, m);
		kbi_cpus_give(0, &before);
	}
	unlock_affinity(self);
	return e;
}

/* ---- setting --------------------------------------------------------------------------------- */

/* Called after the affinity of the caller's kernel thread was set: binds the caller, or undoes that
 * if the affinity is the VPs' again. */
static KBI_SWITCHER long adjust_binding(long e)
{
	struct kbi_cpus now;

	if (e || !kbi_vp_n || kbi_posix_forked || kbi_posix_in_vfork())
		return e;
	kbi_cpus_read(0, &now);
	if (is_common_affinity(&now))
		kbi_bind_undo(KBI_BIND_PINNED);
	else
		kbi_bind_self(NULL, KBI_BIND_PINNED);
	return 0;
}

static long report_no_kernel_thread(void)
{
	kbi_sys_message("an affinity: no kernel thread is left for a thread that would keep one: "
		"EAGAIN");
	return -EAGAIN;
}

static bool is_kept(const struct kb_thread *t)
{
	return kbi_handoff_is_away(t) && kbi_handoff_is_kept(t);
}

/* Drops the set that was left for the caller, which now sets another itself. */
static void drop_left_set(void)
{
	struct kbi_task *self;
	struct kbi_cpus unused;

	if (kbi_likely(!a_load_rlx(&kbi_posix_me.pin_due)))
		return;
	self = lock_affinity();
	take_left_set(&unused);
	unlock_affinity(self);
}

/* Sets the affinity of the caller, t. */
static KBI_SWITCHER long set_own_affinity(struct kb_thread *t, size_t size, const void *set)
{
	struct kbi_cpus new, now;
	long e;

	if (!is_kept(t)) {
		e = try_mask(size, set, &new);
		if (e)
			return e;
		read_own_affinity(&now);
		drop_left_set();
		if (is_same_set(&new, &now))
			return 0;
		if (!kbi_bind_self(NULL, KBI_BIND_PINNED))
			return report_no_kernel_thread();
	}
	drop_left_set();
	return adjust_binding(kbi_sys(SYS_sched_setaffinity, 0, size, set));
}

/* Installs the set that another thread has left for the caller. */
static KBI_SWITCHER void install_left_set(void)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_cpus set;
	long e = -EAGAIN;

	if (!self || a_load_rlx(&self->np) || !kbi_bind_is_light() ||
		(!self->vp && !a_load_rlx(&kbi_posix_me.bound)))
		return; /* called again later */
	if (!kbi_bind_self(NULL, KBI_BIND_PINNED))
		report_no_kernel_thread();
	lock_affinity();
	if (take_left_set(&set) && a_load_rlx(&kbi_posix_me.bound))
		e = kbi_sys(SYS_sched_setaffinity, 0, sizeof(set.bits), set.bits);
	unlock_affinity(self);
	adjust_binding(e);
}

/* Returns the kernel thread that is to be made to look, or 0. If the thread computes, it then looks
 * at once; otherwise it looks before it goes on. *runs: it is worth waiting for the thread. Under
 * the lock. */
static int tid_to_kick(struct kbi_signal_to to, bool *runs)
{
	const struct kbi_posix_thread *r = record_of_target(to);
	uint64_t state = a_load_acq(&to.t->task.state); /* acquire: partner as in kbi_handoff_is_away */

	*runs = r && a_load_rlx(&r->pin_due) && kbi_state_kind(state) == KBI_TASK_RUNNING;
	if (!r || !a_load_rlx(&r->pin_due))
		return 0;
	if (*runs)
		return (int)a_load_rlx(&kbi_vps[kbi_state_vp(state)]->tid);
	return kbi_handoff_is_away(to.t) && a_load_rlx(&r->bound) ? kbi_handoff_tid(to.t) : 0;
}

static bool kick_target(struct kbi_signal_to to)
{
	struct kbi_task *self = lock_affinity_for(to);
	bool runs;
	int tid = tid_to_kick(to, &runs);

	unlock_affinity(self);
	if (tid)
		kbi_signal_kick(tid);
	return runs;
}

/* Waits for a short time until a running thread has obeyed. Tells it repeatedly: the user may have
 * had too many signals queued. */
static void kick_until_installed(struct kbi_signal_to to)
{
	enum { TIMES = 200 };
	static const struct timespec nap = { 0, 100000 };

	kbi_signal_listen();
	a_store_rlx(&kbi_signal_watch, 1);
	for (int i = 0; kick_target(to) && i < TIMES; i++)
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
}

/* Returns the kernel thread that t keeps for good; 0: none. Under the lock. */
static int kept_tid(const struct kb_thread *t, const struct kbi_posix_thread *r)
{
	return a_load_rlx(&r->bound) & KBI_BIND_KEPT ? kbi_handoff_tid(t) : 0;
}

/* Sets the affinity of t's kernel thread, or (*due) leaves the set for t. Under the lock. */
static long apply_or_leave_set(const struct kb_thread *t, struct kbi_posix_thread *r,
	const struct kbi_cpus *new, struct left **fresh, bool common, bool *due)
{
	int tid = kept_tid(t, r);
	long e = tid ? kbi_sys(SYS_sched_setaffinity, tid, sizeof(new->bits), new->bits) : 0;

	/* also with the VPs' affinity: only the thread itself can leave its kernel thread */
	if (tid && !e)
		a_or_rlx(&r->bound, KBI_BIND_PINNED);
	*due = !tid && (!common || a_load_rlx(&r->bound));
	if (*due)
		leave_set(t, new, fresh);
	kbi_signal_pins = install_left_set;
	/* release: kbi_signal_pins; partner is the acquire in kbi_signal_run_errands */
	a_store_rel(&r->pin_due, *due);
	return e;
}

static long set_other_affinity(struct kbi_signal_to to, size_t size, const void *set)
{
	struct left *fresh = kbi_sys_map(sizeof(*fresh)); /* usable in a handler, too */
	struct kbi_posix_thread *r;
	struct kbi_task *self;
	struct kbi_cpus new;
	bool common, due = false;
	long e = fresh ? try_mask(size, set, &new) : -ENOMEM;

	if (e) {
		unmap_left_set(fresh);
		return e;
	}
	common = is_common_affinity(&new);
	self = lock_affinity_for(to);
	r = record_of_target(to);
	e = r ? apply_or_leave_set(to.t, r, &new, &fresh, common, &due) : -ESRCH;
	unlock_affinity(self);
	unmap_left_set(fresh);
	if (due)
		kick_until_installed(to);
	return e;
}

static KBI_SWITCHER long set_light_affinity(struct kbi_signal_to to, size_t size, const void *set)
{
	return is_caller(to.t) ? set_own_affinity(to.t, size, set)
		: set_other_affinity(to, size, set);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Reads what read_common_affinity reads; returns what the kernel would return. */
static long get_common_affinity(size_t size, void *set)
{
	const struct kbi_cpus *all = kbi_place_programs();

	if (kbi_likely(!all))
		return kbi_sys(SYS_sched_getaffinity, await_common_tid(), size, set);
	if (all->bytes > 0 && (size < (size_t)all->bytes || size % sizeof(long)))
		return -EINVAL;
	if (all->bytes > 0)
		memcpy(set, all->bits, (size_t)all->bytes);
	return all->bytes;
}

/* Reads the affinity of `to`; returns what the kernel would return. A thread that has just ended
 * had the VPs' affinity. */
static long get_light_affinity(struct kbi_signal_to to, size_t size, void *set)
{
	struct kbi_task *self = lock_affinity_for(to);
	const struct kbi_posix_thread *r = record_of_target(to);
	int tid = r ? kept_tid(to.t, r) : 0;
	const struct left *l;
	long n = tid ? kbi_sys(SYS_sched_getaffinity, tid, size, set)
		: get_common_affinity(size, set);

	if (n > 0 && r && a_load_rlx(&r->pin_due) && (l = find_left_set(to.t)))
		memcpy(set, l->set.bits, (size_t)n < sizeof(l->set.bits) ? (size_t)n : sizeof(l->set.bits));
	unlock_affinity(self);
	return n;
}

/* Returns the lightweight thread of that number, or the caller for 0. t NULL: the number is a
 * kernel thread's, or unused. */
static struct kbi_signal_to target_of_number(pid_t number)
{
	if (!kbi_bind_is_light() && (kbi_posix_in_vfork() || number == 0))
		return kbi_signal_to(NULL);
	if (number == 0)
		return kbi_signal_to(kbi_thread_of(kbi_self_raw()));
	return (struct kbi_signal_to){ kbi_bind_find(number), (uint32_t)number };
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Finishes the answer as libc does: bytes that the kernel has not written contain no processors. */
static int complete_cpu_set(long n, size_t size, cpu_set_t *set)
{
	if (n < 0)
		return (int)-n;
	memset((char *)set + n, 0, size - (size_t)n);
	return 0;
}

KBI_POSIX_API int pthread_setaffinity_np(pthread_t id, size_t size, const cpu_set_t *set)
{
	struct kb_thread *t;
	bool gone;
	int e;

	kbi_posix_let_turn_end();
	t = kbi_posix_thread(id, &gone);
	if (gone)
		return ESRCH;
	if (t && kbi_posix_forked)
		return ESRCH; /* the thread has not come along through fork */
	if (t)
		return (int)-set_light_affinity(kbi_signal_to(t), size, set);
	e = kbi_libc()->pthread_setaffinity_np(id, size, set);
	if (id == kbi_posix_self())
		return (int)-adjust_binding(-e);
	if (!e && kbi_vp_n && !kbi_posix_forked)
		a_or_rlx(&kbi_posix_record(id)->bound, KBI_BIND_PINNED);
	return e;
}

KBI_POSIX_API int pthread_getaffinity_np(pthread_t id, size_t size, cpu_set_t *set)
{
	struct kb_thread *t;
	bool gone;

	kbi_posix_let_turn_end();
	t = kbi_posix_thread(id, &gone);
	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_getaffinity_np(id, size, set);
	if (kbi_posix_forked)
		/* as of a thread that has ended */
		return complete_cpu_set(kbi_sys(SYS_sched_getaffinity, 0, size, set), size, set);
	return complete_cpu_set(get_light_affinity(kbi_signal_to(t), size, set), size, set);
}

KBI_POSIX_API int sched_setaffinity(pid_t number, size_t size, const cpu_set_t *set)
{
	struct kbi_signal_to to;
	long e;

	kbi_posix_let_turn_end();
	to = target_of_number(number);
	if (to.t)
		return kbi_posix_answer(set_light_affinity(to, size, set));
	e = kbi_libc()->sched_setaffinity(number, size, set);
	return number == 0 || number == kbi_sys_gettid() ? (int)adjust_binding(e) : (int)e;
}

KBI_POSIX_API int sched_getaffinity(pid_t number, size_t size, cpu_set_t *set)
{
	struct kbi_signal_to to;
	int e;

	kbi_posix_let_turn_end();
	to = target_of_number(number);
	if (!to.t)
		return kbi_libc()->sched_getaffinity(number, size, set);
	e = complete_cpu_set(get_light_affinity(to, size, set), size, set);
	return kbi_posix_answer(-e);
}

bool kbi_affinity_by_number(long n, const long *a, long *r)
{
	struct kbi_signal_to to = target_of_number((pid_t)a[0]);

	if (n == SYS_sched_getaffinity) {
		if (to.t)
			*r = get_light_affinity(to, (size_t)a[1], (void *)a[2]);
		return to.t;
	}
	if (to.t)
		*r = set_light_affinity(to, (size_t)a[1], (const void *)a[2]);
	else
		*r = kbi_sys(n, a[0], a[1], a[2]);
	if (!to.t && (a[0] == 0 || a[0] == kbi_sys_gettid()))
		*r = adjust_binding(*r);
	return true;
}

/* ---- attributes of future threads ------------------------------------------------------------ */

/* Tests whether attr contains an affinity. libc answers EINVAL to a question about fewer processors
 * than were given, and "all" where none were given. So asking for no byte tells that some were
 * given, and asking for one byte tells that the set was empty. */
static inline bool has_affinity_attr(const pthread_attr_t *attr)
{
	cpu_set_t set;

	return pthread_attr_getaffinity_np(attr, 0, &set) ||
	       pthread_attr_getaffinity_np(attr, 1, &set) || *(const unsigned char *)&set != UINT8_MAX;
}

int kbi_affinity_of(const pthread_attr_t *attr, bool *given, bool *other)
{
	cpu_set_t set;
	struct kbi_cpus new;
	long e;

	*given = *other = false;
	if (kbi_likely(!has_affinity_attr(attr)) ||
		pthread_attr_getaffinity_np(attr, sizeof(set), &set))
		return 0;
	*given = true;
	if (!kbi_vp_n || kbi_posix_forked)
		return 0;
	e = try_mask(sizeof(set), &set, &new);
	*other = !e && !is_common_affinity(&new);
	return (int)-e;
}
