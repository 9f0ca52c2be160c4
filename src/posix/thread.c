/* posix/thread.c - pthread_create, join, detach and thrd_*. A thread is lightweight, with these
 * exceptions: its attributes ask for PTHREAD_SCOPE_SYSTEM (and posix/attr follows that), a
 * real-time policy or an affinity of its own; the creating module waits in the kernel by itself
 * (posix/creator_module); the creator has changed its kernel thread in a way that the new thread
 * inherits (posix/bind); this libc gives us no control blocks (reported once); or the process was
 * forked from a process with threads. Then it is a kernel thread, see posix/kernel_threads.
 * Callers: programs. Join may switch. */
#include "posix/libwait.h"
#include "posix/posix.h"

#include "posix/affinity.h"
#include "posix/bind.h"
#include "posix/creator_module.h"
#include "posix/futex.h"
#include "posix/deputy.h"
#include "posix/naming.h"

#include <sched.h>
#include <string.h>

#include "base/option.h"
#include "core/boot.h"
#include "core/meter.h"
#include "core/stock.h"
#include "core/vp.h"
#include "libc/asked.h"
#include "libc/real.h"
#include "os/sys.h"
#include "sync/sem.h"

int pthread_attr_getsigmask_np(const pthread_attr_t *attr, sigset_t *set) __attribute__((weak));

static bool is_detached(const pthread_attr_t *attr)
{
	int state = PTHREAD_CREATE_JOINABLE;

	if (attr)
		pthread_attr_getdetachstate(attr, &state);
	return state == PTHREAD_CREATE_DETACHED;
}

static void resolve_originals(void)
{
	kbi_stdio_resolve();
	kbi_unsafe_resolve();
}

/* ---- a lightweight thread's first and last steps ------------------------------------------ */

static void *run_light_thread(struct kb_thread *t)
{
	void *result;

	kbi_signal_resumed();
	result = kbi_posix_frame(t->fn, t->arg);
	kbi_signal_resumed(); /* signals that came while the thread was inside the library */
	if (kbi_unlikely(kbi_posix_forked))
		kbi_fork_thread_ends();
	return result;
}

/* Discards signals, deputies, names and affinities that other threads have left for the ending
 * thread. */
static inline void drop_thread_leftovers(void)
{
	kbi_signal_thread_ends();
	if (kbi_unlikely(a_load_rlx(&kbi_posix_helped))) {
		kbi_deputy_thread_ends();
		kbi_naming_thread_ends();
	}
	kbi_affinity_thread_ends();
}

static void on_light_thread_end(struct kb_thread *t)
{
	(void)t;
	kbi_key_run_destructors();
	kbi_signal_last();
	kbi_libc_mutex_thread_ends();
	kbi_unsafe_thread_ends();
	drop_thread_leftovers();
	kbi_posix_me.hidden = NULL; /* before the block is overwritten, piece by piece */
}

/* Ends a thread that has crashed: none of the program's code runs on it any more. */
static void on_light_thread_lost(struct kb_thread *t)
{
	(void)t;
	kbi_libc_mutex_thread_ends();
	drop_thread_leftovers();
}

static void set_hooks(void)
{
	(void)kbi_libc();
	kbi_thread_hooks.entry = run_light_thread;
	kbi_thread_hooks.exit = on_light_thread_end;
	kbi_thread_hooks.lost = on_light_thread_lost;
}

/* ---- creation ----------------------------------------------------------------------------- */

/* Properties of a new thread beyond core's attributes. */
struct birth {
	pthread_t *id;
	char *stack_low; /* NULL: the program gives no stack */
	size_t stack_size, guard;
	int policy, priority;
	bool c11, system_scope, process_scope;
	const sigset_t *mask; /* or NULL: inherited */
};

/* Prefetches for the next creation. When many threads are made in a row, each next block is cold,
 * and stacks of megabytes share no page tables: fetching the block costs more than all instructions
 * of a creation. The next creation takes the stack behind this one, and its first-touched fields
 * have equal offsets except for cache colouring, so this is a guess. */
static inline void expect_creation(const struct kbi_stack *k, pthread_t id)
{
	const char *next = (const char *)k->next;
	ptrdiff_t away = next - (const char *)k;

	if (!next)
		return;
	__builtin_prefetch(next);
	__builtin_prefetch((char *)id + away + kbi_cancel_at);
	__builtin_prefetch((char *)kbi_posix_record(id) + away);
}

/* Prefetches the next thread's block: a program mostly joins threads in the order of their
 * creation, in which they also wait to run. */
static inline void expect_join(const struct kb_thread *t)
{
	const struct kbi_task *self = kbi_posix_light(), *next;

	if (!self || a_load_rlx(&t->task.state) != self->vp->ready_here)
		return;
	next = t->task.next;
	if (next && next->tp)
		__builtin_prefetch(kbi_segment_tp(next->tp) + kbi_self_offset);
}

/* Completes and publishes the new thread, whose block is complete and which cannot run yet. */
static void publish_light_thread(struct kb_thread *t, void *arg)
{
	const struct birth *b = arg;
	pthread_t id = (pthread_t)t->stack->tcb.pthread;
	struct kbi_posix_thread *r = kbi_posix_record(id);

	kbi_tcb_renumber(&t->stack->tcb);
	a_store_rlx(&t->number, kbi_tcb_own_tid(&t->stack->tcb));
	r->self = id;
	r->c11 = b->c11;
	r->system_scope = b->system_scope;
	r->process_scope = b->process_scope;
	t->stack->asked = b->stack_size;
	if (kbi_unlikely(t->stack->user))
		t->stack->given = b->stack_low;
	else
		t->stack->guard_asked = b->guard;
	r->policy = b->policy;
	r->priority = b->priority;
	kbi_meter_fresh(t);
	kbi_cancel_fresh(id);
	kbi_signal_inherit(t, b->mask);
	/* release: pairs with the acquire in kbi_posix_lives: a reader that finds the number finds the
	 * whole record */
	__atomic_store_n(&t->posix, r, __ATOMIC_RELEASE);
	*b->id = id;
	expect_creation(t->stack, id);
}

static bool report_kernel_threads(const char *why)
{
	static a32 said;

	if (a_xchg_rlx(&said, 1))
		return true;
	if (kbi_vp_n)
		kbi_asked_missed("control blocks", "%s: threads are kernel threads", why);
	else
		kbi_sys_message("threads are kernel threads here: %s", why);
	return true;
}

/* Returns the reason why the runtime could not be started. */
static const char *reason_of_boot_failure(int e)
{
	if (kbi_options.body == KBI_OPT_BODY_PROCESS)
		return "virtual processors cannot be processes";
	return e == EAGAIN ? "the system has none left for virtual processors"
		: "there is no address space for more";
}

static int make_kernel_thread(const pthread_attr_t *attr, const struct birth *b,
	void *(*fn)(void *), void *arg)
{
	uint32_t bound = a_load_rlx(&kbi_posix_me.bound) & KBI_BIND_OWN;
	bool given = false, other = false;

	if (attr && kbi_affinity_of(attr, &given, &other) == 0 && given)
		bound = (bound & ~(uint32_t)KBI_BIND_PINNED) | (other ? KBI_BIND_PINNED : 0);
	resolve_originals();
	return kbi_kernel_thread_create(b->id, attr, fn, arg, b->c11, bound);
}

static bool is_real_time(const struct birth *b)
{
	return b->policy == SCHED_FIFO || b->policy == SCHED_RR;
}

/* Makes a kernel thread: virtual processors do not schedule by priority. The policy that it would
 * inherit from a lightweight thread is passed to libc. */
static KBI_NOINLINE int make_real_time(const pthread_attr_t *attr, const struct birth *b,
	void *(*fn)(void *), void *arg)
{
	struct sched_param p = { .sched_priority = b->priority };
	pthread_attr_t own;
	int e;

	if (!attr)
		pthread_attr_init(&own);
	else
		own = *attr;
	pthread_attr_setinheritsched(&own, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&own, b->policy);
	pthread_attr_setschedparam(&own, &p);
	e = make_kernel_thread(&own, b, fn, arg);
	if (!attr)
		pthread_attr_destroy(&own);
	return e;
}

/* Tries again after a yield, when there is no room: ready threads may end and leave room if they
 * run; a program that tries until it succeeds would otherwise try for ever. */
static KBI_NOINLINE int make_after_yield(struct kb_thread **t, struct kbi_thread_attr *a,
	void *(*fn)(void *), void *arg)
{
	if (!kbi_call_may_wait())
		return EAGAIN;
	sched_yield();
	return kbi_thread_create(t, a, fn, arg);
}

static int make_light_thread(const pthread_attr_t *attr, struct kbi_thread_attr *a, struct birth *b,
	void *(*fn)(void *),
		void *arg)
{
	struct kb_thread *t;
	int e;

	a->bound = -1;
	a->own_tls = true;
	a->publish = publish_light_thread;
	a->publish_arg = b;
	b->stack_low = a->stack_low;
	b->stack_size = a->stack_size;
	kbi_stock_keep_up();
	e = kbi_thread_create(&t, a, fn, arg);
	if (kbi_likely(e == 0))
		return 0;
	if (e == ENOTSUP && report_kernel_threads(kbi_tcb_why()))
		return make_kernel_thread(attr, b, fn, arg);
	if (e == ENOMEM || e == EAGAIN)
		e = make_after_yield(&t, a, fn, arg);
	return e == ENOMEM ? EAGAIN : e;
}

/* libc's default attributes, as of the last look; any thread, atomic. */
static a64 default_stack, default_guard; /* stack 0: not looked up */
/* the program has set defaults: they may contain more than sizes */
static a32 default_set;

static void look_up_defaults(void)
{
	pthread_attr_t attr;
	size_t stack = 0, guard = 0;

	pthread_attr_init(&attr);
	pthread_attr_getstacksize(&attr, &stack);
	pthread_attr_getguardsize(&attr, &guard);
	pthread_attr_destroy(&attr);
	a_store_rlx(&default_guard, guard);
	a_store_rlx(&default_stack, stack);
}

KBI_POSIX_API int pthread_setattr_default_np(const pthread_attr_t *attr)
{
	int e = kbi_libc()->pthread_setattr_default_np(attr);

	a_store_rlx(&default_stack, 0);
	if (e == 0)
		a_store_rlx(&default_set, 1);
	return e;
}

/* Sets the caller's scheduling; for a kernel thread the kernel's. */
static inline void inherit_scheduling(struct birth *b)
{
	if (kbi_unlikely(!kbi_posix_light()))
		kbi_thread_attrs_scheduling(&b->policy, &b->priority);
	else {
		b->policy = kbi_posix_me.policy;
		b->priority = kbi_posix_me.priority;
	}
}

static int make_without_attr(struct birth *b, void *(*fn)(void *), void *arg)
{
	struct kbi_thread_attr a = { 0 };

	if (kbi_unlikely(!a_load_rlx(&default_stack)))
		look_up_defaults();
	a.stack_size = a_load_rlx(&default_stack);
	b->guard = a_load_rlx(&default_guard);
	inherit_scheduling(b);
	if (kbi_unlikely(is_real_time(b)))
		return make_real_time(NULL, b, fn, arg);
	return make_light_thread(NULL, &a, b, fn, arg);
}

static void read_stack_attr(const pthread_attr_t *attr, struct kbi_thread_attr *a)
{
	void *low;
	size_t size = 0;

	pthread_attr_getstack(attr, &low, &size);
	/* libc stores the upper end: 0 if no stack was given */
	if ((uintptr_t)low + size != 0) {
		a->stack_low = low;
		a->stack_size = size;
		return;
	}
	pthread_attr_getstacksize(attr, &a->stack_size);
}

/* Reads policy and priority. 0, EINVAL or EPERM. */
static int read_scheduling(const pthread_attr_t *attr, struct birth *b)
{
	struct sched_param p = { 0 };
	int inherit = PTHREAD_INHERIT_SCHED;

	pthread_attr_getinheritsched(attr, &inherit);
	if (inherit == PTHREAD_INHERIT_SCHED) {
		inherit_scheduling(b);
		return 0;
	}
	pthread_attr_getschedpolicy(attr, &b->policy);
	pthread_attr_getschedparam(attr, &p);
	b->priority = p.sched_priority;
	return kbi_thread_attrs_may_schedule(b->policy, b->priority);
}

/* Makes a thread whose attributes have an affinity or a signal mask. */
static KBI_NOINLINE int make_with_extended_attr(const pthread_attr_t *attr,
	struct kbi_thread_attr *a, struct birth *b, void *(*fn)(void *), void *arg)
{
	bool given, other;
	sigset_t mask;
	int e = kbi_affinity_of(attr, &given, &other);

	if (e)
		return e;
	if (other)
		return make_kernel_thread(attr, b, fn, arg);
	if (pthread_attr_getsigmask_np && pthread_attr_getsigmask_np(attr, &mask) == 0)
		b->mask = &mask;
	return make_light_thread(attr, a, b, fn, arg);
}

static KBI_NOINLINE int make_with_attr(const pthread_attr_t *attr, struct birth *b,
	void *(*fn)(void *), void *arg)
{
	struct kbi_thread_attr a = { .detached = is_detached(attr) };
	int e = read_scheduling(attr, b);

	if (e)
		return e;
	if (is_real_time(b))
		return make_real_time(attr, b, fn, arg);
	b->system_scope = kbi_attr_is_system(attr);
	b->process_scope = kbi_attr_is_process(attr);
	read_stack_attr(attr, &a);
	pthread_attr_getguardsize(attr, &b->guard);
	if (kbi_unlikely(kbi_attr_has_more(attr)))
		return make_with_extended_attr(attr, &a, b, fn, arg);
	return make_light_thread(attr, &a, b, fn, arg);
}

static KBI_NOINLINE int make_with_default_attr(struct birth *b, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	int e = pthread_getattr_default_np(&attr);

	if (e)
		return e;
	e = kbi_attr_wants_kernel_thread(&attr) ? make_kernel_thread(&attr, b, fn, arg)
		: make_with_attr(&attr, b, fn, arg);
	pthread_attr_destroy(&attr);
	return e;
}

/* Starts the runtime for the first thread. The caller is on the kernel thread that libc made with
 * its block, so the kernel's answers about that thread hold for the block. */
static KBI_NOINLINE int start_runtime(void)
{
	int e;

	set_hooks();
	resolve_originals();
	kbi_creator_module_expect(kbi_futex_by_instruction);
	kbi_thread_attrs_scheduling(&kbi_posix_me.policy, &kbi_posix_me.priority);
	kbi_thread_attrs_expect(kbi_posix_me.policy);
	kbi_cancel_find();
	kbi_libc_mutex_find();
	kbi_key_find();
	kbi_fork_init();
	kbi_signal_start();
	kbi_signal_native_start();
	kbi_libwait_begin();
	e = kbi_boot();
	if (e == 0)
		kbi_signal_started();
	else
		kbi_signal_not_started();
	return e;
}

static int create_posix_thread(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
	void *arg, bool c11, const void *caller)
{
	struct birth b = { .id = id, .c11 = c11 };
	int e;

	if (kbi_posix_forked || kbi_bind_makes_kernel_threads() ||
		(attr && kbi_attr_wants_kernel_thread(attr)) ||
	    kbi_creator_module_wants_kernel(caller, kbi_futex_by_instruction))
		return make_kernel_thread(attr, &b, fn, arg);
	if (kbi_unlikely(!kbi_booted())) {
		e = start_runtime();
		if ((e == ENOMEM || e == ENOTSUP || e == EAGAIN) && !kbi_vp_n &&
			report_kernel_threads(reason_of_boot_failure(e)))
			return make_kernel_thread(attr, &b, fn, arg);
		if (e)
			return e == EINVAL ? e : EAGAIN;
	}
	/* otherwise a thread that creates threads all the time would never let them run */
	kbi_posix_let_turn_end();
	if (kbi_likely(!attr && !a_load_rlx(&default_set)))
		e = make_without_attr(&b, fn, arg);
	else
		e = attr ? make_with_attr(attr, &b, fn, arg) : make_with_default_attr(&b, fn, arg);
	/* libc may have made the control block, and other threads have run meanwhile */
	kbi_signal_resumed();
	return e;
}

KBI_POSIX_API int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attr,
	void *(*fn)(void *), void *restrict arg)
{
	return create_posix_thread(id, attr, fn, arg, false, __builtin_return_address(0));
}

/* ---- joining ------------------------------------------------------------------------------ */

/* Returns the caller in a child of fork, if it is `id` and was a lightweight thread: to libc its
 * block is a detached thread's. */
static inline struct kb_thread *fork_survivor(pthread_t id)
{
	struct kbi_task *self;

	if (kbi_likely(!kbi_posix_forked))
		return NULL;
	self = kbi_self_raw();
	if (!self || !pthread_equal(id, kbi_posix_self()))
		return NULL;
	return kbi_thread_of(self)->stack ? kbi_thread_of(self) : NULL;
}

/* Detaches the survivor of a fork, which a thread of the parent may have been about to join. */
static int detach_survivor(struct kb_thread *t)
{
	if (kbi_thread_is_detached(t))
		return EINVAL;
	kbi_thread_detach(t);
	return 0;
}

static int join_light(struct kb_thread *t, void **result, uint64_t deadline)
{
	expect_join(t);
	for (;;) {
		int e = kbi_thread_join(t, result, deadline, kbi_posix_stop);

		kbi_signal_resumed();
		if (e == ECANCELED)
			kbi_cancel_test();
		else if (e != EINTR)
			return e;
	}
}

static uint64_t deadline_of(clockid_t clock, const struct timespec *abstime)
{
	return abstime ? kbi_timer_deadline(clock, abstime->tv_sec, abstime->tv_nsec) : KBI_FOREVER;
}

static int join_until(pthread_t id, void **result, clockid_t clock, const struct timespec *abstime)
{
	bool gone, joined = false;
	struct kb_thread *t = kbi_posix_thread(id, &gone);
	int e;

	if (gone)
		return ESRCH;
	if (abstime && (!kbi_posix_clock_ok(clock) || !kbi_posix_time_ok_or_over(abstime)))
		return EINVAL;
	kbi_cancel_test();
	if (kbi_unlikely(fork_survivor(id) != NULL))
		return EDEADLK;
	if (kbi_unlikely(t && kbi_posix_forked))
		return kbi_thread_join_left(t, result);
	do {
		uint64_t deadline = deadline_of(clock, abstime);

		e = t ? join_light(t, result, deadline) :
			kbi_kernel_thread_join(id, result, deadline, &joined);
	} while (e == ETIMEDOUT && !kbi_timer_passed(clock, abstime->tv_sec, abstime->tv_nsec));
	if (t || e || joined)
		return e;
	return abstime ? kbi_libc()->pthread_clockjoin_np(id, result, clock, abstime) :
			 kbi_libc()->pthread_join(id, result);
}

KBI_POSIX_API int pthread_join(pthread_t id, void **result)
{
	return join_until(id, result, CLOCK_MONOTONIC, NULL);
}

KBI_POSIX_API int pthread_timedjoin_np(pthread_t id, void **result, const struct timespec *abstime)
{
	return join_until(id, result, CLOCK_REALTIME, abstime);
}

KBI_POSIX_API int pthread_clockjoin_np(pthread_t id, void **result, clockid_t clock,
	const struct timespec *abstime)
{
	return join_until(id, result, clock, abstime);
}

KBI_POSIX_API int pthread_tryjoin_np(pthread_t id, void **result)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);
	int e;

	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_tryjoin_np(id, result);
	if (kbi_unlikely(kbi_posix_forked))
		return kbi_thread_join_left(t, result);
	e = kbi_thread_join(t, result, 0, NULL);
	/* libc first checks whether it has ended */
	return e == EINVAL || e == EDEADLK ? EBUSY : e;
}

KBI_POSIX_API int pthread_detach(pthread_t id)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);

	if (gone)
		return ESRCH;
	if (kbi_unlikely(t && kbi_posix_forked))
		return kbi_thread_join_left(t, NULL);
	if (kbi_unlikely(fork_survivor(id) != NULL))
		return detach_survivor(fork_survivor(id));
	return t ? kbi_thread_detach(t) : kbi_libc()->pthread_detach(id);
}

/* ---- C11 ---------------------------------------------------------------------------------- */

KBI_POSIX_API int thrd_create(thrd_t *id, thrd_start_t fn, void *arg)
{
	switch (create_posix_thread(id, NULL, (void *(*)(void *))(uintptr_t)fn, arg, true,
		__builtin_return_address(0))) {
	case 0:
		return thrd_success;
	case EAGAIN:
		return thrd_nomem;
	default:
		return thrd_error;
	}
}

KBI_POSIX_API int thrd_join(thrd_t id, int *result)
{
	void *r = NULL;
	int e = pthread_join(id, &r);

	if (e == 0 && result)
		*result = (int)(intptr_t)r;
	return e ? thrd_error : thrd_success;
}

KBI_POSIX_API int thrd_detach(thrd_t id)
{
	return pthread_detach(id) ? thrd_error : thrd_success;
}
