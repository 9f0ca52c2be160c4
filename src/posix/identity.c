/* posix/identity.c - functions about "the calling thread" where the kernel means its kernel thread. What can be said of a
 * lightweight thread is said (its number, its name); who changes or watches the kernel thread keeps it (posix/bind).
 * Callers: programs. Never switches, but for a signal that a thread sends to itself. */
#include "posix/affinity.h"
#include "posix/attribute.h"
#include "posix/bind.h"
#include "posix/clock.h"
#include "posix/issuer.h"

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

	if (option == PR_SET_NAME && kbi_posix_light())
		return set_name((const char *)a);
	if (option == PR_GET_NAME && kbi_posix_light())
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

KBI_POSIX_API int setpriority(__priority_which_t which, id_t who, int value)
{
	if (which != PRIO_PROCESS || !kbi_bind_is_self((long)who))
		return kbi_libc()->setpriority(which, who, value);
	if (!kbi_bind_change("setpriority", KBI_BIND_TURNED))
		return -1;
	return kbi_libc()->setpriority(which, 0, value);
}

KBI_POSIX_API int getpriority(__priority_which_t which, id_t who)
{
	return kbi_libc()->getpriority(which, which == PRIO_PROCESS && kbi_bind_is_self((long)who) ? 0 : who);
}

KBI_POSIX_API int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	kbi_about_expect(policy);
	if (!kbi_bind_is_self(pid))
		return kbi_libc()->sched_setscheduler(pid, policy, param);
	/* what the kernel will refuse changes nothing */
	if (policy != SCHED_OTHER && param && !kbi_about_may_schedule(policy & ~SCHED_RESET_ON_FORK, param->sched_priority) &&
	    !kbi_bind_change("sched_setscheduler", KBI_BIND_TURNED))
		return -1;
	return kbi_libc()->sched_setscheduler(0, policy, param);
}

/* ---- timers ----------------------------------------------------------------------------------------------------- */

/* A signal for one thread: the caller, or one that keeps its kernel thread. */
static int timer_for_thread(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	struct kb_thread *t = kbi_bind_find(event->_sigev_un._tid);
	int tid;

	if (!t)
		return kbi_libc()->timer_create(clock, event, timer);
	if (kbi_bind_is_self(event->_sigev_un._tid))
		kbi_bind_self("a timer with SIGEV_THREAD_ID", KBI_BIND_WATCHED);
	tid = kbi_handoff_tid(t);
	if (tid) {
		struct kbi_posix_thread *its = t->posix;

		a_or_rlx(&its->own_timers, event->sigev_signo > 0 ? (uint64_t)1 << ((event->sigev_signo - 1) & 63) : 0);
		event->_sigev_un._tid = tid;
		return kbi_libc()->timer_create(clock, event, timer);
	}
	kbi_sys_message("a timer with SIGEV_THREAD_ID for another thread: that has no kernel thread of its own");
	return kbi_posix_answer(-EINVAL);
}

/* On the caller's CPU clock: it keeps its kernel thread, whose clock goes on as its own does from then on. False: the clock
 * is another lightweight thread's. */
static bool is_kernels(clockid_t *clock)
{
	struct kb_thread *t = kbi_clock_whose(*clock);

	if (!t)
		return true;
	if (t != kbi_clock_caller())
		return false;
	kbi_bind_self("a timer on a thread's CPU clock", KBI_BIND_WATCHED);
	*clock = CLOCK_THREAD_CPUTIME_ID;
	return true;
}

KBI_POSIX_API int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
	struct sigevent own;

	if (!is_kernels(&clock))
		return kbi_posix_answer(-ENOTSUP);
	if (!event || event->sigev_notify != SIGEV_THREAD_ID)
		return kbi_libc()->timer_create(clock, event, timer);
	own = *event;
	return timer_for_thread(clock, &own, timer);
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

/* As kernels answer: to the process that the number belongs to, whichever thread's it is; and to the thread. */
static bool queue(long n, const long *a, long *r)
{
	struct kb_thread *t = NULL;

	if (n == SYS_rt_sigqueueinfo && a[0] > 0 && a[0] != getpid() && kbi_bind_find(a[0])) {
		*r = kbi_sys(n, getpid(), a[1], a[2]);
		return true;
	}
	if (n == SYS_rt_tgsigqueueinfo && a[0] == getpid() && a[1] > 0 && a[3])
		t = kbi_bind_find(a[1]);
	if (t)
		*r = -kbi_signal_queue((struct kbi_signal_to){ t, (uint32_t)a[1] }, (int)a[2], (const siginfo_t *)a[3]);
	return t;
}

/* A program that knows its number may name itself by it. */
static long with_self(long n, const long *a, int at, const char *what)
{
	long b[6];

	memcpy(b, a, sizeof(b));
	if (kbi_bind_is_self(b[at])) {
		if (!kbi_bind_change(what, KBI_BIND_TURNED))
			return -EAGAIN;
		b[at] = 0;
	}
	return kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
}

/* The kernel has read what the second argument says. */
static long schedule_self(long n, const long *a)
{
	long r = with_self(n, a, 0, "sched_setscheduler");

	if (r == 0)
		kbi_about_expect(n == SYS_sched_setattr ? ((const int *)a[1])[1] : (int)a[1]);
	return r;
}

/* The kernel, which has its kernel thread's, says whether the program's pointers are any. */
static long own_robust_list(const long *a)
{
	long r = kbi_sys(SYS_get_robust_list, 0, a[1], a[2]);
	void *own = r == 0 && kbi_bind_is_light() ? kbi_delegate_robust_list() : NULL;

	if (own)
		*(void **)(uintptr_t)a[1] = own;
	return r;
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
		if (!kbi_bind_is_self(a[0]))
			return false;
		*r = own_robust_list(a);
		return true;
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
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
		return queue(n, a, r);
	case SYS_sched_setaffinity:
	case SYS_sched_getaffinity:
		return kbi_affinity_by_number(n, a, r);
	case SYS_sched_setscheduler:
	case SYS_sched_setattr:
		*r = schedule_self(n, a);
		return true;
	case SYS_getpriority:
	case SYS_ioprio_get:
		if (a[0] != (n == SYS_getpriority ? PRIO_PROCESS : 1) || !kbi_bind_is_self(a[1]))
			return false;
		*r = kbi_sys(n, a[0], 0);
		return true;
	case SYS_setpriority:
	case SYS_ioprio_set:
		if (a[0] != (n == SYS_setpriority ? PRIO_PROCESS : 1))
			return false;
		*r = with_self(n, a, 1, n == SYS_setpriority ? "setpriority" : "ioprio_set");
		return true;
	case SYS_clock_gettime:
	case SYS_clock_getres:
	case SYS_getrusage:
		return kbi_clock_by_number(n, a, r);
	default:
		bind_for(n, a);
		return kbi_attribute_by_number(n, a, r);
	}
}
