/* os/trace.c - ptrace(2), raw. Contract in trace.h. */
#include "os/trace.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/utsname.h>

#include "os/sys.h"

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

/* libc's headers may lack PTRACE_EVENT_STOP and PTRACE_PEEKSIGINFO */
enum { EVENT_STOP = 128, PEEKSIGINFO = 0x4209, MASK_BYTES = 8, CALL_BYTES = 2,
	BREAKPOINT_BYTES = 1 };

long kbi_trace_seize(int pid)
{
#if defined(__x86_64__)
	return kbi_sys(SYS_ptrace, PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC);
#else
	(void)pid;
	return -1;
#endif
}

bool kbi_trace_has_ended(const siginfo_t *info)
{
	return info->si_pid && (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
		info->si_code == CLD_DUMPED);
}

bool kbi_trace_has_stopped(const siginfo_t *info)
{
	return info->si_pid && (info->si_code == CLD_TRAPPED || info->si_code == CLD_STOPPED);
}

enum kbi_trace_stop kbi_trace_why(int status, int *sig)
{
	*sig = status & 0x7f;
	switch (status >> 8) {
	case 0:
		return KBI_TRACE_SIGNAL;
	case PTRACE_EVENT_EXIT:
		return KBI_TRACE_END;
	case PTRACE_EVENT_EXEC:
		return KBI_TRACE_EXEC;
	case EVENT_STOP:
		return *sig == SIGTRAP ? KBI_TRACE_OTHER : KBI_TRACE_GROUP;
	default:
		return KBI_TRACE_OTHER;
	}
}

bool kbi_trace_end_is_seen(void)
{
	struct utsname u;

	return !kbi_sys(SYS_uname, &u) && (u.release[1] != '.' || u.release[0] >= '6');
}

int kbi_trace_status(int pid)
{
	unsigned long status = 0;

	kbi_sys(SYS_ptrace, PTRACE_GETEVENTMSG, pid, 0, &status);
	return (int)status;
}

void kbi_trace_go(int pid, int sig)
{
	kbi_sys(SYS_ptrace, PTRACE_CONT, pid, 0, sig);
}

/* Returns true if an instruction of the process raised the signal and will raise it again. */
static bool is_fault(const siginfo_t *info)
{
	switch (info->si_signo) {
	case SIGSEGV: case SIGBUS: case SIGILL: case SIGFPE: case SIGTRAP: case SIGSYS:
		return info->si_code > 0;
	default:
		return false;
	}
}

bool kbi_trace_signal(int pid, siginfo_t *info)
{
	info->si_signo = info->si_code = 0;
	if (kbi_sys(SYS_ptrace, PTRACE_GETSIGINFO, pid, 0, info) == -ESRCH)
		return false;
	if (info->si_code == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
		return false;
	if (is_fault(info))
		info->si_signo = 0;
	return true;
}

void kbi_trace_go_with(int pid, const siginfo_t *info)
{
	kbi_sys(SYS_ptrace, PTRACE_SETSIGINFO, pid, 0, info);
	kbi_trace_go(pid, info->si_signo);
}

void kbi_trace_stay(int pid)
{
	kbi_sys(SYS_ptrace, PTRACE_LISTEN, pid, 0, 0);
}

void kbi_trace_leave(int pid)
{
	kbi_sys(SYS_ptrace, PTRACE_DETACH, pid, 0, 0);
}

unsigned (*kbi_trace_raises)(uintptr_t at, long unmade);

enum { ITS_THREADS, ITS_OWN, /* whose signals */ AT_ONCE = 8 };

/* Reads the next few pending signals of a process, from number *first on. Returns their number. */
static long peek_signals(int pid, uint32_t which, uint64_t *first, siginfo_t info[AT_ONCE])
{
	struct {
		uint64_t off;
		uint32_t flags;
		int32_t n;
	} what = { *first, which, AT_ONCE };
	long n = kbi_sys(SYS_ptrace, PEEKSIGINFO, pid, &what, info);

	*first += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* Sends a signal. The kernel refuses some siginfos from user space; then the signal is sent
 * without. */
static void send_copied_signal(int to, siginfo_t *info)
{
	/* SI_TIMER: the timer has ended with its process */
	if (info->si_signo == SIGKILL || info->si_signo == SIGSTOP || info->si_code == SI_TIMER ||
		is_fault(info))
		return;
	if (kbi_sys(SYS_rt_sigqueueinfo, to, info->si_signo, info))
		kbi_sys(SYS_kill, to, info->si_signo);
}

static void copy_signals(int from, int to, uint32_t which)
{
	siginfo_t info[AT_ONCE];
	uint64_t first = 0;
	long n;

	while ((n = peek_signals(from, which, &first, info)) > 0)
		for (long i = 0; i < n; i++)
			send_copied_signal(to, &info[i]);
}

void kbi_trace_copy_signals(int from, int to)
{
	copy_signals(from, to, ITS_THREADS);
	copy_signals(from, to, ITS_OWN);
}

#if defined(__x86_64__)

_Static_assert(sizeof(struct user_regs_struct) <= sizeof((struct kbi_trace_place *)0)->regs,
	"all registers");

/* Returns true if an interrupted call is to be made again: the kernel's marks of such calls; and
 * errors that a kill causes in calls which no other signal can end (mmap, clone, a page being
 * read): with another cause they fail again. */
static bool is_to_be_made_again(uint64_t nr, int64_t answer)
{
	switch (answer) {
	case -512: case -513: case -514: case -516:
	case -ENOMEM: case -EFAULT: case -EIO:
		return true;
	case -EINTR:
		return nr != SYS_close && nr != SYS_connect;
	default:
		return false;
	}
}

static unsigned bytes_behind_signal(const siginfo_t *info)
{
	if (info->si_signo == SIGSYS && is_fault(info))
		return CALL_BYTES;
	return info->si_signo == SIGTRAP && info->si_code == SI_KERNEL ? BREAKPOINT_BYTES : 0;
}

/* Returns how many bytes the process stands behind the instruction that raised its undelivered
 * signal. Such instructions are a breakpoint and a refused system call (Syscall User Dispatch,
 * seccomp). The signal has arrived or is pending. If the process was killed meanwhile, the kernel
 * has dropped the signal, and only the runtime knows its instructions. At the beginning of a
 * handler rcx differs from the value that a call leaves. */
static unsigned bytes_behind_raiser(int pid, const struct user_regs_struct *r)
{
	bool unmade = (int64_t)r->orig_rax >= 0 && r->rax == r->orig_rax && r->rcx == r->rip;
	unsigned n = kbi_trace_raises ? kbi_trace_raises(r->rip, unmade ? (long)r->orig_rax : -1) : 0;
	siginfo_t info[AT_ONCE];
	uint64_t first = 0;
	long found;

	if (!n && !kbi_sys(SYS_ptrace, PTRACE_GETSIGINFO, pid, 0, info))
		n = bytes_behind_signal(info);
	while (!n && (found = peek_signals(pid, ITS_THREADS, &first, info)) > 0)
		for (long i = 0; i < found && !n; i++)
			n = bytes_behind_signal(&info[i]);
	return n;
}

/* Returns the number of the interrupted call. restart_syscall makes the kernel continue a call that
 * it remembers in the process; the call is known from the state at its first interruption. */
static uint64_t interrupted_call(const struct user_regs_struct *r,
	const struct kbi_trace_place *before)
{
	const struct user_regs_struct *b = (const struct user_regs_struct *)before->regs;

	if (r->orig_rax == SYS_restart_syscall && before->extended_bytes &&
		b->rip == r->rip - CALL_BYTES && b->rsp == r->rsp)
		return b->rax;
	return r->orig_rax;
}

bool kbi_trace_save(int pid, struct kbi_trace_place *p, const struct kbi_trace_place *before)
{
	struct user_regs_struct *r = (struct user_regs_struct *)p->regs;
	struct iovec general = { r, sizeof *r }, extended = { p->extended, sizeof p->extended };

	if (kbi_sys(SYS_ptrace, PTRACE_GETREGSET, pid, NT_PRSTATUS, &general) ||
	    kbi_sys(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &extended) ||
	    kbi_sys(SYS_ptrace, PTRACE_GETSIGMASK, pid, MASK_BYTES, &p->mask))
		return false;
	p->extended_bytes = extended.iov_len;
	if ((int64_t)r->orig_rax >= 0 && is_to_be_made_again(r->orig_rax, (int64_t)r->rax)) {
		r->rax = interrupted_call(r, before);
		r->rip -= CALL_BYTES;
	} else {
		r->rip -= bytes_behind_raiser(pid, r);
	}
	r->orig_rax = (unsigned long)-1;
	return true;
}

bool kbi_trace_load(int pid, struct kbi_trace_place *p)
{
	struct iovec general = { p->regs, sizeof(struct user_regs_struct) },
		extended = { p->extended, p->extended_bytes };

	return !kbi_sys(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &extended) &&
	       !kbi_sys(SYS_ptrace, PTRACE_SETSIGMASK, pid, MASK_BYTES, &p->mask) &&
	       !kbi_sys(SYS_ptrace, PTRACE_SETREGSET, pid, NT_PRSTATUS, &general);
}

#else

bool kbi_trace_save(int pid, struct kbi_trace_place *p, const struct kbi_trace_place *before)
{
	(void)pid;
	(void)p;
	(void)before;
	return false;
}

bool kbi_trace_load(int pid, struct kbi_trace_place *p)
{
	(void)pid;
	(void)p;
	return false;
}

#endif
