/* posix/bind.c - binds the calling thread to its kernel thread. Contract in bind.h. A bound thread
 * is a thread whose hand-off was begun and is not ended: it is on no VP, its waits block its kernel
 * thread, and its end ends the hand-off, too. Runs on the thread's stack. No locks. */
#include "posix/bind.h"

#include <string.h>

#include "core/handoff.h"
#include "os/clone_attrs.h"
#include "core/worker_pool.h"
#include "core/vp.h"
#include "os/sys.h"
#include "libc/tcb.h"

enum { KINDS = 64 };

/* Reports `what`, once for each. */
static void report_binding(const char *what)
{
	static aptr said[KINDS];

	if (!what)
		return;
	for (int i = 0; i < KINDS; i++) {
		void *none = NULL;

		if (a_cas_rlx(&said[i], &none, (void *)(uintptr_t)what))
			break;
		if (none == what)
			return;
	}
	kbi_sys_message("%s is about a kernel thread: the calling thread keeps "
		"one of its own from here on", what);
}

static bool is_away(const struct kbi_task *self)
{
	return self && !self->vp && kbi_thread_of((struct kbi_task *)(uintptr_t)self)->worker;
}

/* Tests whether there may be other threads. Without them, later threads need not inherit from the
 * caller. */
static bool has_others(void)
{
	return kbi_vp_n || kbi_posix_made_kernel;
}

bool kbi_bind_is_light(void)
{
	return !kbi_posix_forked && (kbi_posix_light() || is_away(kbi_self_raw()));
}

/* Binds a lightweight thread to its kernel thread. If the kernel thread is to be changed, the VP
 * gets another. */
static bool keep_kernel_thread(struct kbi_task *self, const char *what, enum kbi_bind_why why)
{
	uint32_t before = a_load_rlx(&kbi_posix_me.bound);

	if (!before)
		kbi_handoff_begin(KBI_HANDOFF_SURELY);
	if (why != KBI_BIND_WATCHED && !(before & KBI_BIND_KEPT) && !kbi_handoff_keep(self)) {
		if (!before)
			kbi_handoff_end();
		return false;
	}
	kbi_signal_bound_begins(self);
	if (!before)
		report_binding(what);
	return true;
}

static enum kbi_clone_attrs_kind clone_attrs_of_caller(void)
{
	uint32_t bound = a_load_rlx(&kbi_posix_me.bound);

	if (bound & (KBI_BIND_CHANGED | KBI_BIND_POLICY))
		return KBI_CLONE_ATTRS_SEALED;
	return bound & KBI_BIND_OWN ? KBI_CLONE_ATTRS_GIVEN : KBI_CLONE_ATTRS_COMMON;
}

void kbi_bind_inherit(uint32_t bound)
{
	if (bound & KBI_BIND_OWN)
		kbi_clone_attrs_own = clone_attrs_of_caller;
	a_or_rlx(&kbi_posix_me.bound, bound);
}

bool kbi_bind_self(const char *what, enum kbi_bind_why why)
{
	bool light = kbi_bind_is_light();

	if (kbi_posix_in_vfork() || kbi_posix_forked ||
		(!light && (why == KBI_BIND_WATCHED || !has_others())))
		return true;
	if (light && !keep_kernel_thread(kbi_self_raw(), what, why))
		return false;
	if (!light && kbi_vp_n)
		/* makes the system monitor, and the kernel thread that makes kernel threads for the
		 * runtime, while this kernel thread is unchanged */
		kbi_handoff_start_sysmon();
	kbi_bind_inherit(a_load_rlx(&kbi_posix_me.bound) | (uint32_t)why);
	return true;
}

bool kbi_bind_change(const char *what, enum kbi_bind_why why)
{
	if (kbi_bind_self(what, why))
		return true;
	kbi_sys_message("%s: no kernel thread is left for a thread that would keep one: EAGAIN", what);
	errno = EAGAIN;
	return false;
}

KBI_SWITCHER void kbi_bind_undo(enum kbi_bind_why why)
{
	uint32_t left = a_and_rlx(&kbi_posix_me.bound, ~(uint32_t)why) & ~(uint32_t)why;
	struct kbi_task *self = kbi_self_raw();

	if (!is_away(self) || kbi_posix_forked || left & KBI_BIND_KEPT ||
		!kbi_handoff_is_kept(kbi_thread_of(self)))
		return;
	kbi_handoff_keep_no_more(self);
	if (left)
		return;
	kbi_signal_bound_undone(self);
	kbi_handoff_end();
	kbi_signal_resumed();
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A native thread without TLS of its own has no number; only the thread itself asks for it. */
int kbi_bind_number(void)
{
	const struct kb_thread *t = kbi_thread_of(kbi_self_raw());

	if (!kbi_bind_is_light())
		return kbi_sys_gettid();
	if (t->is_main)
		return getpid();
	return t->stack && t->stack->has_tcb ? (int)kbi_tcb_own_tid(&t->stack->tcb) : kbi_sys_gettid();
}

bool kbi_bind_is_self(long number)
{
	return number == 0 || number == kbi_bind_number();
}

bool kbi_bind_has(struct kbi_signal_to to)
{
	return kbi_posix_lives(to.t) && a_load_rlx(&to.t->number) == to.number;
}

/* Returns a VP's kernel thread that no thread has changed, if there is one. */
static int find_unchanged_tid(uint32_t first)
{
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		int tid = (int)a_load_rlx(&kbi_vps[(first + i) % kbi_vp_n]->tid);
		const struct kbi_worker *b = kbi_worker_of_tid(tid);

		if (b && !a_load_rlx(&b->changed))
			return tid;
	}
	return (int)a_load_rlx(&kbi_vps[first % kbi_vp_n]->tid);
}

int kbi_bind_shown(const struct kb_thread *t)
{
	/* acquire: partner is the release in kbi_handoff_begin */
	uint64_t st = a_load_acq(&t->task.state);
	int tid = kbi_state_kind(st) == KBI_TASK_BLOCKED ? kbi_handoff_tid(t) : 0;

	return tid ? tid : find_unchanged_tid(kbi_state_vp(st));
}

int kbi_bind_kept(const struct kb_thread *t)
{
	return kbi_handoff_is_away(t) && kbi_handoff_is_kept(t) ? kbi_handoff_tid(t) : 0;
}

struct kb_thread *kbi_bind_keeper(int tid)
{
	const struct kbi_worker *b = kbi_worker_of_tid(tid);

	return b ? a_load_rlx(&b->guest) : NULL;
}

/* ---- pointers -------------------------------------------------------------------------------- */

/* The kernel reads the bytes, and refuses the invalid operation. */
bool kbi_bind_is_readable(const void *at)
{
	enum { NOTHING = -1, BYTES = 8 };

	return at && kbi_sys(SYS_rt_sigprocmask, NOTHING, at, NULL, BYTES) != -EFAULT;
}
