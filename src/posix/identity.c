/* posix/identity.c - functions about "the calling thread" where the kernel means its kernel thread.
 * The number and the name of a lightweight thread are answered here; a thread that changes or
 * watches its kernel thread keeps that kernel thread (posix/bind).
 * Callers: programs; posix/futex, for syscall(). Never switches, except by a signal that a thread
 * sends to itself. */
#include "posix/affinity.h"
#include "posix/attribute.h"
#include "posix/bind.h"
#include "posix/clock.h"
#include "posix/cputimer.h"
#include "posix/number.h"
#include "posix/uring_owner.h"

#include <linux/prctl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/handoff.h"
#include "os/sys.h"

/* ---- numbers ------------------------------------------------------------------------------ */

pid_t kbi_identity_gettid(void) __asm__("gettid");
int kbi_identity_tgkill(pid_t process, pid_t thread, int sig) __asm__("tgkill");

KBI_POSIX_API pid_t kbi_identity_gettid(void)
{
	kbi_posix_let_turn_end();
	return kbi_bind_number();
}

/* Sends a signal; returns the kernel's result. */
static long send_thread_signal(pid_t process, pid_t thread, int sig)
{
	struct kb_thread *t = process == 0 || process == getpid() ? kbi_bind_find(thread) : NULL;

	if (t)
		return -kbi_signal_kill((struct kbi_signal_to){ t, (uint32_t)thread }, sig);
	/* where virtual processors are processes, the kernel knows their kernel threads by numbers that
	 * the program does not know */
	if (process && !(kbi_sys_from.processes && process == getpid()))
		return kbi_sys(SYS_tgkill, process, thread, sig);
	return kbi_sys(SYS_tkill, thread, sig);
}

KBI_POSIX_API int kbi_identity_tgkill(pid_t process, pid_t thread, int sig)
{
	kbi_posix_let_turn_end();
	if (process <= 0 || thread <= 0)
		return kbi_posix_answer(-EINVAL);
	return kbi_posix_answer(send_thread_signal(process, thread, sig));
}

/* ---- prctl -------------------------------------------------------------------------------- */

/* Sets the caller's name, cut to the kernel's length. */
static int set_caller_name(const char *name)
{
	char cut[16] = "";

	strncat(cut, name, sizeof(cut) - 1);
	return kbi_posix_answer(-pthread_setname_np(kbi_posix_self(), cut));
}

typedef int Prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int kbi_identity_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	unsigned long d) __asm__("prctl");

KBI_POSIX_API int kbi_identity_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	unsigned long d)
{
	long r;

	if (option == PR_SET_NAME && kbi_bind_is_light())
		return set_caller_name((const char *)a);
	if (option == PR_GET_NAME && kbi_bind_is_light())
		return kbi_posix_answer(-pthread_getname_np(kbi_posix_self(), (char *)a, 16));
	if (!kbi_attribute_may_set(option, a, &r))
		return kbi_posix_answer(r);
	return ((Prctl *)(uintptr_t)kbi_libc()->prctl)(option, a, b, c, d);
}

/* ---- tracing ------------------------------------------------------------------------------ */

typedef long Ptrace(long request, long pid, long address, long data);
long kbi_identity_ptrace(long request, long pid, long address, long data) __asm__("ptrace");

KBI_POSIX_API long kbi_identity_ptrace(long request, long pid, long address, long data)
{
	/* where virtual processors are processes, the first process traces */
	if (request != PTRACE_TRACEME && !kbi_sys_from.processes)
		kbi_bind_self("ptrace", KBI_BIND_WATCHED);
	return ((Ptrace *)(uintptr_t)kbi_libc()->ptrace)(request, pid, address, data);
}

/* ---- priorities --------------------------------------------------------------------------- */

KBI_POSIX_API int nice(int more)
{
	if (more && !kbi_bind_change("nice", KBI_BIND_TURNED))
		return -1;
	return kbi_libc()->nice(more);
}

/* ---- restartable sequences ---------------------------------------------------------------- */

/* The kernel writes the processor of a kernel thread into a single registered block, and looks only
 * there for a sequence to restart, so no lightweight thread can have one. libc's variable, which we
 * define in front of libc's, and the system call (below) say so. */
extern const unsigned int __rseq_size;
KBI_POSIX_API const unsigned int __rseq_size = 0;

/* ---- by number ---------------------------------------------------------------------------- */

/* Numbers that not every header has; equal on all machines. */
enum { RING_SETUP = 425, RING_REGISTER = 427 };

/* Binds the caller for calls that glibc has no function for, or that the program makes without
 * glibc's function. */
static void bind_for_number(long n, const long *a)
{
	switch (n) {
	case RING_SETUP:
		if (a[1])
			kbi_uring_owner_sets_up(((const uint32_t *)a[1])[2]);
		break;
	case RING_REGISTER:
		kbi_uring_owner_registers((unsigned)a[1]);
		break;
	case SYS_perf_event_open:
		if (kbi_bind_is_self(a[1]))
			kbi_bind_self("perf_event_open", KBI_BIND_WATCHED);
		break;
	case SYS_ptrace:
		if (a[0] != PTRACE_TRACEME && !kbi_sys_from.processes)
			kbi_bind_self("ptrace", KBI_BIND_WATCHED);
		break;
	default:
		break;
	}
}

/* Makes rt_tgsigqueueinfo for a lightweight thread; *r: the kernel's result. */
static bool queue_thread_signal(const long *a, long *r)
{
	struct kb_thread *t = a[0] == getpid() && a[1] > 0 && a[3] ? kbi_bind_find((int)a[1]) : NULL;

	if (t)
		*r = -kbi_signal_queue((struct kbi_signal_to){ t, (uint32_t)a[1] }, (int)a[2],
			(const siginfo_t *)a[3]);
	return t;
}

/* Makes get_robust_list. The kernel, which returns the kernel thread's list, checks the program's
 * pointers. */
static bool read_robust_list(const long *a, long *r)
{
	bool self = kbi_bind_is_self((int)a[0]);
	const struct kb_thread *t = self ? NULL : kbi_bind_find((int)a[0]);
	void *own = NULL;

	if (!self && !t)
		return false;
	*r = kbi_sys(SYS_get_robust_list, 0, a[1], a[2]);
	if (*r == 0)
		own = t ? kbi_libc_mutex_robust_list_of(t) : kbi_bind_is_light() ?
			kbi_libc_mutex_robust_list() : NULL;
	if (own)
		*(void **)(uintptr_t)a[1] = own;
	return true;
}

bool kbi_bind_syscall(long n, const long *a, long *r)
{
	switch (n) {
	/* the kernel would clear the word at the end of the kernel thread, not of this thread */
	case SYS_set_tid_address:
		if (kbi_bind_number() == kbi_sys_gettid())
			return false;
		*r = kbi_bind_number();
		return true;
	case SYS_gettid:
		*r = kbi_bind_number();
		return true;
	case SYS_exit:
		if (kbi_posix_light() && kbi_posix_me.frame)
			kbi_posix_exit_by_number();
		return false;
#ifdef SYS_rseq
	case SYS_rseq:
		*r = -ENOSYS;
		return true;
#endif
	case SYS_get_robust_list:
		return read_robust_list(a, r);
	/* the kernel would mark the list's mutexes at the end of the kernel thread */
	case SYS_set_robust_list:
		if (!kbi_bind_is_light())
			return false;
		*r = -kbi_libc_mutex_set_robust_list((void *)(uintptr_t)a[0], (size_t)a[1]);
		return true;
	case SYS_tgkill:
		*r = a[0] <= 0 || a[1] <= 0 ? -EINVAL
			: send_thread_signal((pid_t)a[0], (pid_t)a[1], (int)a[2]);
		return true;
	case SYS_tkill:
		*r = a[0] <= 0 ? -EINVAL : send_thread_signal(0, (pid_t)a[0], (int)a[1]);
		return true;
	case SYS_rt_tgsigqueueinfo:
		return queue_thread_signal(a, r);
	case SYS_sched_setaffinity:
	case SYS_sched_getaffinity:
		return kbi_affinity_by_number(n, a, r);
	case SYS_clock_gettime:
	case SYS_clock_getres:
	case SYS_getrusage:
		return kbi_clock_by_number(n, a, r);
	case SYS_timer_create:
	case SYS_timer_settime:
	case SYS_timer_gettime:
	case SYS_timer_getoverrun:
	case SYS_timer_delete:
		return kbi_cputimer_by_number(n, a, r);
	default:
		bind_for_number(n, a);
		return kbi_attribute_by_number(n, a, r) || kbi_number_call(n, a, r);
	}
}
