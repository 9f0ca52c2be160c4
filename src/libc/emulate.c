/* libc/emulate.c - libc's system calls where virtual processors are processes. Contract in
 * emulate.h. State that the kernel keeps for a process and libc for the program is changed in every
 * process (signal actions, limits), by the first process (children, timers, tracing), or answered
 * from known values. Memory: emulate_map. Runs on the caller's stack, inside libc; calls no
 * function of libc's that could come back here. */
#include "libc/emulate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

#include "base/atom.h"
#include "libc/broadcast.h"
#include "libc/emulate_map.h"
#include "libc/emulate_owned.h"
#include "libc/intercept.h"
#include "libc/intercept_cancel.h"
#include "libc/intercept_signal.h"
#include "libc/real.h"
#include "os/memory.h"
#include "os/newer.h"
#include "os/sys.h"

#ifndef SYS_alarm /* newer machines have setitimer only */
#define SYS_alarm (-1)
#endif

static struct {
	int pid;          /* the program's: the first process's */
	long parent, brk;
} program;

long (*kbi_emulate_wait)(long nr, const long arg[6]);
long (*kbi_emulate_fork)(const long arg[6]);
long (*kbi_emulate_there)(long nr, const long arg[6]);
bool (*kbi_emulate_cpu)(long nr, const long arg[6], long *r);
long (*kbi_emulate_futex)(const long arg[6]);
long (*kbi_emulate_exec)(long nr, const long arg[6]);
long (*kbi_emulate_raise)(int tid, int sig);
void (*kbi_emulate_masks)(long how, const uint64_t *set);

/* ---- signals and processes ------------------------------------------------------------------- */

enum { ACTION_BYTES = 32, ACTION_MASK = 3 /* index of the mask, a word; x86-64 */ };

long kbi_emulate_action(long sig, const void *new, void *old, long mask_bytes)
{
	struct kbi_broadcast_call c = { .nr = SYS_rt_sigaction, .arg = { sig, 0, 0, mask_bytes },
		.pointer = 1 };
	uint64_t action[ACTION_BYTES / 8];
	long r;

	if (sig == KBI_BROADCAST_SIGNAL)
		return -EINVAL;
	if (new && !kbi_sys_can_read(new, ACTION_BYTES))
		return -EFAULT;
	if (new)
		memcpy(action, new, ACTION_BYTES); /* `new` may be the same struct as `old` */
	r = old || !new ? kbi_sys(SYS_rt_sigaction, sig, 0, old, mask_bytes) : 0;
	if (r)
		return r;
	if (sig == kbi_intercept_signal())
		return kbi_intercept_signal_action(new ? action : NULL, old);
	if (!new)
		return 0;
	action[ACTION_MASK] &= ~kbi_broadcast_bit(); /* a handler may run for long */
	kbi_broadcast_fit(action);
	memcpy(c.data, action, ACTION_BYTES);
	return kbi_broadcast(&c);
}

enum { CANCEL = 32 }; /* libc's signal for cancellation and timers */

static void (*cancel)(int sig, siginfo_t *info, void *context);

/* libc checks that the program has sent the signal; the kernel tells the sending process's
 * number. */
static void on_cancel_signal(int sig, siginfo_t *info, void *context)
{
	if (info->si_code == SI_TKILL)
		info->si_pid = program.pid;
	kbi_intercept_cancel_handle(cancel, sig, info, context);
}

static long set_libc_action(long sig, const void *new, void *old, long mask_bytes)
{
	char changed[ACTION_BYTES];
	void (*ours)(int, siginfo_t *, void *) = on_cancel_signal;

	if (sig != CANCEL || !new || !kbi_sys_can_read(new, ACTION_BYTES) ||
		*(const uintptr_t *)new <= (uintptr_t)SIG_IGN)
		return kbi_emulate_action(sig, new, old, mask_bytes);
	memcpy(&cancel, new, sizeof cancel);
	memcpy(changed, new, sizeof changed);
	memcpy(changed, &ours, sizeof ours);
	return kbi_emulate_action(sig, changed, old, mask_bytes);
}

/* Removes the signals that must not be blocked from a copy of the set. The kernel refuses a set
 * that cannot be read. */
static const void *open_kept_signals(const void *set, uint64_t *copy)
{
	if (!set || !kbi_sys_can_read(set, sizeof *copy))
		return set;
	memcpy(copy, set, sizeof *copy);
	*copy &= ~kbi_broadcast_bit();
	return copy;
}

static bool is_futex_wait_op(long op)
{
	op &= FUTEX_CMD_MASK;
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;
}

const char *kbi_emulate_why_not(void)
{
	return kbi_emulate_owned_before();
}

/* ---- timers ---------------------------------------------------------------------------------- */

/* Numbers of the program's timers begin at TIMERS; a process's own timers have lower numbers. */
enum { TIMERS = 1 << 20 };

/* Returns true for a timer of the program's; false if it measures or signals the calling
 * process. */
static bool is_program_timer(long nr, const long a[6])
{
	switch (nr) {
	case SYS_setitimer:
	case SYS_getitimer:
		return a[0] == ITIMER_REAL;
	case SYS_timer_create:
		return a[0] == CLOCK_REALTIME || a[0] == CLOCK_MONOTONIC || a[0] == CLOCK_BOOTTIME;
	default:
		return nr == SYS_alarm || a[0] >= TIMERS;
	}
}

/* Returns true for a number below TIMERS that this process does not know: the program has made the
 * timer in its first process, before there were others. */
static bool is_timer_of_first(long nr, long r)
{
	return r == -EINVAL && (nr == SYS_timer_settime || nr == SYS_timer_gettime ||
		nr == SYS_timer_getoverrun || nr == SYS_timer_delete);
}

static long make_timer_call(long nr, long a[6])
{
	bool create = nr == SYS_timer_create;
	long r;

	if (kbi_emulate_cpu && kbi_emulate_cpu(nr, a, &r))
		return r;
	if (!kbi_emulate_there || !is_program_timer(nr, a)) {
		r = kbi_sys(nr, a[0], a[1], a[2], a[3]);
		return kbi_emulate_there && is_timer_of_first(nr, r) ? kbi_emulate_there(nr, a) : r;
	}
	if (!create && a[0] >= TIMERS)
		a[0] -= TIMERS;
	r = kbi_emulate_there(nr, a);
	if (create && !r)
		*(int *)a[2] += TIMERS;
	return r;
}

long kbi_emulate_waits(long nr, const long a[6])
{
	return kbi_emulate_wait ? kbi_emulate_wait(nr, a) :
		kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Makes a call in the program's first process: the parent of the program's children, the tracer,
 * the receiver of notifications. */
static long call_in_first_process(long nr, const long a[6])
{
	return kbi_emulate_there ? kbi_emulate_there(nr, a) :
		kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Makes a fork by syscall(): without CLONE_VM and on the same stack the child can only be a
 * copy. */
static long make_fork_call(long nr, const long a[6])
{
	if (!kbi_emulate_fork)
		return -ENOSYS;
	if (nr == SYS_clone && (a[0] & CLONE_VM || a[1]))
		return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	return kbi_emulate_fork(nr == SYS_clone ? a : (const long[6]){ SIGCHLD });
}

/* Refuses a call that would affect only the calling process, and not its children. */
static long refuse_apart(const char *name, long answer)
{
	static a32 said;

	if (!a_xchg_rlx(&said, 1))
		kbi_sys_message("%s is refused where virtual processors are processes with a seccomp "
			"filter", name);
	return answer;
}

/* Makes prctl. A child inherits these settings from the process that makes it. Where the first
 * process makes all children (libc/intercept_seccomp), only the first process's settings count, and
 * the caller's are not what the program has asked for. */
static long make_prctl(const long a[6])
{
	switch (kbi_intercept_stays() ? a[0] : -1) {
	case PR_SET_NO_NEW_PRIVS:
	case PR_GET_NO_NEW_PRIVS:
	case PR_GET_SECCOMP:
		return call_in_first_process(SYS_prctl, a);
	case PR_SET_SECCOMP:
		return refuse_apart("PR_SET_SECCOMP", -EINVAL);
	default:
		return kbi_sys(SYS_prctl, a[0], a[1], a[2], a[3], a[4]);
	}
}

/* Changes a limit in every process. */
static long make_prlimit(const long a[6])
{
	if (!a[2] || (a[0] && a[0] != program.pid))
		return kbi_sys(SYS_prlimit64, a[0], a[1], a[2], a[3]);
	return kbi_emulate_broadcast(SYS_prlimit64, 0, a[1], a[2], a[3], 0, 0);
}

/* Kills a process. A thread that kills the program does not outlive the call: the kernel ends it
 * after the first process. */
static long kill_program(long nr, const long a[6])
{
	long r = kbi_sys(nr, a[0], a[1], a[2]);

	while (!r && a[0] == program.pid && a[1] == SIGKILL)
		kbi_sys(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	return r;
}

/* Sends a signal to a kernel thread of the program's, which has its own process's number in the
 * kernel. */
static long send_signal_to_thread(const long a[6])
{
	if (a[2] == SIGABRT)
		kbi_memory_dump();
	if (a[0] != program.pid)
		return kbi_sys(SYS_tgkill, a[0], a[1], a[2]);
	if (kbi_emulate_raise)
		return kbi_emulate_raise((int)a[1], (int)a[2]);
	return kbi_sys(SYS_tkill, a[1], a[2]);
}

static long make_sigprocmask(const long a[6])
{
	uint64_t copy;
	const void *set = open_kept_signals((const void *)a[1], &copy);
	long r = kbi_sys(SYS_rt_sigprocmask, a[0], set, a[2], a[3]);

	/* not for a child of vfork, which has a mask of its own */
	if (!r && set == &copy && kbi_emulate_masks && kbi_broadcast_has_me())
		kbi_emulate_masks(a[0], set);
	return r;
}

/* Makes pselect6, whose mask comes in a struct. */
static long make_pselect(long a[6])
{
	struct {
		const void *set;
		size_t bytes;
	} mask = { 0 };
	uint64_t set;

	if (a[5] && !kbi_sys_can_read((const void *)a[5], sizeof mask))
		return -EFAULT;
	if (a[5]) {
		memcpy(&mask, (const void *)a[5], sizeof mask);
		mask.set = open_kept_signals(mask.set, &set);
	}
	return kbi_sys(SYS_pselect6, a[0], a[1], a[2], a[3], a[4], a[5] ? &mask : NULL);
}

static long make_intercepted_call(long nr, long a[6])
{
	uint64_t set;
	long r;

	/* a child of posix_spawn sets its own signal actions */
	if (nr != SYS_rt_sigprocmask && nr != SYS_clone && !kbi_broadcast_has_me())
		return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (kbi_emulate_is_owned(nr) && kbi_emulate_owned(nr, a, call_in_first_process, &r))
		return r;
	switch (nr) {
	case SYS_rt_sigprocmask:
		return make_sigprocmask(a);
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
		a[0] = (long)open_kept_signals((const void *)a[0], &set);
		break;
	case SYS_ppoll: /* from here to pselect6 only where all calls are intercepted */
		a[3] = (long)open_kept_signals((const void *)a[3], &set);
		break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		a[4] = (long)open_kept_signals((const void *)a[4], &set);
		break;
	case SYS_pselect6:
		return make_pselect(a);
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_shmat:
	case SYS_shmdt:
		return kbi_emulate_memory(nr, a);
	case SYS_prlimit64:
		return make_prlimit(a);
	case SYS_prctl:
		return make_prctl(a);
	case SYS_seccomp: /* from here to getpgrp only where a seccomp filter is used */
		return refuse_apart("seccomp", -ENOSYS);
	case SYS_landlock_restrict_self:
		return refuse_apart("landlock_restrict_self", -ENOSYS);
	case SYS_unshare:
		return refuse_apart("unshare", -ENOSYS);
	case SYS_setns:
		return refuse_apart("setns", -ENOSYS);
	case SYS_setsid:
	case SYS_getsid:
	case SYS_setpgid:
	case SYS_getpgid:
#ifdef SYS_getpgrp
	case SYS_getpgrp:
#endif
		return call_in_first_process(nr, a);
#ifdef SYS_brk
	case SYS_brk: /* the kernel's would grow in this process only: libc's malloc does without it */
		return program.brk;
#endif
	case SYS_rt_sigaction:
		return set_libc_action(a[0], (const void *)a[1], (void *)a[2], a[3]);
	case SYS_futex:
		a[1] &= ~FUTEX_PRIVATE_FLAG;
		if (is_futex_wait_op(a[1]) && kbi_emulate_futex)
			return kbi_emulate_futex(a);
		break;
	case SYS_kill:
	case SYS_rt_sigqueueinfo:
		return kill_program(nr, a);
	case SYS_tgkill:
		return send_signal_to_thread(a);
	case SYS_getppid:
		return program.parent;
	case SYS_getpid:
		return program.pid;
	case SYS_wait4:
	case SYS_waitid:
		return kbi_emulate_waits(nr, a);
	case SYS_ptrace:
	case SYS_mq_notify:
		return call_in_first_process(nr, a);
	case SYS_getrusage:
	case SYS_times:
		if (kbi_emulate_cpu && kbi_emulate_cpu(nr, a, &r))
			return r;
		break;
	case SYS_alarm:
	case SYS_setitimer:
	case SYS_getitimer:
	case SYS_timer_create:
	case SYS_timer_settime:
	case SYS_timer_gettime:
	case SYS_timer_getoverrun:
	case SYS_timer_delete:
		return make_timer_call(nr, a);
	case SYS_execve:
	case SYS_execveat:
		if (kbi_emulate_exec)
			return kbi_emulate_exec(nr, a);
		break;
	case SYS_clone:
#ifdef SYS_fork
	case SYS_fork:
	case SYS_vfork:
#endif
		return make_fork_call(nr, a);
	case SYS_clone3: /* callers fall back to clone */
		return -ENOSYS;
	default:
		break;
	}
	return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Makes a call for libc. Where libc would notice that its call was interrupted to cancel the
 * thread, the thread is cancelled as in a call of older versions of libc: at any instruction. */
static long make_call_for_libc(long nr, long a[6], const uintptr_t *frame)
{
	int type;
	long r;

	if (kbi_likely(!kbi_intercept_cancel_made(frame)))
		return make_intercepted_call(nr, a);
	kbi_real.pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	r = make_intercepted_call(nr, a);
	kbi_real.pthread_setcanceltype(type, NULL);
	return r;
}

int kbi_emulate_take_over(const char **why)
{
	program.pid = (int)kbi_sys(SYS_getpid);
	program.parent = kbi_sys(SYS_getppid);
#ifdef SYS_brk
	program.brk = kbi_sys(SYS_brk, 0);
#endif
	kbi_intercept_cancel_find();
	return kbi_intercept_begin(make_call_for_libc, program.pid, why);
}
