/* posix/signal_send.c - sending: to a thread, to oneself, to the process from inside. Callers: programs; all may be
 * called in handlers, but for a signal to a thread that does not run. */
#include "posix/signal_priv.h"

#include <string.h>
#include <sys/syscall.h>

#include "os/sys.h"

static void describe(siginfo_t *info, int sig, int code, union sigval value)
{
	memset(info, 0, sizeof(*info));
	info->si_signo = sig;
	info->si_code = code;
	info->si_pid = getpid();
	info->si_uid = getuid();
	info->si_value = value;
}

/* To the caller. What it lets through has run before this returns. */
static int send_self(struct kbi_task *self, const siginfo_t *info)
{
	int e;

	if (a_load_rlx(kbi_signal_mask(self)) & kbi_signal_bit(info->si_signo))
		return kbi_signal_send(kbi_signal_to(kbi_thread_of(self)), info, false);
	a_store_rlx(&kbi_signal_watch, 1);
	kbi_signal_resumed();
	e = kbi_signal_raise(info);
	kbi_signal_resumed(); /* what its handler has let through */
	return e;
}

/* ---- signals read from a descriptor ------------------------------------------------------------------ */

static a64 described; /* signals that some signalfd has been made for */

KBI_POSIX_API int signalfd(int fd, const sigset_t *set, int flags)
{
	uint64_t bits = 0;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		bits |= sigismember(set, sig) == 1 ? kbi_signal_bit(sig) : 0;
	(void)a_or_rlx(&described, bits);
	return kbi_libc()->signalfd(fd, set, flags);
}

/* What the thread blocks waits for it in our list, where the kernel's read of the descriptor does not look. */
static bool is_read(struct kb_thread *t, int sig)
{
	uint64_t bit = kbi_signal_bit(sig);

	return kbi_unlikely(a_load_rlx(&described) & bit) && (a_load_rlx(kbi_signal_mask(&t->task)) & bit);
}

/* ---- to a thread --------------------------------------------------------------------------------------- */

static int send_info(struct kbi_signal_to to, siginfo_t *info)
{
	struct kb_thread *t = to.t;

	if (is_read(t, info->si_signo)) {
		info->si_code = SI_QUEUE; /* the kernel's own codes are for the first kernel thread to say */
		return (int)-kbi_sys(SYS_rt_sigqueueinfo, getpid(), info->si_signo, info);
	}
	if (&t->task == kbi_self_raw())
		return send_self(&t->task, info);
	if (kbi_unlikely(kbi_signal_is_memory(info->si_signo)))
		kbi_signal_need_post(); /* the program's handler of these alone does not start him */
	/* ended and not joined yet: nothing to do, as in libc */
	if (kbi_state_kind(a_load_acq(&t->task.state)) == KBI_TASK_DONE)
		return 0;
	return kbi_signal_send(to, info, false);
}

/* What nobody can handle is the kernel's affair. */
static int to_program(int sig)
{
	return kbi_libc()->kill(getpid(), sig) ? errno : 0;
}

static int send_light(struct kbi_signal_to to, int sig, int code, union sigval value)
{
	siginfo_t info;

	describe(&info, sig, code, value);
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
		return to_program(sig);
	return send_info(to, &info);
}

int kbi_signal_kill(struct kbi_signal_to to, int sig)
{
	if (sig != 0 && !kbi_signal_ok(sig))
		return EINVAL;
	if (sig == SIGKILL || sig == SIGSTOP)
		return to_program(sig);
	return sig == 0 ? 0 : send_light(to, sig, SI_TKILL, (union sigval){ 0 });
}

/* The child of vfork: it has its parent's control block, and its parent's number in what libc may know. */
static int to_child(int sig)
{
	return (int)-kbi_sys(SYS_tgkill, kbi_sys(SYS_getpid), kbi_sys_gettid(), sig);
}

KBI_POSIX_API int pthread_kill(pthread_t id, int sig)
{
	struct kb_thread *t;
	bool gone;

	if (kbi_posix_in_vfork() && id == kbi_posix_self())
		return to_child(sig);
	kbi_posix_let_turn_end();
	t = kbi_posix_thread(id, &gone);
	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_kill(id, sig);
	if (kbi_unlikely(kbi_posix_forked))
		return EINVAL; /* it has not come along through fork: as libc says */
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

static int answer(int e)
{
	if (e == 0)
		return 0;
	errno = e;
	return -1;
}

KBI_POSIX_API int raise(int sig)
{
	if (kbi_posix_in_vfork())
		return answer(to_child(sig));
	return kbi_posix_light() ? answer(pthread_kill(pthread_self(), sig)) : kbi_libc()->raise(sig);
}

KBI_POSIX_ALIAS(gsignal, raise);

/* POSIX: at least one signal is delivered before kill returns if the caller lets it through and nobody else takes it. Main
 * does so first; else it is the caller's. */
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

/* One that the caller blocks waits for the program when kill returns, also where another process is its first one. */
static bool posts(pid_t pid, const siginfo_t *info)
{
	int sig = info->si_signo;

	return kbi_sys_from.processes && kbi_posix_light() && pid == getpid() && kbi_signal_ok(sig) && sig != SIGKILL &&
	       sig != SIGSTOP && kbi_signal_post_program(info);
}

/* One with a handler that another thread takes: as in the kernel, that thread has it when kill returns. By way of the
 * postman it might come when the thread has ended, and a real-time signal behind the next. */
static bool gives(pid_t pid, const siginfo_t *info)
{
	int sig = info->si_signo;

	if (!kbi_posix_light() || kbi_posix_me.in_handler || pid != getpid() || !kbi_signal_ok(sig) || sig == SIGKILL ||
	    sig == SIGSTOP || kbi_signal_ignored(sig) || kbi_kaction_is_default(sig))
		return false;
	if (!kbi_signal_queues(sig))
		return kbi_signal_give(info, false);
	/* behind signals that wait in the kernel */
	return kbi_signal_is_settled(sig) && kbi_signal_give(info, !(a_load_rlx(&described) & kbi_signal_bit(sig)));
}

/* By the kernel, to this process among others perhaps. Also where there is no postman yet: one who has been started takes
 * first of all what waits there. */
static void sent(pid_t pid, int sig)
{
	if (kbi_signal_ok(sig) && (pid == getpid() || pid == 0 || pid == -getpgrp()))
		kbi_signal_note_sent(kbi_signal_bit(sig));
}

static int to_group(pid_t pid, int sig)
{
	struct kbi_task *self = kbi_signal_ok(sig) && kbi_call_may_wait() ? kbi_posix_light() : NULL;
	bool awaits = self && (pid == 0 || pid == -getpgrp()) && !kbi_signal_ignored(sig) && !kbi_kaction_is_default(sig);
	uint32_t before = kbi_posix_me.handled;
	int e = kbi_libc()->kill(pid, sig);

	if (e)
		return e;
	sent(pid, sig);
	if (awaits)
		kbi_signal_await_own(self, sig, before);
	return 0;
}

/* A thread's number is its process's. */
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
		return to_group(pid, sig);
	describe(&info, sig, SI_USER, (union sigval){ 0 });
	if (self)
		return answer(send_self(self, &info));
	if (gives(pid, &info))
		return 0;
	if (!posts(pid, &info))
		e = kbi_libc()->kill(pid, sig);
	if (e == 0)
		sent(pid, sig);
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

	describe(&info, sig, SI_QUEUE, value);
	if (self)
		return answer(send_self(self, &info));
	if (gives(pid, &info))
		return 0;
	if (kbi_posix_light() && pid == getpid() && sig >= SIGRTMIN && sig <= SIGRTMAX)
		kbi_signal_close_all(kbi_self_raw(), sig);
	if (!posts(pid, &info))
		e = kbi_libc()->sigqueue(pid, sig, value);
	if (e == 0)
		sent(pid, sig);
	return e;
}
