/* posix/identity.c - functions about "the calling thread" where the kernel means its kernel thread. What can be said of a
 * lightweight thread is said (its number, its name); who changes or watches the kernel thread keeps it (posix/bind).
 * Callers: programs. Never switches, but for a signal that a thread sends to itself. */
#include "posix/affinity.h"
#include "posix/attribute.h"
#include "posix/bind.h"
#include "posix/clock.h"
#include "posix/cputimer.h"
#include "posix/issuer.h"
#include "posix/number.h"

#include <linux/prctl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/handoff.h"
#include "os/sys.h"

/* ---- numbers ---------------------------------------------------------------------------------------------- */

pid_t kbi_identity_gettid(void) __asm__("gettid");
int kbi_identity_tgkill(pid_t process, pid_t thread, int sig) __asm__("tgkill");

KBI_POSIX_API pid_t kbi_identity_gettid(void)
{
	kbi_posix_let_turn_end();
	return kbi_bind_number();
}

/* As kernels answer. */
static long send(pid_t process, pid_t thread, int sig)
{
	struct kb_thread *t = process == 0 || process == getpid() ? kbi_bind_find(thread) : NULL;

	if (t)
		return -kbi_signal_kill((struct kbi_signal_to){ t, (uint32_t)thread }, sig);
	/* where virtual processors are processes the kernel knows their kernel threads by other numbers than the program's */
	if (process && !(kbi_sys_from.processes && process == getpid()))
		return kbi_sys(SYS_tgkill, process, thread, sig);
	return kbi_sys(SYS_tkill, thread, sig);
}

KBI_POSIX_API int kbi_identity_tgkill(pid_t process, pid_t thread, int sig)
{
	kbi_posix_let_turn_end();
	if (process <= 0 || thread <= 0)
		return kbi_posix_answer(-EINVAL);
	return kbi_posix_answer(send(process, thread, sig));
}

/* ---- prctl -------------------------------------------------------------------------------------------------- */

/* The kernel cuts a name that is too long. */
static int set_name(const char *name)
{
	char cut[16] = "";

	strncat(cut, name, sizeof(cut) - 1);
	return kbi_posix_answer(-pthread_setname_np(kbi_posix_self(), cut));
}

typedef int Prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int kbi_identity_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) __asm__("prctl");

KBI_POSIX_API int kbi_identity_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	long r;

	if (option == PR_SET_NAME && kbi_bind_is_light())
		return set_name((const char *)a);
	if (option == PR_GET_NAME && kbi_bind_is_light())
		return kbi_posix_answer(-pthread_getname_np(kbi_posix_self(), (char *)a, 16));
	if (!kbi_attribute_may_set(option, a, &r))
		return kbi_posix_answer(r);
	return ((Prctl *)(uintptr_t)kbi_libc()->prctl)(option, a, b, c, d);
}

/* ---- tracing ------------------------------------------------------------------------------------------------- */

typedef long Ptrace(long request, long pid, long address, long data);
long kbi_identity_ptrace(long request, long pid, long address, long data) __asm__("ptrace");

KBI_POSIX_API long kbi_identity_ptrace(long request, long pid, long address, long data)
{
	if (request != PTRACE_TRACEME && !kbi_sys_from.processes) /* where its first process traces */
		kbi_bind_self("ptrace", KBI_BIND_WATCHED);
	return ((Ptrace *)(uintptr_t)kbi_libc()->ptrace)(request, pid, address, data);
}

/* ---- priorities ------------------------------------------------------------------------------------------------ */

KBI_POSIX_API int nice(int more)
{
	if (more && !kbi_bind_change("nice", KBI_BIND_TURNED))
		return -1;
	return kbi_libc()->nice(more);
}

/* ---- restartable sequences ---------------------------------------------------------------------------------------- */

/* The kernel writes where it runs a kernel thread into one block, and looks into that one only for the sequence to be
 * restarted: no lightweight thread can have any. So say libc's variable, which we define over it, and the call (below). */
extern const unsigned int __rseq_size;
KBI_POSIX_API const unsigned int __rseq_size = 0;

/* ---- by number ----------------------------------------------------------------------------------------------------- */

/* Numbers that not every header has; the same on every machine. */
enum { RING_SETUP = 425, RING_REGISTER = 427 };

/* Calls that glibc has no function for, or that the program makes past it. */
static void bind_for(long n, const long *a)
{
	switch (n) {
	case RING_SETUP:
		if (a[1])
			kbi_issuer_sets_up(((const uint32_t *)a[1])[2]);
		break;
	case RING_REGISTER:
		kbi_issuer_registers((unsigned)a[1]);
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

/* As kernels answer. */
static bool queue(const long *a, long *r)
{
	struct kb_thread *t = a[0] == getpid() && a[1] > 0 && a[3] ? kbi_bind_find((int)a[1]) : NULL;

	if (t)
		*r = -kbi_signal_queue((struct kbi_signal_to){ t, (uint32_t)a[1] }, (int)a[2], (const siginfo_t *)a[3]);
	return t;
}

/* The kernel, which has its kernel thread's, says whether the program's pointers are any. */
static bool robust_list(const long *a, long *r)
{
	bool self = kbi_bind_is_self((int)a[0]);
	const struct kb_thread *t = self ? NULL : kbi_bind_find((int)a[0]);
	void *own = NULL;

	if (!self && !t)
		return false;
	*r = kbi_sys(SYS_get_robust_list, 0, a[1], a[2]);
	if (*r == 0)
		own = t ? kbi_delegate_robust_list_of(t) : kbi_bind_is_light() ? kbi_delegate_robust_list() : NULL;
	if (own)
		*(void **)(uintptr_t)a[1] = own;
	return true;
}

bool kbi_bind_syscall(long n, const long *a, long *r)
{
	switch (n) {
	case SYS_set_tid_address: /* the kernel would clear the word when that kernel thread ends, not this thread */
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
		return robust_list(a, r);
	case SYS_set_robust_list: /* the kernel would mark what is on it when that kernel thread ends */
		if (!kbi_bind_is_light())
			return false;
		*r = -kbi_delegate_set_robust_list((void *)(uintptr_t)a[0], (size_t)a[1]);
		return true;
	case SYS_tgkill:
		*r = a[0] <= 0 || a[1] <= 0 ? -EINVAL : send((pid_t)a[0], (pid_t)a[1], (int)a[2]);
		return true;
	case SYS_tkill:
		*r = a[0] <= 0 ? -EINVAL : send(0, (pid_t)a[0], (int)a[1]);
		return true;
	case SYS_rt_tgsigqueueinfo:
		return queue(a, r);
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
		bind_for(n, a);
		return kbi_attribute_by_number(n, a, r) || kbi_number_call(n, a, r);
	}
}
