/* posix/signal_send.c - sending signals: to a thread, to the caller, to the process from inside.
 * Callers: programs, posix/identity (by number). All functions may be called in handlers, except to
 * send to a thread that does not run. No locks. Handlers of signals to the caller run inside, and
 * may switch. */
#include "posix/signal_priv.h"

#include <string.h>
#include <sys/syscall.h>

#include "os/sys.h"

static void fill_signal_info(siginfo_t *info, int sig, int code, union sigval value)
{
	memset(info, 0, sizeof(*info));
	info->si_signo = sig;
	info->si_code = code;
	info->si_pid = getpid();
	info->si_uid = getuid();
	info->si_value = value;
}

/* Sends self, the caller, a signal. A signal that self lets through has been handled when this
 * returns. */
static int send_self(struct kbi_task *self, const siginfo_t *info)
{
	int e;

	if (a_load_rlx(kbi_signal_mask(self)) & kbi_signal_bit(info->si_signo))
		return kbi_signal_send(kbi_signal_to(kbi_thread_of(self)), info, false);
	a_store_rlx(&kbi_signal_watch, 1);
	kbi_signal_resumed();
	e = kbi_signal_raise(info);
	kbi_signal_resumed(); /* handles signals that the handler has let through */
	return e;
}

/* ---- signals read from a descriptor ---------------------------------------------------------- */

static a64 described; /* signals for which some signalfd was made */

KBI_POSIX_API int signalfd(int fd, const sigset_t *set, int flags)
{
	uint64_t bits = 0;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		bits |= sigismember(set, sig) == 1 ? kbi_signal_bit(sig) : 0;
	(void)a_or_rlx(&described, bits);
	return kbi_libc()->signalfd(fd, set, flags);
}

/* Tests whether a signal to t may be read from a signalfd. A signal that t blocks would wait in our
 * list, where the kernel's read of the descriptor does not look. */
static bool may_signalfd_read(struct kb_thread *t, int sig)
{
	uint64_t bit = kbi_signal_bit(sig);

	return kbi_unlikely(a_load_rlx(&described) & bit) &&
		(a_load_rlx(kbi_signal_mask(&t->task)) & bit);
}

/* ---- to a thread ----------------------------------------------------------------------------- */

static int send_info(struct kbi_signal_to to, siginfo_t *info)
{
	struct kb_thread *t = to.t;

	if (may_signalfd_read(t, info->si_signo)) {
		/* the kernel accepts its own codes only from the first kernel thread */
		info->si_code = SI_QUEUE;
		return (int)-kbi_sys(SYS_rt_sigqueueinfo, getpid(), info->si_signo, info);
	}
	if (&t->task == kbi_self_raw())
		return send_self(&t->task, info);
	if (kbi_unlikely(kbi_signal_is_memory(info->si_signo)))
		/* a program's handler of these signals alone does not start the dispatcher */
		kbi_signal_need_dispatcher();
	/* ended and not joined yet: nothing to do, as in libc. acquire: partner is the release that
	 * gave the state */
	if (kbi_state_kind(a_load_acq(&t->task.state)) == KBI_TASK_DONE)
		return 0;
	return kbi_signal_send(to, info, false);
}

/* Sends the program a signal that cannot be handled, by the kernel. */
static int send_to_program(int sig)
{
	return kbi_libc()->kill(getpid(), sig) ? errno : 0;
}

static int send_light(struct kbi_signal_to to, int sig, int code, union sigval value)
{
	siginfo_t info;

	fill_signal_info(&info, sig, code, value);
	return send_info(to, &info);
}

int kbi_signal_queue(struct kbi_signal_to to, int sig, const siginfo_t *given)
{
	siginfo_t info = *given;

	info.si_signo = sig;
	if ((info.si_code >= 0 || info.si_code == SI_TKILL) && &to.t->task != kbi_self_raw())
		return EPERM;
	if (sig == 0)
		return 0;
	if (!kbi_signal_ok(sig))
		return EINVAL;
	if (sig == SIGKILL || sig == SIGSTOP)
		return send_to_program(sig);
	return send_info(to, &info);
}

int kbi_signal_kill(struct kbi_signal_to to, int sig)
{
	if (sig != 0 && !kbi_signal_ok(sig))
		return EINVAL;
	if (sig == SIGKILL || sig == SIGSTOP)
		return send_to_program(sig);
	return sig == 0 ? 0 : send_light(to, sig, SI_TKILL, (union sigval){ 0 });
}

/* Sends a signal to the calling child of vfork: it has its parent's control block, and libc may
 * know its parent's number. */
static int send_to_vfork_child(int sig)
{
	return (int)-kbi_sys(SYS_tgkill, kbi_sys(SYS_getpid), kbi_sys_gettid(), sig);
}

KBI_POSIX_API int pthread_kill(pthread_t id, int sig)
{
	struct kb_thread *t;
	bool gone;

	if (kbi_posix_in_vfork() && id == kbi_posix_self())
		return send_to_vfork_child(sig);
	kbi_posix_let_turn_end();
	t = kbi_posix_thread(id, &gone);
	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_kill(id, sig);
	if (kbi_unlikely(kbi_posix_forked))
		return EINVAL; /* the thread has not come along through fork: as libc says */
	return kbi_signal_kill(kbi_signal_to(t), sig);
}

KBI_POSIX_API int pthread_sigqueue(pthread_t id, int sig, const union sigval value)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);

	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_sigqueue(id, sig, value);
	if (!kbi_posix_lives(t))
		return ESRCH; /* unlike pthread_kill */
	if (sig != 0 && !kbi_signal_ok(sig))
		return EINVAL;
	return sig == 0 ? 0 : send_light(kbi_signal_to(t), sig, SI_QUEUE, value);
}

static int send_call_result(int e)
{
	if (e == 0)
		return 0;
	errno = e;
	return -1;
}

KBI_POSIX_API int raise(int sig)
{
	if (kbi_posix_in_vfork())
		return send_call_result(send_to_vfork_child(sig));
	return kbi_posix_light() ? send_call_result(pthread_kill(pthread_self(), sig)) :
		kbi_libc()->raise(sig);
}

KBI_POSIX_ALIAS(gsignal, raise);

/* Returns the caller if it is to take the signal itself, or NULL. POSIX: at least one signal is
 * delivered before kill returns if the caller lets it through and no other thread takes it. Main
 * takes it first; otherwise it is the caller's. */
static struct kbi_task *takes_itself(pid_t pid, int sig)
{
	struct kbi_task *self = kbi_posix_light();

	kbi_posix_let_turn_end();
	if (!self || pid != getpid() || !kbi_signal_ok(sig) || sig == SIGKILL || sig == SIGSTOP)
		return NULL;
	if (a_load_rlx(kbi_signal_mask(self)) & kbi_signal_bit(sig))
		return NULL;
	return kbi_signal_is_for(kbi_thread_of(self), sig) ? self : NULL;
}

/* Sends a signal to the program through the dispatcher, where VPs are processes: a signal that the
 * caller blocks is pending for the program when kill returns, also if another process is the
 * program's first. */
static bool send_by_dispatcher(pid_t pid, const siginfo_t *info)
{
	int sig = info->si_signo;

	return kbi_sys_from.processes && kbi_posix_light() && pid == getpid() && kbi_signal_ok(sig) &&
	       sig != SIGKILL && sig != SIGSTOP && kbi_signal_dispatcher_program(info);
}

/* Gives a handled signal to another thread that takes it: as in the kernel, that thread has it when
 * kill returns. Through the dispatcher it might come after the thread has ended, and a real-time
 * signal might come after a later one. */
static bool give_to_other_thread(pid_t pid, const siginfo_t *info)
{
	int sig = info->si_signo;

	if (!kbi_posix_light() || kbi_posix_me.in_handler || pid != getpid() || !kbi_signal_ok(sig) ||
	    sig == SIGKILL || sig == SIGSTOP || kbi_signal_ignored(sig) || kbi_kaction_is_default(sig))
		return false;
	if (!kbi_signal_queues(sig))
		return kbi_signal_give(info, false);
	/* not before signals that wait in the kernel */
	return kbi_signal_is_settled(sig) &&
		kbi_signal_give(info, !(a_load_rlx(&described) & kbi_signal_bit(sig)));
}

/* Notes a signal that was sent by the kernel, to this process and perhaps further ones. Also if
 * there is no dispatcher yet: a started dispatcher first takes the signals that wait there. */
static void note_kernel_sent(pid_t pid, int sig)
{
	if (kbi_signal_ok(sig) && (pid == getpid() || pid == 0 || pid == -getpgrp()))
		kbi_signal_note_sent(kbi_signal_bit(sig));
}

static int send_to_group(pid_t pid, int sig)
{
	struct kbi_task *self = kbi_signal_ok(sig) && kbi_call_may_wait() ? kbi_posix_light() : NULL;
	bool awaits = self && (pid == 0 || pid == -getpgrp()) && !kbi_signal_ignored(sig) &&
		!kbi_kaction_is_default(sig);
	uint32_t before = kbi_posix_me.handled;
	int e = kbi_libc()->kill(pid, sig);

	if (e)
		return e;
	note_kernel_sent(pid, sig);
	if (awaits)
		kbi_signal_await_own(self, sig, before);
	return 0;
}

/* Returns the process of which pid is a thread's number, else pid. */
static pid_t process_of(pid_t pid)
{
	return pid > 0 && kbi_posix_find(pid) ? getpid() : pid;
}

KBI_POSIX_API int kill(pid_t given, int sig)
{
	pid_t pid = process_of(given);
	struct kbi_task *self = takes_itself(pid, sig);
	siginfo_t info;
	int e = 0;

	if (pid <= 0)
		return send_to_group(pid, sig);
	fill_signal_info(&info, sig, SI_USER, (union sigval){ 0 });
	if (self)
		return send_call_result(send_self(self, &info));
	if (give_to_other_thread(pid, &info))
		return 0;
	if (!send_by_dispatcher(pid, &info))
		e = kbi_libc()->kill(pid, sig);
	if (e == 0)
		note_kernel_sent(pid, sig);
	return e;
}

KBI_POSIX_API int killpg(pid_t group, int sig)
{
	if (group < 0) {
		errno = EINVAL;
		return -1;
	}
	return kill(-group, sig);
}

KBI_POSIX_API int sigqueue(pid_t given, int sig, const union sigval value)
{
	pid_t pid = process_of(given);
	struct kbi_task *self = takes_itself(pid, sig);
	siginfo_t info;
	int e = 0;

	fill_signal_info(&info, sig, SI_QUEUE, value);
	if (self)
		return send_call_result(send_self(self, &info));
	if (give_to_other_thread(pid, &info))
		return 0;
	if (kbi_posix_light() && pid == getpid() && sig >= SIGRTMIN && sig <= SIGRTMAX)
		kbi_signal_close_all(kbi_self_raw(), sig);
	if (!send_by_dispatcher(pid, &info))
		e = kbi_libc()->sigqueue(pid, sig, value);
	if (e == 0)
		note_kernel_sent(pid, sig);
	return e;
}
