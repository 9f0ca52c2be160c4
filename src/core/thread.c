/* core/thread.c - life of a thread: create, start, end. Contract in thread.h and kochab.h.
 *
 * `join` says which thread may free the descriptor: NULL none yet, a task (the joiner), DETACHED
 * (the thread's own end) or ENDED (the joiner or detacher to come). The thread's end exchanges
 * ENDED into it; only the value found there decides. The end stores GIVEN without an exchange if a
 * joiner is found that waits on the thread's own VP and runs next: only these two may change a
 * joiner's mark, and each runs only in its turn. LOST: a crash, thread_loss.c.
 *
 * Runs on the caller's stack; an end is completed on the next stack, by
 * complete_thread_end or by that joiner (thread_join.c). */
#include "core/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kochab/kochab.h>

#include "base/option.h"
#include "core/steal_request.h"
#include "core/worker_thread.h"
#include "core/foreign.h"
#include "core/handoff.h"
#include "core/local.h"
#include "core/place.h"
#include "core/live_threads.h"
#include "core/thread_priv.h"
#include "libc/return_hook.h"
#include "libc/real.h"
#include "core/timer.h"
#include "core/domain.h"
#include "core/run.h"
#include "core/single_threaded.h"
#include "os/sys.h"

struct kbi_thread_hooks kbi_thread_hooks;

enum {
	MANY = 64 /* ready threads: when a creation makes so many more, all are looked at soon */
};

/* ---- creation -------------------------------------------------------------------------------- */

/* Classes of the default stack: light, own TLS. */
static int default_class[2];

static int stack_class_for(const struct kbi_thread_attr *a)
{
	return a->stack_size ? kbi_stack_class(a->stack_size, a->own_tls) : default_class[a->own_tls];
}

_Static_assert(KBI_STACK_CLASSES <= 256, "a class fits in eight bits");

static unsigned stack_slot_of_vp(const struct kbi_vp *vp)
{
	return vp ? vp->id + 1 : 0;
}

/* The beginning of a creation: a stack with a control block that was made for it. */
struct prepared {
	struct kbi_stack *stack; /* NULL: none can be made */
};

/* Must the thread have its control block when its creator returns? The drop-in's pthread_t is the
 * block's address. */
static bool needs_block(const struct kbi_thread_attr *a)
{
	return a->own_tls && a->publish;
}

/* Promises a stack to t for its first run, or gives t one with a control block now. EAGAIN: there
 * is none; a control block has to be made. */
static int try_stack(struct kb_thread *t, const struct kbi_thread_attr *a, unsigned slot)
{
	int class;

	if (kbi_unlikely(a->stack_low != NULL)) {
		t->stack = a->own_tls ? NULL : kbi_stack_adopt(a->stack_low, a->stack_size);
		t->user_stack = true;
		return t->stack ? 0 : a->own_tls ? EAGAIN : EINVAL;
	}
	class = stack_class_for(a);
	if (class < 0)
		return EAGAIN;
	t->stack_class = (uint8_t)class;
	if (!needs_block(a))
		return kbi_stack_reserve_slow(slot, class) ? EAGAIN : 0;
	t->stack = kbi_stack_get_slow(slot, class);
	return t->stack ? 0 : EAGAIN;
}

/* Tries to get a stack. Before it gives up it asks the other VPs, which may keep stacks, until all
 * have given theirs, or for a tenth of a second: a VP may compute, or have no processor. */
static KBI_NOINLINE int
get_stack(struct kb_thread *t, const struct kbi_thread_attr *a, struct kbi_vp *vp,
	const struct prepared *p)
{
	struct timespec nap = { 0, 50000 };
	int e = try_stack(t, a, stack_slot_of_vp(vp));
	uint32_t request;
	bool all = false;

	if (kbi_likely(e != EAGAIN || (a->own_tls && !p)))
		return e;
	request = kbi_vp_ask_for_stacks();
	for (int i = 0; e == EAGAIN && !all && i < 1000; i++) {
		if (i)
			kbi_sys(SYS_nanosleep, &nap, NULL);
		all = kbi_vp_gather_stacks(vp, request);
		e = try_stack(t, a, stack_slot_of_vp(vp));
	}
	return e;
}

static KBI_NOINLINE void set_thread_name(struct kb_thread *t, const char *name)
{
	strncpy(t->name, name, sizeof t->name - 1);
	t->name[sizeof t->name - 1] = 0;
	t->named = true;
}

/* Promises a stack. The common case is in line: a VP creates a thread, and its slot has the memory
 * for it. */
static inline int
promise_stack(struct kb_thread *t, const struct kbi_thread_attr *a, struct kbi_vp *vp,
	const struct prepared *p)
{
	int class = default_class[a->own_tls];

	if (kbi_unlikely(p && p->stack)) {
		t->stack = p->stack;
		t->stack_class = p->stack->class;
		t->user_stack = p->stack->user;
		return 0;
	}
	if (kbi_unlikely(!vp || a->stack_low))
		return get_stack(t, a, vp, p);
	if (a->stack_size)
		class = stack_class_for(a);
	if (kbi_unlikely(class < 0))
		return EAGAIN;
	t->stack_class = (uint8_t)class;
	if (needs_block(a))
		t->stack = kbi_stack_get(vp->stacks, class);
	if (kbi_likely(needs_block(a) ? t->stack != NULL : !kbi_stack_reserve(vp->stacks, class)))
		return 0;
	return get_stack(t, a, vp, p);
}

static KBI_NOINLINE void bind_thread(struct kb_thread *t, unsigned vp)
{
	t->bound = (uint16_t)vp;
	kbi_task_set(&t->task, KBI_TASK_BOUND);
}

static inline int
prepare_thread(struct kb_thread *t, const struct kbi_thread_attr *a, struct kbi_vp *vp,
	const struct prepared *p)
{
	int e = promise_stack(t, a, vp, p);

	if (kbi_unlikely(e))
		return e;
	if (a->own_tls) {
		t->own_tls = true;
		t->result = (void *)(uintptr_t)kbi_fp_get();
		if (t->stack)
			kbi_run_adopt_block(t);
	}
	if (a->bound >= 0)
		bind_thread(t, (unsigned)a->bound % kbi_vp_n);
	if (a->detached)
		a_store_rlx(&t->join, KBI_JOIN_DETACHED);
	t->posix = a->posix;
	if (a->name)
		set_thread_name(t, a->name);
	return 0;
}

static KBI_NOINLINE void launch_elsewhere(struct kb_thread *t)
{
	static a32 turn;
	unsigned to = kbi_task_is(&t->task, KBI_TASK_BOUND) ? t->bound : a_add_rlx(&turn, 1) % kbi_vp_n;

	kbi_vp_send(kbi_vps[to], &t->task);
}

static inline void launch_thread(struct kbi_vp *vp, struct kb_thread *t)
{
	if (kbi_unlikely(!vp || (kbi_task_is(&t->task, KBI_TASK_BOUND) && t->bound != vp->id))) {
		launch_elsewhere(t);
		return;
	}
	kbi_vp_push(vp, &t->task, false);
	/* many: while no VP is idle they are not shared; the next switch looks around instead of the
	 * 64th */
	if (kbi_unlikely(vp->s->pq.n % MANY == MANY - 1))
		a_store_rlx(&vp->countdown, 1);
}

/* Creates a thread. In line: with plain attributes most of it goes away. p NULL: nothing is
 * prepared, and EAGAIN means that something is to be prepared. */
static inline __attribute__((always_inline)) int
create_thread(struct kbi_vp *vp, struct kb_thread **out, const struct kbi_thread_attr *a,
	void *(*fn)(void *), void *arg,
	const struct prepared *p)
{
	struct kb_thread *t = kbi_descriptor_alloc(kbi_thread_cache(vp));
	int e;

	if (kbi_unlikely(!t))
		return EAGAIN;
	t->fn = fn;
	t->arg = arg;
	e = prepare_thread(t, a, vp, p);
	if (kbi_unlikely(e)) {
		kbi_descriptor_free(kbi_thread_cache(vp), t);
		return e;
	}
	*out = t;
	if (a->publish)
		a->publish(t, a->publish_arg);
	kbi_live_threads_created(vp);
	launch_thread(vp, t);
	return 0;
}

static struct kbi_stack *new_thread_stack(struct kbi_task *self, const struct kbi_thread_attr *a)
{
	struct kbi_stack *s = NULL;
	int class;

	kbi_np_enter(self);
	if (a->stack_low)
		s = kbi_stack_adopt(a->stack_low, a->stack_size);
	else if ((class = stack_class_for(a)) >= 0)
		s = kbi_stack_fresh(class);
	kbi_np_leave(self);
	return s;
}

/* Has libc make a block for the stack. A donor's kernel thread is waited for with signals blocked:
 * a thread could not be switched away meanwhile. */
static bool add_block(struct kbi_stack *s)
{
	bool lends = kbi_tcb_mode() == KBI_TCB_DONOR, has;

	if (lends)
		kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	has = kbi_stack_add_block(s);
	if (lends)
		kbi_handoff_end();
	return has;
}

/* Creates a thread when there is no control block: libc makes it, and may wait for a lock that a
 * ready thread of this VP holds: np is 0. */
static KBI_NOINLINE int create_with_block(
	struct kbi_task *self, struct kb_thread **out, const struct kbi_thread_attr *a,
	void *(*fn)(void *), void *arg)
{
	struct prepared p = { new_thread_stack(self, a) };
	bool has = p.stack && add_block(p.stack);
	int e;

	if (a->stack_low && !has)
		return EINVAL;
	kbi_np_enter(self);
	if (p.stack && !has) {
		kbi_stack_put_bare(p.stack);
		p.stack = NULL;
	}
	e = create_thread(self->vp, out, a, fn, arg, &p);
	if (e && has && !a->stack_low)
		kbi_stack_put_slow(stack_slot_of_vp(self->vp), p.stack);
	kbi_np_leave(self);
	if (e && a->stack_low)
		kbi_stack_end_adopted(p.stack);
	return e;
}

/* ---- threads of system scope: a kernel thread of their own ----------------------------------- */

static void *run_system_thread(void *arg)
{
	struct kb_thread *t = arg;

	kbi_self_tls = &t->task;
	kbi_place_leave();
	t->pid = (uint64_t)kbi_sys(SYS_getpid);
	kbi_np_leave(&t->task); /* created with 1 */
	kbi_thread_exit(t->fn(t->arg));
}

static KBI_NOINLINE int
create_system(struct kb_thread **out, const struct kbi_thread_attr *a, void *(*fn)(void *),
	void *arg)
{
	struct kb_thread *t = kbi_descriptor_alloc(NULL);
	pthread_attr_t pa;
	bool on_worker;
	sigset_t mask;
	pthread_t id;
	int e;

	if (!t)
		return EAGAIN;
	kbi_single_threaded_end();
	t->fn = fn;
	t->arg = arg;
	a_store_rlx(&t->join, a->detached ? KBI_JOIN_DETACHED : NULL);
	if (a->name)
		set_thread_name(t, a->name);
	*out = t;
	/* release: partner is the acquire in kbi_descriptor_valid */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_FOREIGN, 0));
	kbi_live_threads_created(NULL);
	pthread_attr_init(&pa);
	pthread_attr_setdetachstate(&pa, PTHREAD_CREATE_DETACHED);
	e = a->stack_size ? pthread_attr_setstacksize(&pa, a->stack_size + KBI_PAGE) : 0;
	on_worker = kbi_worker_programs_mask(&mask);
	if (!e)
		e = kbi_real.pthread_create(&id, &pa, run_system_thread, t);
	if (on_worker)
		kbi_worker_mask_again(&mask);
	pthread_attr_destroy(&pa);
	if (e) {
		kbi_live_threads_ended(NULL);
		kbi_descriptor_free(NULL, t);
		e = EAGAIN;
	}
	return e;
}

KBI_FLATTEN int
kbi_thread_create(struct kb_thread **out, const struct kbi_thread_attr *a, void *(*fn)(void *),
	void *arg)
{
	struct kbi_task *self;
	int e;

	if (a->stack_size && a->stack_size < KB_STACK_MIN)
		return EINVAL;
	if (a->own_tls && (!kbi_tcb_available || (a->stack_low && !kbi_tcb_can_end())))
		return ENOTSUP;
	if (a->system_scope)
		return create_system(out, a, fn, arg);
	self = kbi_self();
	kbi_np_enter(self);
	e = create_thread(self->vp, out, a, fn, arg, NULL);
	kbi_np_leave(self);
	if (kbi_unlikely(e) && e == EAGAIN && a->own_tls)
		return create_with_block(self, out, a, fn, arg);
	return e;
}

KBI_FLATTEN int
kbi_thread_create_light(struct kbi_task *self, struct kb_thread **out, void *(*fn)(void *),
	void *arg)
{
	static const struct kbi_thread_attr light = { .bound = -1 };
	int e;

	kbi_np_enter(self);
	e = create_thread(self->vp, out, &light, fn, arg, NULL);
	kbi_np_leave(self);
	return e;
}

/* ---- start and end --------------------------------------------------------------------------- */

KBI_NOINLINE void kbi_thread_put_elsewhere(struct kbi_vp *vp, struct kb_thread *t)
{
	if (!t->user_stack && !t->stack->has_tcb)
		kbi_stack_unreserve_slow(stack_slot_of_vp(vp), t->stack->class);
	kbi_stack_put_slow(stack_slot_of_vp(vp), t->stack);
}

/* Ends a control block in the program's memory. A light thread on its own stack: at the end of a
 * block libc waits for a kernel thread. */
static void *run_undertaker(void *arg)
{
	struct kb_thread *t = arg;
	struct kbi_task *self;

	kbi_handoff_begin(KBI_HANDOFF_SURELY);
	kbi_stack_end_adopted(t->stack);
	kbi_handoff_end();
	self = kbi_self();
	kbi_np_enter(self);
	kbi_thread_dispose(self->vp, t);
	kbi_np_leave(self);
	return NULL;
}

/* Disposes of t, which was detached, and whose control block lies in memory of the program's. */
static KBI_NOINLINE void dispose_by_undertaker(struct kbi_vp *vp, struct kb_thread *t)
{
	static const struct kbi_thread_attr light = { .bound = -1, .detached = true };
	struct kb_thread *undertaker;

	if (!create_thread(vp, &undertaker, &light, run_undertaker, t, NULL))
		return;
	kbi_stack_end_adopted(t->stack);
	kbi_thread_dispose(vp, t);
}

/* Completes t's end on the next context's stack. */
static void *complete_thread_end(void *arg)
{
	struct kb_thread *t = arg;
	struct kbi_vp *vp = t->task.vp;
	void *old;

	kbi_thread_put_stack(vp, t);
	/* release: partner is the acquire of a reader of the state, such as core/dump */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_DONE, 0));
	/* acquire and release: partners are the joiner's CAS and its look at KBI_JOIN_ENDED: result,
	 * descriptor */
	old = a_xchg_acqrel(&t->join, KBI_JOIN_ENDED);
	if (old == KBI_JOIN_DETACHED && kbi_unlikely(t->user_stack && t->own_tls))
		dispose_by_undertaker(vp, t);
	else if (old == KBI_JOIN_DETACHED)
		kbi_thread_dispose(vp, t);
	else if (old)
		kbi_domain_wake(vp, old, kbi_run_joiner_is_next(vp));
	return NULL;
}

/* Claims the joiner if it waits here and takes over at once; else returns NULL. */
static inline struct kbi_task *claim_joiner(struct kbi_vp *vp, struct kb_thread *t)
{
	/* acquire: partner is the CAS in set_joiner */
	void *j = a_load_acq(&t->join);
	struct kbi_task *joiner = j;

	if (j == NULL || j == KBI_JOIN_DETACHED || kbi_run_is_others_turn(vp))
		return NULL;
	/* acquire: partner is the joiner's release of WAITING; on this VP, program order */
	if (a_load_acq(&joiner->state) != vp->waiting_here)
		return NULL;
	if (kbi_unlikely(kbi_task_is(joiner, KBI_TASK_ARMED) || a_load_rlx(&joiner->permit)))
		kbi_domain_claim(vp, joiner, KBI_WAKE_PERMIT);
	/* release: partner is the acquire in has_thread_ended. t has a joiner, so no other thread
	 * changes the mark, and the joiner can no longer give up: it is claimed. */
	a_store_rel(&t->join, KBI_JOIN_GIVEN);
	return joiner;
}

static KBI_NOINLINE KBI_NORETURN void exit_system(struct kb_thread *t)
{
	void *old;

	kbi_self_tls = NULL;
	/* release: as in complete_thread_end */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_DONE, 0));
	/* acquire and release: as in complete_thread_end */
	old = a_xchg_acqrel(&t->join, KBI_JOIN_ENDED);
	if (old == KBI_JOIN_DETACHED)
		kbi_descriptor_free(NULL, t);
	else if (old)
		kbi_wait_wake(old);
	kbi_real.pthread_exit(NULL);
	__builtin_unreachable();
}

/* Gets a VP again: the destructors may have waited in a call that the VP was taken from. The thread
 * keeps it from here on. np is entered. Returns false for a thread of system scope, which has
 * none. */
static KBI_NOINLINE bool regain_vp(struct kb_thread *t)
{
	while (!t->task.vp) {
		if (!t->worker)
			return false;
		kbi_np_leave(&t->task);
		kbi_handoff_end_all(&t->task);
		kbi_np_enter(&t->task);
	}
	return true;
}

/* Clears TLS values that a handler may have left since TLS was cleared: libc's allocator is not
 * called with np. np is entered. */
static KBI_NOINLINE void clear_tls_again(struct kb_thread *t)
{
	enum { TIMES = 100 };

	for (int i = 0; i < TIMES && !kbi_tcb_is_clear(&t->stack->tcb); i++) {
		kbi_np_leave(&t->task);
		kbi_tcb_clear(&t->stack->tcb);
		kbi_np_enter(&t->task);
	}
}

/* Ends t. In line: a call without a return would spoil the prediction of return addresses for later
 * threads. */
static inline __attribute__((always_inline)) KBI_NORETURN void end_thread(struct kb_thread *t,
	void *result)
{
	struct kbi_vp *vp;
	struct kbi_task *next;

	kbi_return_hook_forget(t);
	/* its destructors run where it ran, if it keeps its kernel thread */
	if (kbi_unlikely(!t->task.vp) && !kbi_handoff_is_kept(t))
		kbi_handoff_end_all(&t->task);
	t->result = result;
	if (kbi_unlikely(t->own_tls && t->stack && !t->posix)) /* the drop-in's hook does it */
		kbi_tcb_end_values(&t->stack->tcb);
	if (kbi_unlikely(t->keys != NULL))
		kbi_local_exit(t);
	if (t->posix && kbi_thread_hooks.exit)
		kbi_thread_hooks.exit(t);
	if (kbi_unlikely(t->is_main))
		kbi_live_threads_main_ended();
	else
		kbi_live_threads_ended(t->task.vp);
	if (t->own_tls && t->stack) /* main has its first kernel thread's block */
		kbi_tcb_clear(&t->stack->tcb);
	kbi_np_enter(&t->task);
	if (kbi_unlikely(!t->task.vp) && !regain_vp(t))
		exit_system(t);
	if (t->own_tls && t->stack) {
		if (kbi_unlikely(!kbi_tcb_is_clear(&t->stack->tcb)))
			clear_tls_again(t);
		kbi_tcb_finish(&t->stack->tcb, &t->task);
	}
	vp = t->task.vp;
	next = claim_joiner(vp, t);
	if (kbi_likely(next != NULL))
		kbi_run_leave_to(vp, next, NULL, NULL);
	kbi_run_leave_to(vp, kbi_steal_request_at_end(vp, kbi_run_next(vp)), complete_thread_end, t);
}

static KBI_NOINLINE KBI_FLATTEN void run_thread(void *arg)
{
	struct kb_thread *t = arg;
	void *r;

	kbi_san_arrive(NULL);
	kbi_np_leave(&t->task); /* created with 1 */
	r = t->posix && kbi_thread_hooks.entry ? kbi_thread_hooks.entry(t) : t->fn(t->arg);
	end_thread(t, r);
}

KBI_SWITCHER void kbi_thread_exit(void *result)
{
	struct kb_thread *t = kbi_thread_of(kbi_self());

	if (kbi_unlikely(!t->task.vp && !t->fn && !t->worker))
		kbi_real.pthread_exit(result); /* foreign: no thread of ours ends */
	end_thread(t, result);
}

int kbi_thread_setup(void)
{
	kbi_run_entry = run_thread;
	default_class[0] = kbi_stack_class(kbi_options.stack_size, false);
	default_class[1] = kbi_stack_class(kbi_options.stack_size, true);
	return default_class[0] < 0 || default_class[1] < 0 ? ENOMEM : 0;
}
