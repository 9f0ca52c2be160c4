/* libc/intercept_seccomp.c - system calls by a seccomp filter. Contract in intercept_seccomp.h.
 *
 * The filter looks at the call's number first: where that decides, the kernel (Linux 5.11) does not
 * run the filter at all. Then it looks at the instruction's address: calls of this library's code,
 * and of the allocator's, pass. All 64 bits of the address are compared. Calls of 32-bit code (int
 * $0x80) pass.
 * A call that waits with a signal mask is intercepted if it has a mask: SIGSYS must not be blocked
 * (libc/broadcast). Handlers return by libc's code, for rt_sigreturn passes.
 * Calls that would show the filter, or add one, are answered by libc/emulate, and so are calls
 * thread_attrs attributes that children inherit from the process that makes them. */
#include "libc/intercept_seccomp.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
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

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

enum {
	NUMBERS = 512,                /* the numbers of calls are below */
	LENGTH = 200,                 /* instructions of the filter, at most */
	TAG = 0x6b6f,                 /* si_errno of its signals */
	BY_SECCOMP = 1,               /* si_code: SYS_SECCOMP */
	VM = 0x100, VFORK = 0x4000, THREAD = 0x10000, /* flags of clone */
	SPEC_ALLOW = 4,               /* SECCOMP_FILTER_FLAG_SPEC_ALLOW: does not slow the code down */
	CALL_BYTES = 2, MASK_BYTES = 8,
};

static kbi_intercept_call *call;

/* ---- which calls ----------------------------------------------------------------------------- */

/* Calls with a mask, and the index of that argument. */
static const struct masked {
	int nr, arg;
} masked[] = { { SYS_ppoll, 3 }, { SYS_pselect6, 5 }, { SYS_epoll_pwait, 4 },
	{ SYS_epoll_pwait2, 4 } };

static bool is_filtered(long nr)
{
	for (unsigned i = 0; i < kbi_countof(masked); i++)
		if (masked[i].nr == nr)
			return true;
	switch (nr) {
	case SYS_prctl: case SYS_seccomp: case SYS_unshare: case SYS_setns:
	case SYS_landlock_restrict_self: case SYS_setsid: case SYS_getsid: case SYS_setpgid:
	case SYS_getpgid: case SYS_getpgrp:
		return true;
	default:
		return kbi_intercept_wanted_is(nr);
	}
}

/* ---- the filter: instructions, with the number to skip if a comparison holds, and if not ----- */

static struct sock_filter filter[LENGTH];
static unsigned length;

static void put_filter_op(unsigned code, uint32_t k, unsigned yes, unsigned no)
{
	if (length < LENGTH)
		filter[length] = (struct sock_filter){ (uint16_t)code, (uint8_t)yes, (uint8_t)no, k };
	length++;
}

static void put_load(size_t at)
{
	put_filter_op(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0);
}

static void put_if_equal(uint32_t k, unsigned yes, unsigned no)
{
	put_filter_op(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no);
}

static void put_return(uint32_t what)
{
	put_filter_op(BPF_RET | BPF_K, what, 0, 0);
}

static void put_load_number(void)
{
	put_load(offsetof(struct seccomp_data, nr));
}

/* Lets the call pass if its mask is NULL. */
static void put_masked(const struct masked *m)
{
	size_t at = offsetof(struct seccomp_data, args) + 8 * (size_t)m->arg;

	put_if_equal((uint32_t)m->nr, 0, 6);
	put_load(at);
	put_if_equal(0, 0, 3);
	put_load(at + 4);
	put_if_equal(0, 0, 1);
	put_return(SECCOMP_RET_ALLOW);
	put_load_number();
}

static void put_numbers(void)
{
	unsigned n = 0, i = 0;

	for (long nr = 0; nr < NUMBERS; nr++)
		n += is_filtered(nr);
	for (long nr = 0; nr < NUMBERS; nr++)
		if (is_filtered(nr))
			put_if_equal((uint32_t)nr, n - i++, 0);
	put_return(SECCOMP_RET_ALLOW);
}

/* Lets calls from this range of code pass. */
static void put_code(const struct kbi_intercept_stub_range *r)
{
	const size_t low = offsetof(struct seccomp_data, instruction_pointer), high = low + 4;
	uint64_t from = r->low, to = r->low + r->size;

	if (!r->low)
		return;
	put_load(high);
	put_filter_op(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)(from >> 32), 3, 0);
	put_if_equal((uint32_t)(from >> 32), 0, 8);
	put_load(low);
	put_filter_op(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)from, 0, 6);
	put_load(high);
	put_filter_op(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)(to >> 32), 4, 0);
	put_if_equal((uint32_t)(to >> 32), 0, 2);
	put_load(low);
	put_filter_op(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)to, 1, 0);
	put_return(SECCOMP_RET_ALLOW);
}

static bool make_filter(void)
{
	struct kbi_intercept_stub_range allocators;

	length = 0;
	put_load(offsetof(struct seccomp_data, arch));
	put_if_equal(AUDIT_ARCH_X86_64, 1, 0);
	put_return(SECCOMP_RET_ALLOW);
	put_load_number();
	for (unsigned i = 0; i < kbi_countof(masked); i++)
		put_masked(&masked[i]);
	put_numbers();
	kbi_context_added_code(&allocators.low, &allocators.size);
	put_code(&kbi_intercept_stub_own);
	put_code(&allocators);
	put_return(SECCOMP_RET_TRAP | TAG);
	return length <= LENGTH;
}

/* ---- the handler ----------------------------------------------------------------------------- */

/* Returns the stub for clone. A kernel thread is made here; a process is made by the process
 * without the filter. */
static void (*clone_stub(greg_t *g))(void)
{
	if (!(g[REG_RDI] & VM) || !(g[REG_RDI] & THREAD)) {
		g[REG_RAX] = 0;
		return kbi_intercept_stub_apart;
	}
	return g[REG_RSI] ? kbi_intercept_stub_clone : kbi_intercept_stub_shared;
}

static void (*stub_for_call(greg_t *g))(void)
{
	switch (g[REG_RAX]) {
	case SYS_clone:
		return clone_stub(g);
	case SYS_fork:
		g[REG_RAX] = SIGCHLD;
		return kbi_intercept_stub_apart;
	case SYS_vfork:
		g[REG_RAX] = VM | VFORK | SIGCHLD;
		return kbi_intercept_stub_apart;
	case SYS_clone3: /* callers fall back to clone */
		g[REG_RAX] = -ENOSYS;
		return NULL;
	default:
		return kbi_intercept_stub_call;
	}
}

static void on_filtered_call(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	void (*stub)(void);

	if (info->si_code != BY_SECCOMP || info->si_errno != TAG) {
		kbi_intercept_signal_others(sig, info, context, 0);
		return;
	}
	stub = stub_for_call(g);
	g[REG_RCX] = g[REG_RIP];
	g[REG_R11] = (greg_t)(stub == kbi_intercept_stub_apart ? (uintptr_t)kbi_intercept_stub_child :
		(uintptr_t)call);
	if (stub)
		g[REG_RIP] = (greg_t)(uintptr_t)stub;
}

/* For kbi_trace_raises: a process of ours stands there behind a call, and has neither an answer nor
 * the signal yet. */
static unsigned bytes_behind_filter(uintptr_t at, long unmade)
{
	return at - kbi_intercept_stub_own.low >= kbi_intercept_stub_own.size &&
		is_filtered(unmade) ? CALL_BYTES : 0;
}

/* ---- on and off ------------------------------------------------------------------------------ */

static const char *why_no_seccomp(void)
{
	const uint32_t trap = SECCOMP_RET_TRAP;

	kbi_context_library(&kbi_intercept_stub_own.low, &kbi_intercept_stub_own.size);
	if (!kbi_intercept_stub_own.low)
		return "the library's own code is not known";
	if (!kbi_intercept_patch_find())
		return "libc's code is not known";
	/* a filter at NULL: the kernel tells its remaining objections first, EFAULT last */
	if (kbi_sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) != -EFAULT ||
	    kbi_sys(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &trap))
		return "the kernel has no seccomp filters";
	return make_filter() ? NULL : "the filter is too long";
}

static long install_filter(unsigned flags)
{
	const struct sock_fprog program = { (unsigned short)length, filter };

	return kbi_sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Installs the filter. A process without the privilege (EACCES) may do so after it has given up the
 * rights that exec could grant (NO_NEW_PRIVS): it executes nothing. */
void kbi_intercept_seccomp_here(void)
{
	const uint64_t open = (uint64_t)1 << (SIGSYS - 1);
	long e;

	kbi_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &open, NULL, MASK_BYTES);
	e = install_filter(SPEC_ALLOW);
	if (e == -EACCES) {
		kbi_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		e = install_filter(SPEC_ALLOW);
	}
	if (e == -EINVAL) /* before Linux 4.17 */
		e = install_filter(0);
	if (e)
		kbi_sys_fatal("a seccomp filter cannot be had any more (errno %d)", (int)-e);
}

int kbi_intercept_seccomp_begin(kbi_intercept_call *to, const char **why)
{
	*why = why_no_seccomp();
	if (*why)
		return ENOTSUP;
	call = to;
	kbi_intercept_stub_are_used();
	kbi_trace_raises = bytes_behind_filter;
	kbi_intercept_signal_take(SIGSYS, on_filtered_call,
		(const void *)(uintptr_t)kbi_intercept_stub_return);
	kbi_intercept_signal_fit_others();
	return 0;
}

void kbi_intercept_seccomp_undo(void)
{
	kbi_trace_raises = NULL;
	kbi_intercept_signal_leave();
}

#else

int kbi_intercept_seccomp_begin(kbi_intercept_call *to, const char **why)
{
	(void)to;
	*why = "libc's system calls are not known on this machine";
	return ENOTSUP;
}

void kbi_intercept_seccomp_here(void)
{
}

void kbi_intercept_seccomp_undo(void)
{
}

#endif
