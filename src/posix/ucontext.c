/* posix/ucontext.c - getcontext, setcontext, swapcontext, makecontext. A context holds the mask of
 * the thread that makes it. A thread that goes to the context takes over that mask, as by
 * pthread_sigmask: pending signals that the mask lets through are handled on the context's stack,
 * before its next instruction. libc's functions would get and set the kernel thread's mask in the
 * kernel. Registers are saved and loaded by the machine's part (uctx.h). Where that part is
 * missing, libc's functions do all of the work, and the thread's mask stays as it is.
 * Callers: programs, also in handlers. Runs on the thread's stack. No locks. Handlers may run, and
 * switch. */
#include "posix/signal_priv.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "core/wait.h"
#include "os/sys.h"
#include "uctx.h"

#if KBI_HAVE_UCONTEXT

KBI_UC_CALLS(kbi_ucontext_got, kbi_ucontext_swap, kbi_ucontext_start, kbi_ucontext_ended,
	     kbi_ucontext_go, kbi_ucontext_arrive, kbi_ucontext_arrived);

KBI_HIDDEN KBI_NORETURN void kbi_ucontext_go(const ucontext_t *to);
KBI_HIDDEN KBI_NORETURN void kbi_ucontext_arrive(ucontext_t *to);
KBI_HIDDEN void kbi_ucontext_start(void);

/* The number of handlers that the thread is in, kept in a word of the context that is otherwise
 * unused. A context made by the kernel is the code that a handler has interrupted. */
enum { NOTED = 0x4b42, NOTED_AT = 48 };

static void note_handlers(ucontext_t *u)
{
	u->uc_flags = (unsigned long)NOTED << NOTED_AT | kbi_posix_me.in_handler;
}

static void take_handlers(const ucontext_t *to)
{
	if (to->uc_flags >> NOTED_AT == NOTED)
		kbi_posix_me.in_handler = (uint32_t)to->uc_flags;
	else if (kbi_uc_is_kernels(to) && kbi_posix_me.in_handler)
		kbi_posix_me.in_handler--;
}

static uint64_t mask_now(const struct kbi_task *self)
{
	uint64_t mask = 0;

	if (self)
		return a_load_rlx(kbi_signal_mask((struct kbi_task *)self));
	kbi_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, KBI_MASK_BYTES);
	return mask;
}

static uint64_t mask_of(const ucontext_t *u)
{
	return kbi_signal_from_set(&u->uc_sigmask) & ~kbi_signal_kept;
}

static void set_context_mask(struct kbi_task *self, uint64_t mask)
{
	if (!self)
		kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KBI_MASK_BYTES);
	else
		kbi_signal_take_mask(self, mask);
}

/* Sets the context's mask, on the context's stack: signals that it lets through are handled as if
 * they had interrupted the context. */
KBI_HIDDEN void kbi_ucontext_arrived(const ucontext_t *to);
void kbi_ucontext_arrived(const ucontext_t *to)
{
	struct kbi_task *self = kbi_posix_light();

	if (self)
		kbi_np_leave(self);
	set_context_mask(self, mask_of(to));
}

/* Goes to the context. In brackets: no handler comes between the reading of the context, which a
 * handler may save again, and the change of the stack. */
static KBI_NORETURN void arrive_at_context(struct kbi_task *self, const ucontext_t *to)
{
	if (self)
		kbi_np_enter(self);
	take_handlers(to);
	kbi_ucontext_arrive(kbi_uc_copy_below(to));
}

/* Goes to the context `to`. Signals that `to` blocks are blocked here, and signals that `to` lets
 * through are let through there: so a handler interrupts a context that lets its signal through.
 * `now`: the caller's mask. */
static KBI_NORETURN void go_to_context(struct kbi_task *self, uint64_t now, const ucontext_t *to)
{
	if (now == mask_of(to)) {
		take_handlers(to);
		kbi_ucontext_go(to);
	}
	/* a handler may run here, and leave the rest to another thread */
	set_context_mask(self, self ? now | mask_of(to) :
		kbi_signal_closed & ~(kbi_signal_never() | kbi_broadcast_bit()));
	arrive_at_context(kbi_posix_light(), to);
}

/* Finishes getcontext, and returns its result. */
KBI_HIDDEN int kbi_ucontext_got(ucontext_t *u);
int kbi_ucontext_got(ucontext_t *u)
{
	uint64_t mask = mask_now(kbi_posix_light());

	memcpy(&u->uc_sigmask, &mask, sizeof mask);
	note_handlers(u);
	return 0;
}

KBI_POSIX_API int setcontext(const ucontext_t *to)
{
	struct kbi_task *self = kbi_posix_light();

	kbi_signal_leaves_section();
	go_to_context(self, mask_now(self), to);
}

/* Finishes swapcontext; the caller's registers are saved. */
KBI_HIDDEN KBI_NORETURN void kbi_ucontext_swap(ucontext_t *save, const ucontext_t *to);
void kbi_ucontext_swap(ucontext_t *save, const ucontext_t *to)
{
	struct kbi_task *self = kbi_posix_light();
	uint64_t mask = mask_now(self);

	memcpy(&save->uc_sigmask, &mask, sizeof mask);
	note_handlers(save);
	go_to_context(self, mask, to);
}

/* Called when the first function of a made context has returned. */
KBI_HIDDEN KBI_NORETURN void kbi_ucontext_ended(const ucontext_t *link);
void kbi_ucontext_ended(const ucontext_t *link)
{
	if (link)
		setcontext(link);
	exit(0);
}

KBI_POSIX_API void makecontext(ucontext_t *u, void (*fn)(void), int n, ...)
{
	va_list rest;

	kbi_uc_begin(u, fn, kbi_ucontext_start, n);
	va_start(rest, n);
	for (int i = 0; i < n; i++)
		kbi_uc_argument(u, i, va_arg(rest, long));
	va_end(rest);
}

#else

/* These functions leave no frame behind: libc's functions save the caller's registers. */
KBI_POSIX_API int getcontext(ucontext_t *u)
{
	return kbi_libc()->getcontext(u);
}

KBI_POSIX_API int setcontext(const ucontext_t *to)
{
	return kbi_libc()->setcontext(to);
}

KBI_POSIX_API int swapcontext(ucontext_t *save, const ucontext_t *to)
{
	return kbi_libc()->swapcontext(save, to);
}

KBI_POSIX_API void makecontext(ucontext_t *u, void (*fn)(void), int n, ...)
{
	enum { MOST = 8 };
	long a[MOST] = { 0 };
	va_list rest;

	va_start(rest, n);
	for (int i = 0; i < n && i < MOST; i++)
		a[i] = va_arg(rest, long);
	va_end(rest);
	kbi_libc()->makecontext(u, fn, n, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

#endif
