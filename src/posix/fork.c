/* posix/fork.c - fork, vfork and clone. The child of fork has the calling thread only, and its
 * kernel thread; the parent's virtual processors do not exist in it. The child goes on as a plain
 * kernel thread with its control block: waits block the kernel thread, and pthread_create makes
 * kernel threads of libc. Whatever other threads of the parent held stays held, as on libc. exec
 * and exit need nothing from this unit; posix_spawn and its variants are in call_blocking.
 * Callers: programs; libc's fork, through pthread_atfork. vfork and clone may switch. */
#include "posix/posix.h"

#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "core/foreign.h"
#include "core/single_threaded.h"
#include "core/vp.h"
#include "libc/module.h"
#include "libc/return_hook.h"
#include "libc/tcb.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "sync/park.h"

/* Lets the caller keep its kernel thread before it makes a child, in a program with a call of
 * ptrace: the tracer of a child that asks to be traced is the kernel thread that made it. */
static void keep_tracer(void)
{
	if (kbi_vp_n && kbi_module_imports("ptrace"))
		kbi_bind_self(NULL, KBI_BIND_WATCHED);
}

/* Waits at the gate of control blocks: the thread on the other side of the gate may be ready on
 * this virtual processor. */
static KBI_SWITCHER void wait_at_gate(a32 *word, uint32_t value)
{
	struct kbi_task *self = kbi_self_raw();

	if (self && self->vp && !a_load_rlx(&self->np)) {
		kbi_park_wait(&word->v_, value, KBI_PARK_ANY, KBI_FOREVER);
		kbi_signal_bring_mask(); /* a child of fork must get the caller's mask */
	} else {
		kbi_sys_futex_wait(word, value, NULL);
	}
}

static void wake_gate(a32 *word)
{
	if (kbi_park_has(&word->v_))
		kbi_park_wake(&word->v_, UINT_MAX, KBI_PARK_ANY);
	kbi_sys_futex_wake(word, INT_MAX);
}

static void prepare_fork(void)
{
	keep_tracer();
	if (kbi_vp_n)
		kbi_tcb_freeze();
	kbi_posix_me.forks++;
}

/* ---- vfork -------------------------------------------------------------------------------- */

/* The child of vfork has the caller's memory, and ours. Whatever it calls before its exec (masks,
 * actions, closes) concerns the child, which is no thread of ours. pthread_atfork's handlers do not
 * run. */
enum { VFORKS = 8 };

static __thread struct {
	/* the first vfork's caller is a lightweight thread, hidden while the child has its place */
	bool hides;
	bool lends; /* its virtual processor is left to other threads */
	void *back[VFORKS];
} vforks __attribute__((tls_model("initial-exec")));

/* Gives the caller's place to its child. */
static void begin_vfork_child(void)
{
	struct kbi_task *self = kbi_bind_is_light() ? kbi_self_raw() : NULL;

	if (kbi_posix_me.vforks == VFORKS)
		kbi_sys_fatal("vfork in the child of vfork, %d deep", VFORKS);
	if (kbi_posix_me.vforks++ || !self)
		return;
	kbi_np_enter(self);
	vforks.hides = true;
	kbi_posix_me.hidden = self; /* where other threads find the caller */
	kbi_foreign_hide();
}

static void end_vfork_child(void)
{
	if (--kbi_posix_me.vforks || !vforks.hides)
		return;
	vforks.hides = false;
	kbi_foreign_show(kbi_posix_me.hidden);
	kbi_np_leave(kbi_posix_me.hidden);
}

/* Leaves the virtual processor of the first vfork's caller: the kernel lets the caller wait until
 * the child has executed something or ended, and before that the child may wait for other threads
 * of the program. */
static void leave_to_child(void)
{
	bool lends = !kbi_posix_me.vforks && kbi_call_may_wait();

	if (lends)
		kbi_handoff_begin(KBI_HANDOFF_SURELY);
	begin_vfork_child();
	if (lends)
		vforks.lends = true;
}

static KBI_SWITCHER void come_back_from_child(void)
{
	bool lent = kbi_posix_me.vforks == 1 && vforks.lends;

	if (lent)
		vforks.lends = false;
	end_vfork_child();
	if (lent)
		kbi_handoff_end();
	if (!kbi_posix_me.vforks)
		kbi_signal_resumed();
}

KBI_HIDDEN void *kbi_fork_before_vfork(void *back);
void *kbi_fork_before_vfork(void *back)
{
	keep_tracer();
	leave_to_child();
	vforks.back[kbi_posix_me.vforks - 1] = back;
	return (void *)(uintptr_t)kbi_libc()->vfork;
}

KBI_HIDDEN struct kbi_twice kbi_fork_after_vfork(long pid);
struct kbi_twice kbi_fork_after_vfork(long pid)
{
	struct kbi_twice to = { pid, vforks.back[kbi_posix_me.vforks - 1] };

	if (pid)
		come_back_from_child();
	return to;
}

KBI_TWICE_CALL(vfork, kbi_fork_before_vfork, kbi_fork_after_vfork, fork);

/* ---- clone -------------------------------------------------------------------------------- */

typedef int Childs(void *arg);

/* Like vfork, but the child runs on a stack of its own. A child that was killed while it had a
 * child of its own in the same way is no longer counted. */
static KBI_SWITCHER int clone_in_place(Childs *fn, void *stack, int flags, void *arg,
	void *const more[3])
{
	uint8_t deep = kbi_posix_me.vforks;
	int r;

	keep_tracer();
	leave_to_child();
	r = kbi_libc()->clone(fn, stack, flags, arg, more[0], more[1], more[2]);
	kbi_posix_me.vforks = (uint8_t)(deep + 1);
	come_back_from_child();
	return r;
}

/* True if the child gets the caller's memory and thread pointer, and the caller waits for it. */
static bool is_in_place(int flags)
{
	const int asked = CLONE_VM | CLONE_VFORK;

	return (flags & (asked | CLONE_SETTLS | CLONE_THREAD)) == asked;
}

KBI_POSIX_API int clone(Childs *fn, void *stack, int flags, void *arg, ...)
{
	void *more[3]; /* libc's clone reads them, whether the program passes them or not */
	va_list rest;

	va_start(rest, arg);
	for (int i = 0; i < 3; i++)
		more[i] = va_arg(rest, void *);
	va_end(rest);
	if (is_in_place(flags))
		return clone_in_place(fn, stack, flags, arg, more);
	return kbi_libc()->clone(fn, stack, flags, arg, more[0], more[1], more[2]);
}

KBI_POSIX_ALIAS(__clone, clone);

/* ---- fork --------------------------------------------------------------------------------- */

static void after_fork_in_parent(void)
{
	kbi_posix_me.forks--;
	if (kbi_vp_n)
		kbi_tcb_thaw();
}

static void after_fork_in_child(void)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_stack *stack;

	kbi_posix_me.forks = 0;
	if (!kbi_vp_n)
		return;
	kbi_return_hook_forget_others(self);
	stack = self ? kbi_thread_of(self)->stack : NULL;
	kbi_tcb_after_fork(stack ? &stack->tcb : NULL);
	kbi_single_threaded_after_fork();
	kbi_posix_forked = true;
	kbi_posix_made_kernel = false;
	kbi_posix_me.standin_robust = NULL;
	kbi_signal_after_fork(self);
	kbi_orphan_all();
	kbi_module_after_fork();
	if (!self)
		return;
	/* a task without a VP waits, and is woken, by futex */
	self->vp = NULL;
	/* release, like each store of a state (sched/task.h); the child has no second thread yet */
	a_store_rel(&self->state, KBI_STATE(KBI_TASK_FOREIGN, 0));
	kbi_signal_stack_after_fork();
}

void kbi_fork_init(void)
{
	static a32 done;

	if (a_xchg_rlx(&done, 1))
		return;
	kbi_tcb_waits = (struct kbi_tcb_waits){ wait_at_gate, wake_gate };
	pthread_atfork(prepare_fork, after_fork_in_parent, after_fork_in_child);
}

/* Ends the thread: its first function has returned, and there is no run loop below it. */
void kbi_fork_thread_ends(void)
{
	kbi_key_run_destructors();
	if (!kbi_posix_made_kernel)
		exit(0);
	for (;;)
		kbi_sys(SYS_exit, 0);
}
