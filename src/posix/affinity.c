/* posix/affinity.c - affinity. Contract in affinity.h.
 * What the kernel says of the thread's own kernel thread is the truth: nothing is remembered for it. A thread on a
 * virtual processor has that one's. What the kernel would make of a set it is asked by setting it for a moment on the
 * caller's kernel thread.
 * Another lightweight thread's: if it keeps its kernel thread, that one's is set. Else the set is left in its record, and
 * it is told (posix/signal_attention): it keeps a kernel thread as soon as it runs the program's code again.
 * The record's set is under the lock, which is held where no handler of ours comes to it; and so is what virtual processors
 * have, for that moment. */
#include "posix/affinity.h"

#include <string.h>
#include <sys/syscall.h>

#include "core/vp.h"
#include "os/heritage.h"
#include "os/lock.h"
#include "os/sys.h"
#include "posix/bind.h"

struct mask {
	uint64_t bits[KBI_HERITAGE_CPUS / 64];
	long bytes; /* that the kernel has, or -errno */
};

static a32 lock;

static struct kbi_task *enter(void)
{
	struct kbi_task *self = kbi_self();

	kbi_np_enter(self);
	kbi_lock_take(&lock);
	return self;
}

static void leave(struct kbi_task *self)
{
	kbi_lock_leave(&lock);
	kbi_np_leave(self);
}

/* ---- what the kernel says -------------------------------------------------------------------------------- */

static void read_mask(int tid, struct mask *m)
{
	memset(m, 0, sizeof(*m));
	m->bytes = kbi_sys(SYS_sched_getaffinity, tid, sizeof(m->bits), m->bits);
}

/* A kernel thread that is as the runtime made it: a virtual processor's, unless that is about to get another. 0: none. */
static int common_tid(void)
{
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		int tid = (int)a_load_rlx(&kbi_vps[i]->tid);
		const struct kbi_body *b = kbi_body_of_tid(tid);

		if (b && !a_load_rlx(&b->changed))
			return tid;
	}
	return 0;
}

static int find_common(void)
{
	static const struct timespec nap = { 0, 50000 };
	int tid;

	while (!(tid = common_tid()))
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
	return tid;
}

/* The virtual processors'. */
static void read_common(struct mask *m)
{
	read_mask(find_common(), m);
}

static bool is_same(const struct mask *a, const struct mask *b)
{
	return a->bytes == b->bytes && !memcmp(a->bits, b->bits, sizeof(a->bits));
}

static bool is_common(const struct mask *m)
{
	struct kbi_task *self = enter();
	struct mask common;

	read_common(&common);
	leave(self);
	return is_same(m, &common);
}

/* What a thread would have that sets this: 0 and *m, or -errno. The caller's kernel thread is as before. */
static long try_mask(size_t size, const void *set, struct mask *m)
{
	struct kbi_task *self = enter();
	struct mask before;
	long e;

	read_mask(0, &before);
	e = kbi_sys(SYS_sched_setaffinity, 0, size, set);
	if (!e) {
		read_mask(0, m);
		kbi_sys(SYS_sched_setaffinity, 0, before.bytes, before.bits);
	}
	leave(self);
	return e;
}

/* ---- setting --------------------------------------------------------------------------------------------- */

/* The caller's kernel thread has another affinity, or that of the virtual processors again. */
static KBI_SWITCHER long has_set(long e)
{
	struct mask now;

	if (e || !kbi_vp_n || kbi_posix_forked || kbi_posix_in_vfork())
		return e;
	read_mask(0, &now);
	if (is_common(&now))
		kbi_bind_undo(KBI_BIND_PINNED);
	else
		kbi_bind_self(NULL, KBI_BIND_PINNED);
	return 0;
}

static long say_none_is_left(void)
{
	kbi_sys_message("an affinity: no kernel thread is left for a thread that would keep one: EAGAIN");
	return -EAGAIN;
}

static bool is_kept(const struct kb_thread *t)
{
	return kbi_handoff_is_away(t) && kbi_handoff_is_kept(t);
}

/* The caller's, t. */
static KBI_SWITCHER long set_own(struct kb_thread *t, size_t size, const void *set)
{
	struct mask new, now;
	long e;

	if (!is_kept(t)) {
		e = try_mask(size, set, &new);
		if (e)
			return e;
		read_mask(0, &now);
		a_store_rlx(&kbi_posix_me.pin_due, 0);
		if (is_same(&new, &now))
			return 0;
		if (!kbi_bind_self(NULL, KBI_BIND_PINNED))
			return say_none_is_left();
	}
	a_store_rlx(&kbi_posix_me.pin_due, 0);
	return has_set(kbi_sys(SYS_sched_setaffinity, 0, size, set));
}

/* What another thread has left for the caller. */
static KBI_SWITCHER void obey(void)
{
	struct kbi_task *self = kbi_self_raw();
	long e = -EAGAIN;

	if (!self || a_load_rlx(&self->np) || !kbi_bind_is_light() || (!self->vp && !a_load_rlx(&kbi_posix_me.bound)))
		return; /* it comes again */
	if (!kbi_bind_self(NULL, KBI_BIND_PINNED))
		say_none_is_left();
	enter();
	if (a_xchg_rlx(&kbi_posix_me.pin_due, 0) && a_load_rlx(&kbi_posix_me.bound))
		e = kbi_sys(SYS_sched_setaffinity, 0, sizeof(kbi_posix_me.affinity), &kbi_posix_me.affinity);
	leave(self);
	has_set(e);
}

/* Where t computes it looks up now; else it does before it goes on. */
static void tell(struct kb_thread *t)
{
	uint64_t state = a_load_acq(&t->task.state); /* partner: as in kbi_handoff_is_away */

	kbi_signal_pins = obey;
	kbi_signal_listen();
	a_store_rlx(&kbi_signal_watch, 1);
	if (kbi_state_kind(state) == KBI_TASK_RUNNING)
		kbi_signal_knock((int)a_load_rlx(&kbi_vps[kbi_state_vp(state)]->tid));
	else if (kbi_handoff_is_away(t) && a_load_rlx(&((struct kbi_posix_thread *)t->posix)->bound))
		kbi_signal_knock(kbi_handoff_tid(t));
}

/* Until it has obeyed, if it runs, but not for long. It is told again: the user may have had too many signals queued. */
static void tell_until(struct kb_thread *t, const struct kbi_posix_thread *r)
{
	enum { TIMES = 200 };
	static const struct timespec nap = { 0, 100000 };

	tell(t);
	for (int i = 0; i < TIMES && a_load_rlx(&r->pin_due) && kbi_bind_lives(t); i++) {
		if (kbi_state_kind(a_load_acq(&t->task.state)) != KBI_TASK_RUNNING) /* partner: as in kbi_handoff_is_away */
			return;
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
		tell(t);
	}
}

/* Under the lock: the kernel thread that t keeps for good; 0: it keeps none. */
static int kept_tid(const struct kb_thread *t, const struct kbi_posix_thread *r)
{
	return a_load_rlx(&r->bound) & KBI_BIND_KEPT ? kbi_handoff_tid(t) : 0;
}

static long set_others(struct kb_thread *t, struct kbi_posix_thread *r, size_t size, const void *set)
{
	struct kbi_task *self;
	struct mask new;
	bool common;
	long e = try_mask(size, set, &new);
	int tid;

	if (e)
		return e;
	common = is_common(&new);
	self = enter();
	tid = kept_tid(t, r);
	if (tid)
		e = kbi_sys(SYS_sched_setaffinity, tid, size, set);
	/* also with what virtual processors have: to leave its kernel thread is its own affair */
	if (tid && !e)
		a_or_rlx(&r->bound, KBI_BIND_PINNED);
	memcpy(&r->affinity, new.bits, sizeof(r->affinity));
	a_store_rlx(&r->pin_due, !tid && (!common || a_load_rlx(&r->bound)));
	leave(self);
	if (!a_load_rlx(&r->pin_due))
		return e;
	tell_until(t, r);
	return 0;
}

/* t: a lightweight thread. */
static KBI_SWITCHER long set_light(struct kb_thread *t, size_t size, const void *set)
{
	if (t == kbi_thread_of(kbi_self_raw()))
		return set_own(t, size, set);
	return set_others(t, t->posix, size, set);
}

/* ---- asking ---------------------------------------------------------------------------------------------- */

/* As the kernel answers. */
static long get_light(const struct kb_thread *t, size_t size, void *set)
{
	const struct kbi_posix_thread *r = t->posix;
	struct kbi_task *self = enter();
	int tid = kept_tid(t, r);
	long n = kbi_sys(SYS_sched_getaffinity, tid ? tid : find_common(), size, set);

	if (n > 0 && a_load_rlx(&r->pin_due))
		memcpy(set, &r->affinity, (size_t)n < sizeof(r->affinity) ? (size_t)n : sizeof(r->affinity));
	leave(self);
	return n;
}

/* The lightweight thread of that number, or the caller for 0; NULL: a kernel thread's, or nobody's. */
static struct kb_thread *thread_of(pid_t number)
{
	if (!kbi_bind_is_light() && kbi_posix_in_vfork())
		return NULL;
	if (number == 0)
		return kbi_bind_is_light() ? kbi_thread_of(kbi_self_raw()) : NULL;
	return kbi_bind_find(number);
}

/* ---- functions ------------------------------------------------------------------------------------------- */

/* libc's: what the kernel has not written is none of its processors. */
static int all_of(long n, size_t size, cpu_set_t *set)
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
	if (t)
		return (int)-set_light(t, size, set);
	e = kbi_libc()->pthread_setaffinity_np(id, size, set);
	if (id == kbi_posix_self())
		return (int)-has_set(-e);
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
	return all_of(get_light(t, size, set), size, set);
}

KBI_POSIX_API int sched_setaffinity(pid_t number, size_t size, const cpu_set_t *set)
{
	struct kb_thread *t;
	long e;

	kbi_posix_let_turn_end();
	t = thread_of(number);
	if (t)
		return kbi_posix_answer(set_light(t, size, set));
	e = kbi_libc()->sched_setaffinity(number, size, set);
	return number == 0 || number == kbi_sys_gettid() ? (int)has_set(e) : (int)e;
}

KBI_POSIX_API int sched_getaffinity(pid_t number, size_t size, cpu_set_t *set)
{
	struct kb_thread *t;
	int e;

	kbi_posix_let_turn_end();
	t = thread_of(number);
	if (!t)
		return kbi_libc()->sched_getaffinity(number, size, set);
	e = all_of(get_light(t, size, set), size, set);
	return kbi_posix_answer(-e);
}

bool kbi_affinity_by_number(long n, const long *a, long *r)
{
	struct kb_thread *t = thread_of((pid_t)a[0]);

	if (n == SYS_sched_getaffinity) {
		if (t)
			*r = get_light(t, (size_t)a[1], (void *)a[2]);
		return t;
	}
	if (t)
		*r = set_light(t, (size_t)a[1], (const void *)a[2]);
	else
		*r = kbi_sys(n, a[0], a[1], a[2]);
	if (!t && (a[0] == 0 || a[0] == kbi_sys_gettid()))
		*r = has_set(*r);
	return true;
}

/* ---- of threads that are to be --------------------------------------------------------------------------- */

int kbi_affinity_of(const pthread_attr_t *attr, bool *given, bool *other)
{
	cpu_set_t all, set;
	struct mask new;
	long e;

	memset(&all, 0xff, sizeof(all));
	*given = *other = false;
	/* libc answers "all" where none was given */
	if (pthread_attr_getaffinity_np(attr, sizeof(set), &set) || !memcmp(&all, &set, sizeof(all)))
		return 0;
	*given = true;
	if (!kbi_vp_n || kbi_posix_forked)
		return 0;
	e = try_mask(sizeof(set), &set, &new);
	*other = !e && !is_common(&new);
	return (int)-e;
}
