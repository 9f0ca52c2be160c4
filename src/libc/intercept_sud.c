/* libc/intercept_sud.c - system calls by Syscall User Dispatch. Contract in intercept_sud.h.
 *
 * The kernel knows one range of code. Its newer mode (Linux 6.17) dispatches the calls from within
 * that range, but a single range cannot contain libc and the loader and leave out code that is
 * mapped between them, such as this library. So the older mode is used: this library's code is the
 * range, and the calls of all remaining code are dispatched. Calls that the program makes by
 * instructions of its own go to the kernel unchanged, except calls that would take the signal away.
 * The handler makes no call itself: it returns to a stub on the caller's stack, so that a thread
 * which waits there can be moved and unwound, as where libc's code is replaced
 * (libc/intercept_patch). SIGSYS must not be blocked wherever a call is made from outside: if
 * blocked, it ends the process. So it is taken out of every mask that goes to the kernel: here out
 * of the masks in dispatched calls and in the actions of signals; by kbi_broadcast_faults() out of
 * the runtime's own. Handlers return by code of ours: libc's return would be a call to dispatch. */
#include "libc/intercept_sud.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "libc/broadcast.h"
#include "libc/context.h"
#include "libc/intercept_signal.h"
#include "libc/intercept_stub.h"
#include "libc/intercept_wanted.h"
#include "os/newer.h"
#include "os/sys.h"
#include "os/trace.h"

#if defined(__x86_64__)

enum {
	DISPATCH = 59, OFF = 0, ON = 1,   /* PR_SET_SYSCALL_USER_DISPATCH */
	BY_DISPATCH = 2,                  /* si_code: SYS_USER_DISPATCH */
	/* flags of clone */
	VM = 0x100, VFORK = 0x4000, PARENT = 0x8000, THREAD = 0x10000, CLEARTID = 0x200000,
	MASK_BYTES = 8,
	SELECT_BYTES = 16, /* of a struct of mask and size */
	CALL_BYTES = 2,
};
#define MACHINE 0xc000003eu /* AUDIT_ARCH_X86_64 */

static kbi_intercept_call *call;

/* ---- the handler ----------------------------------------------------------------------------- */

/* Returns true if the mask blocks SIGSYS. The kernel refuses a pointer that cannot be read. */
static bool hides_sigsys(const uint64_t *mask)
{
	return mask && kbi_sys_can_read(mask, sizeof *mask) && *mask & (uint64_t)1 << (SIGSYS - 1);
}

static bool selects_without(const uint64_t *const *in)
{
	return in && kbi_sys_can_read(in, SELECT_BYTES) && hides_sigsys(*in);
}

/* Returns true if the call waits with a mask that blocks SIGSYS: a handler may run during the
 * wait. */
static bool would_block_sigsys(long nr, const greg_t *g)
{
	switch (nr) {
	case SYS_rt_sigsuspend:
		return hides_sigsys((const uint64_t *)g[REG_RDI]);
	case SYS_ppoll:
		return hides_sigsys((const uint64_t *)g[REG_R10]);
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return hides_sigsys((const uint64_t *)g[REG_R8]);
	case SYS_pselect6:
		return selects_without((const uint64_t *const *)g[REG_R9]);
	default:
		return false;
	}
}

/* Returns the stub for clone. A process that shares no memory is made as fork makes it. A process
 * that libc makes with shared memory becomes the supervisor's child; if the caller waits for it
 * (CLONE_VFORK), code of ours makes it and waits. */
static void (*clone_stub(greg_t *g, bool libcs))(void)
{
	if (!(g[REG_RDI] & VM) && !g[REG_RSI])
		return kbi_intercept_stub_call;
	if (libcs && (g[REG_RDI] & (VM | VFORK | THREAD | CLEARTID)) == (VM | VFORK)) {
		g[REG_RAX] = 0;
		return kbi_intercept_stub_apart;
	}
	if (libcs && g[REG_RDI] & VM && !(g[REG_RDI] & THREAD))
		g[REG_RDI] |= PARENT;
	if (!g[REG_RSI])
		return kbi_intercept_stub_shared;
	return g[REG_RDI] & VM &&
		g[REG_RDI] & THREAD ? kbi_intercept_stub_thread : kbi_intercept_stub_clone;
}

/* Returns the stub for a call: libc's wanted calls, and calls of any code that must not bypass the
 * runtime. NULL: the answer is already in rax. */
static void (*stub_for_call(long nr, greg_t *g, bool libcs))(void)
{
	switch (nr) {
	case SYS_rt_sigreturn:
		return kbi_intercept_stub_return;
	case SYS_rt_sigprocmask:
	case SYS_rt_sigaction:
		return kbi_intercept_stub_call;
	case SYS_clone:
		return clone_stub(g, libcs);
	case SYS_vfork:
		g[REG_RAX] = VM | VFORK | SIGCHLD;
		return kbi_intercept_stub_apart;
	case SYS_clone3: /* callers fall back to clone */
		g[REG_RAX] = -ENOSYS;
		return NULL;
	case SYS_prctl:
		if (g[REG_RDI] != DISPATCH)
			return kbi_intercept_stub_plain;
		g[REG_RAX] = -EINVAL;
		return NULL;
	default:
		return (libcs && kbi_intercept_wanted_is(nr)) || would_block_sigsys(nr, g) ?
			kbi_intercept_stub_call : kbi_intercept_stub_plain;
	}
}

static void on_dispatched_call(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	void (*stub)(void) = kbi_intercept_stub_old;

	if (info->si_code != BY_DISPATCH) {
		kbi_intercept_signal_others(sig, info, context, 0);
		return;
	}
	g[REG_RCX] = g[REG_RIP];
	if (info->si_arch == MACHINE)
		stub = stub_for_call(g[REG_RAX], g, kbi_intercept_patch_is_libcs((uintptr_t)g[REG_RCX]));
	if (stub == kbi_intercept_stub_call || stub == kbi_intercept_stub_apart)
		g[REG_R11] = (greg_t)(stub ==
			kbi_intercept_stub_apart ? (uintptr_t)kbi_intercept_stub_child : (uintptr_t)call);
	if (stub)
		g[REG_RIP] = (greg_t)(uintptr_t)stub;
}

/* For kbi_trace_raises: a process of ours stands there behind a call, and has neither an answer nor
 * the signal yet. */
static unsigned bytes_behind_dispatch(uintptr_t at, long unmade)
{
	return unmade >= 0 &&
		at - kbi_intercept_stub_own.low >= kbi_intercept_stub_own.size ? CALL_BYTES : 0;
}

/* ---- on and off ------------------------------------------------------------------------------ */

static long turn_dispatch(long mode)
{
	if (mode == OFF)
		return kbi_sys(SYS_prctl, DISPATCH, OFF, 0, 0, 0);
	return kbi_sys(SYS_prctl, DISPATCH, ON, kbi_intercept_stub_own.low, kbi_intercept_stub_own.size,
		NULL);
}

static const char *why_no_dispatch(void)
{
	kbi_context_library(&kbi_intercept_stub_own.low, &kbi_intercept_stub_own.size);
	if (!kbi_intercept_stub_own.low)
		return "the library's own code is not known";
	if (!kbi_intercept_patch_find())
		return "libc's code is not known";
	return turn_dispatch(OFF) ? "the kernel has no Syscall User Dispatch" : NULL;
}

void kbi_intercept_sud_here(void)
{
	const uint64_t open = (uint64_t)1 << (SIGSYS - 1);

	kbi_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &open, NULL, MASK_BYTES);
	if (turn_dispatch(ON))
		kbi_sys_fatal("Syscall User Dispatch does not work any more");
}

void kbi_intercept_sud_not_here(void)
{
	turn_dispatch(OFF);
}

int kbi_intercept_sud_begin(kbi_intercept_call *to, const char **why)
{
	*why = why_no_dispatch();
	if (*why)
		return ENOTSUP;
	call = to;
	kbi_intercept_stub_are_used();
	kbi_broadcast_restorer = (uintptr_t)kbi_intercept_stub_return;
	kbi_trace_raises = bytes_behind_dispatch;
	kbi_intercept_signal_take(SIGSYS, on_dispatched_call,
		(const void *)(uintptr_t)kbi_intercept_stub_return);
	kbi_intercept_signal_fit_others();
	kbi_intercept_sud_here();
	return 0;
}

void kbi_intercept_sud_undo(void)
{
	turn_dispatch(OFF);
	kbi_broadcast_restorer = 0;
	kbi_trace_raises = NULL;
	kbi_intercept_signal_leave();
}

#else

int kbi_intercept_sud_begin(kbi_intercept_call *to, const char **why)
{
	(void)to;
	*why = "libc's system calls are not known on this machine";
	return ENOTSUP;
}

void kbi_intercept_sud_here(void)
{
}

void kbi_intercept_sud_not_here(void)
{
}

void kbi_intercept_sud_undo(void)
{
}

#endif
