/* posix/bind.c - the thread itself on its kernel thread. Contract in bind.h.
 * A hand-off that is begun and not ended is all there is to it: the thread is on no virtual processor, what it waits for
 * blocks its kernel thread, and its end is the end of the hand-off, too. */
#include "posix/bind.h"

#include <fcntl.h>
#include <string.h>

#include "core/handoff.h"
#include "os/heritage.h"
#include "core/spare.h"
#include "os/sys.h"
#include "os/tcb.h"

enum { KINDS = 64 };

/* Each is said once. */
static void say(const char *what)
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
	kbi_sys_message("%s is about a kernel thread: the calling thread keeps one of its own from here on", what);
}

static bool is_away(const struct kbi_task *self)
{
	return self && !self->vp && kbi_thread_of((struct kbi_task *)(uintptr_t)self)->body;
}

/* What the caller is, threads that are to come need not be. */
static bool has_others(void)
{
	return kbi_vp_n || kbi_posix_made_kernel;
}

bool kbi_bind_is_light(void)
{
	return !kbi_posix_forked && (kbi_posix_light() || is_away(kbi_self_raw()));
}

/* A lightweight thread is on its kernel thread from here on, and if that is to be another, its virtual processor is not. */
static bool keep(struct kbi_task *self, const char *what, enum kbi_bind_why why)
{
	uint32_t before = a_load_rlx(&kbi_posix_me.bound);

	if (!before)
		kbi_handoff_begin(KBI_HANDOFF_SURELY);
	if (why != KBI_BIND_WATCHED && !(before & KBI_BIND_KEPT) && !kbi_handoff_keep(self)) {
		if (!before)
			kbi_handoff_end();
		return false;
	}
	if (!before)
		say(what);
	return true;
}

static enum kbi_heritage_kind own(void)
{
	uint32_t bound = a_load_rlx(&kbi_posix_me.bound);

	if (bound & KBI_BIND_CHANGED)
		return KBI_HERITAGE_SEALED;
	return bound & KBI_BIND_OWN ? KBI_HERITAGE_GIVEN : KBI_HERITAGE_COMMON;
}

void kbi_bind_inherit(uint32_t bound)
{
	if (bound & KBI_BIND_OWN)
		kbi_heritage_own = own;
	a_or_rlx(&kbi_posix_me.bound, bound);
}

bool kbi_bind_self(const char *what, enum kbi_bind_why why)
{
	bool light = kbi_bind_is_light();

	if (kbi_posix_in_vfork() || kbi_posix_forked || (!light && (why == KBI_BIND_WATCHED || !has_others())))
		return true;
	if (light && !keep(kbi_self_raw(), what, why))
		return false;
	if (!light && kbi_vp_n)
		kbi_handoff_start_lookout(); /* it, and who makes kernel threads for the runtime, by one that is as it was */
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

	if (!is_away(self) || kbi_posix_forked || left & KBI_BIND_KEPT || !kbi_handoff_is_kept(kbi_thread_of(self)))
		return;
	kbi_handoff_keep_no_more(self);
	if (left)
		return;
	kbi_handoff_end();
	kbi_signal_resumed();
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

/* A native thread without TLS of its own has none, and is asked for one by nobody but itself. */
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

bool kbi_bind_lives(const struct kb_thread *t)
{
	enum kbi_task_kind kind = kbi_state_kind(a_load_acq(&t->task.state)); /* partner: dispose */

	return kind != KBI_TASK_FREE && kind != KBI_TASK_DONE && kind != KBI_TASK_FOREIGN && t->posix;
}

struct kb_thread *kbi_bind_find(long number)
{
	if (kbi_posix_forked || !kbi_vp_n)
		return NULL;
	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++) {
		struct kb_thread *t = kbi_descriptor_at(i);

		if (t && (long)a_load_rlx(&t->number) == number && kbi_bind_lives(t))
			return t;
	}
	return NULL;
}

/* ---- owners of descriptors ---------------------------------------------------------------------------------- */

int kbi_bind_set_owner(Fcntl *original, int fd, const struct f_owner_ex *given)
{
	struct f_owner_ex own = *given;
	struct kb_thread *t = own.type == F_OWNER_TID ? kbi_bind_find(own.pid) : NULL;

	if (!t)
		return original(fd, F_SETOWN_EX, (long)(uintptr_t)given);
	if (kbi_bind_is_self(own.pid))
		kbi_bind_self("F_SETOWN_EX", KBI_BIND_WATCHED);
	own.pid = kbi_handoff_tid(t);
	if (own.pid)
		a_store_rlx(&((struct kbi_posix_thread *)t->posix)->owns, 1);
	if (own.pid)
		return original(fd, F_SETOWN_EX, (long)(uintptr_t)&own);
	kbi_sys_message("F_SETOWN_EX for another thread: that has no kernel thread of its own");
	errno = ESRCH;
	return -1;
}

int kbi_bind_owner(Fcntl *original, int fd, struct f_owner_ex *own)
{
	int r = original(fd, F_GETOWN_EX, (long)(uintptr_t)own);

	if (r == 0 && own->type == F_OWNER_TID && own->pid == kbi_sys_gettid())
		own->pid = kbi_bind_number();
	return r;
}
