/* posix/signal_dispatcher.c - the signal dispatcher: a kernel thread that runs no thread of
 * the program. It blocks all signals and waits for those that some thread lets through, or waits
 * for. It gives each to such a thread: a thread in sigwait, main, or any thread. So a signal to the
 * process finds a parked thread while all VPs sleep or run threads that block it. A signal that no
 * thread lets through goes back to the kernel. Signals that a handler finds on the wrong thread
 * come to the dispatcher, too. It is started when the program has a handler or changes a mask.
 * Callers: this family, sigwait, cputimer, deputy, listing. Runs on its own kernel thread, which
 * only wakes threads: these go on alone beside it (core/single_threaded). A handler that
 * nevertheless runs on it is on a foreign kernel thread from its first use of an object. No
 * locks. */
#include "posix/signal_priv.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/dump.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/process.h"
#include "core/wait.h"
#include "core/worker_thread.h"
#include "os/sys.h"

/* signals that the dispatcher waits for: never fewer than threads let through. acquires: partner is
 * the change in kbi_signal_opened */
static a64 open;
static a32 openings; /* counts the times at which that set may have grown; changed there, too */
/* the exchange in kbi_signal_need_dispatcher is its own partner on another thread */
static a32 started;
/* kernel thread; 0: not ready. acquires: partner is the release in run_dispatcher */
static a32 tid;
/* not waiting: it may have a signal in hand. releases in run_dispatcher: partner is the
 * acquire in kbi_signal_dispatcher_is_at_work */
static a32 at_work;
/* rounds requested, and rounds done. asked: the change in kbi_signal_drain_dispatcher and the
 * acquire in answer_post_request are partners; answered: the release in answer_post_request and the
 * acquire in kbi_signal_drain_dispatcher */
static a32 asked, answered;
/* signals that were ever left with a thread that blocked them for the time of a handler; only
 * grows */
static a64 left;
static a32 unwoken;         /* a thread has a signal in its list for which it has not been woken */

bool kbi_signal_is_dispatcher(int who)
{
	return a_load_rlx(&tid) == (uint32_t)who;
}

/* ---- what threads let through ---------------------------------------------------------------- */

static void ring_dispatcher(void)
{
	if (a_load_acq(&tid))
		kbi_sys_signal((int)a_load_acq(&tid), kbi_preempt_signal());
}

/* Passes on signals to the program that were left with a thread which blocks them for the time of a
 * handler, to a thread that takes them now. */
static void pass_left_signals(uint64_t set)
{
	siginfo_t info;

	for (; set; set &= set - 1)
		while (kbi_signal_anybody_takes(set & -set) && kbi_signal_get_left(set & -set, &info))
			kbi_signal_forward(&info, KBI_SIGNAL_TO_PROCESS);
}

void kbi_signal_opened(uint64_t set)
{
	set = kbi_signal_deliverable(set);
	/* partners: the fence in close_unused, and the change of `left` in put_signal_in_list,
	 * which then calls pass_left_signals; the caller has stored its mask */
	a_fence_sc();
	a_add_acqrel(&openings, 1);
	if (set & ~a_or_acqrel(&open, set))
		ring_dispatcher();
	/* acquire: partner is the change in put_signal_in_list */
	if (kbi_unlikely(a_load_acq(&left) & set))
		pass_left_signals(a_load_acq(&left) & set);
}

/* Shrinks `open` after a signal came that no thread lets through any more. */
static void close_unused(void)
{
	uint64_t old = a_load_rlx(&open), all = 0;
	uint32_t before = a_load_acq(&openings);

	for (uint32_t i = 0; i < kbi_descriptor_limit(); i++)
		all |= kbi_signal_takes(kbi_descriptor_at(i));
	a_cas_acqrel(&open, &old, kbi_signal_deliverable(all));
	/* partner: the fence in kbi_signal_opened: either this sees the opening, or it sees the smaller
	 * set */
	a_fence_sc();
	if (a_load_acq(&openings) != before)
		a_or_acqrel(&open, old);
}

/* ---- to a thread ----------------------------------------------------------------------------- */

/* Returns the kernel thread on which t is, running or in a blocking call; 0: none. */
static int running_tid(struct kb_thread *t)
{
	/* acquire, here and below: partner is the release that gave the descriptor its state */
	uint64_t st = a_load_acq(&t->task.state);

	if (kbi_state_kind(st) == KBI_TASK_BLOCKED)
		return kbi_handoff_tid(t);
	return kbi_state_kind(st) == KBI_TASK_RUNNING ? kbi_signal_tid(kbi_vps[kbi_state_vp(st)]) : 0;
}

/* Returns that kernel thread if it lets the signal through, else 0. */
static int running_open_tid(struct kb_thread *t, int sig)
{
	uint64_t st = a_load_acq(&t->task.state), bit = kbi_signal_bit(sig);
	int on = running_tid(t);

	if (!on || (a_load_rlx(&t->signals.mask) & bit))
		return 0;
	return kbi_state_kind(st) == KBI_TASK_BLOCKED ||
		!(a_load_rlx(&kbi_signal_vp_mask[kbi_state_vp(st)]) & bit) ? on : 0;
}

/* Lets the kernel perform the default action on the whole process: there is no handler. */
static void act_by_default(int sig)
{
	uint64_t bit = kbi_signal_bit(sig), before;

	kbi_sys_signal(kbi_sys_gettid(), sig);
	kbi_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, &before, KBI_MASK_BYTES);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, KBI_MASK_BYTES);
}

/* ---- to a thread's list ---------------------------------------------------------------------- */

/* A thread that lets a signal through, or waits for it, when it is chosen may no longer do so when
 * the signal comes; a signal to the process would then stay with it. The thread stores its mask and
 * its wanted set and then looks for signals; the giver puts the signal into the list and then reads
 * mask and wanted set. So one of them sees the other's change. */
void kbi_signal_give_back(struct kb_thread *t)
{
	siginfo_t info;

	a_fence_sc(); /* partner: the fence in find_another_taker */
	while (a_load_acq(&t->signals.pending) &&
	       kbi_signal_get_back(t, a_load_rlx(&t->signals.mask) & ~a_load_rlx(&t->signals.wanted),
		       false, &info))
		kbi_signal_forward(&info, KBI_SIGNAL_TO_PROCESS);
}

/* Gives a signal that t does not take any more to another thread. A signal that t blocks for the
 * time of a handler stays with t, or the next signal would overtake it. */
static void find_another_taker(struct kb_thread *t, uint64_t bit)
{
	siginfo_t info;

	a_fence_sc(); /* partner: the fence in kbi_signal_give_back */
	while (!((kbi_signal_accepts(t) | kbi_signal_blocked_for_now(t)) & bit) &&
		kbi_signal_get_back(t, bit, false, &info))
		kbi_signal_forward(&info, KBI_SIGNAL_TO_PROCESS);
}

/* Wakes t for these signals, which are in its list. If they are not taken yet, t may have entered a
 * call, or started to run, since its state was read: its kernel thread is then made to look. */
static void wake_for_signals(struct kb_thread *t, uint64_t set)
{
	int on;

	kbi_wait_wake_next(&t->task);
	/* acquire: partner is the change of the bits in signal_pool */
	if (kbi_self_raw() != &t->task && (a_load_acq(&t->signals.pending) & set) &&
		(on = running_tid(t)))
		kbi_signal_kick(on);
}

/* Puts the signal into the thread's list; the thread takes it as soon as it runs. Returns 0, EAGAIN
 * or ESRCH. */
static int put_signal_in_list(struct kbi_signal_to to, const siginfo_t *info, bool shared)
{
	uint64_t bit = kbi_signal_bit(info->si_signo);
	struct kb_thread *t = to.t;
	int e;

	a_store_rlx(&kbi_signal_watch, 1);
	e = kbi_signal_put(to, info, shared);
	if (e == ESRCH)
		return e;
	wake_for_signals(t, bit);
	if (!shared)
		return e;
	find_another_taker(t, bit);
	if (kbi_unlikely(kbi_signal_blocked_for_now(t) & bit)) {
		/* acquire and release: partner is the acquire before pass_left_signals in
		 * kbi_signal_opened */
		a_or_acqrel(&left, bit);
		/* before the masks are read: partner is the fence in kbi_signal_opened, by a thread that
		 * has stored its mask: one of the two sees the other */
		a_fence_sc();
		pass_left_signals(bit);
	}
	return e;
}

/* Returns the kernel thread to which the signal is sent; 0: it waits in t's list. A real-time
 * signal always waits there: the kernel may bring it to a kernel thread that t has just left, and
 * until the relay there has put it into t's list, the next signal would come first. So the list is
 * the only queue, and t takes the signals in order. A bound thread's queue is the kernel's. */
static int target_tid(struct kb_thread *t, int sig)
{
	if (kbi_unlikely(kbi_signal_is_bound(t)))
		return running_tid(t);
	return kbi_signal_queues(sig) ? 0 : running_open_tid(t, sig);
}

/* Sends a signal to a thread. An effect on the whole process does not depend on a thread that gets
 * to run: t may wait for a lock that the caller holds. */
int kbi_signal_send(struct kbi_signal_to to, const siginfo_t *info, bool shared)
{
	struct kb_thread *t = to.t;
	uint64_t blocked = a_load_rlx(&t->signals.mask) | a_load_rlx(&t->signals.wanted);
	int sig = info->si_signo, on, e;

	if (kbi_signal_ignored(sig) && !(blocked & kbi_signal_bit(sig)))
		return 0;
	if (!(blocked & kbi_signal_bit(sig)) && kbi_kaction_is_default(sig)) {
		act_by_default(sig);
		return 0;
	}
	on = target_tid(t, sig);
	/* a signal to the process is for any thread it finds there: t may be about to end */
	e = on ? kbi_signal_send_to(on, t, info, shared ? KBI_SIGNAL_TO_PROCESS : to) : EBUSY;
	if (e != EBUSY)
		return e;
	e = put_signal_in_list(to, info, shared);
	if (e == ESRCH && shared)
		kbi_signal_forward(info, KBI_SIGNAL_TO_PROCESS);
	return e == ESRCH ? 0 : e;
}

/* Gives a signal to the process to a thread. If t runs, the signal is not sent to its kernel
 * thread: another thread might be there when it comes, and t might have ended when the dispatcher
 * gets it. */
bool kbi_signal_give(const siginfo_t *info, bool even_soon)
{
	struct kb_thread *t = kbi_signal_taker(info->si_signo, NULL);

	if (!t && even_soon)
		t = kbi_signal_taker_soon(info->si_signo);
	if (!t)
		return false;
	if (kbi_state_kind(a_load_acq(&t->task.state)) == KBI_TASK_BLOCKED)
		return kbi_signal_send(kbi_signal_to(t), info, true) == 0;
	return put_signal_in_list(kbi_signal_to(t), info, true) == 0;
}

/* ---- signals that no thread lets through, where VPs are processes ----------------------------
 * The dispatcher has them, or the first process. */

uint64_t kbi_signal_at_dispatcher(void)
{
	char path[64];
	uint64_t all = 0;

	if (!kbi_sys_from.processes)
		return 0;
	snprintf(path, sizeof path, "/proc/%d/status", getpid());
	all = kbi_signal_listed(path, "ShdPnd:");
	if (a_load_acq(&tid)) {
		snprintf(path, sizeof path, "/proc/%u/status", a_load_acq(&tid));
		all |= kbi_signal_listed(path, "SigPnd:");
	}
	return all;
}

bool kbi_signal_dispatcher_program(const siginfo_t *info)
{
	siginfo_t packed = *info;

	if (!kbi_sys_from.processes || !a_load_acq(&tid))
		return false;
	if (kbi_signal_is_overrun(info, (int)a_load_acq(&tid)))
		return true;
	kbi_signal_pack(&packed, KBI_SIGNAL_TO_PROCESS);
	return kbi_sys_signal_info((int)a_load_acq(&tid), info->si_signo, &packed) == 0;
}

/* ---- its work -------------------------------------------------------------------------------- */

static void requeue_signal(siginfo_t *info)
{
	if (kbi_signal_dispatcher_program(info) || kbi_signal_is_overrun(info, getpid()))
		return;
	kbi_signal_pack(info, KBI_SIGNAL_TO_PROCESS);
	kbi_sys(SYS_rt_sigqueueinfo, getpid(), info->si_signo, info);
}

/* Takes the signals of this number that wait behind the one in hand; returns how many. A thread's
 * signal goes to the thread. */
static size_t take_queued_behind(int sig, siginfo_t *info, size_t room)
{
	static const struct timespec none;
	uint64_t set = kbi_signal_bit(sig);
	struct kbi_signal_to to;
	size_t n = 0;

	while (n < room && kbi_sys(SYS_rt_sigtimedwait, &set, &info[n], &none, KBI_MASK_BYTES) > 0) {
		if (kbi_signal_unpack(&info[n], &to) == KBI_SIGNAL_LATE)
			continue;
		if (!to.t)
			n++;
		else if (kbi_signal_is_there(to.t))
			kbi_signal_send(to, &info[n], false);
	}
	return n;
}

/* Gives the signal back to the kernel. Signals that queue keep their order, although the kernel
 * puts a returned signal behind the rest. */
static void return_to_kernel(siginfo_t *info)
{
	enum { MOST = 4096 };
	static siginfo_t behind[MOST];
	size_t n = 0;

	close_unused();
	if (info->si_signo >= SIGRTMIN)
		n = take_queued_behind(info->si_signo, behind, MOST);
	requeue_signal(info);
	for (size_t i = 0; i < n; i++)
		requeue_signal(&behind[i]);
	kbi_signal_note_sent(kbi_signal_bit(info->si_signo));
}

/* Waits for the end of main's handler. On Linux a signal finds main in a handler of that signal
 * only if both come within the handler's few instructions. Here main's VP, which also computes for
 * other threads, may have lost its processor in the handler. */
static void await_main(int sig)
{
	enum { NAPS = 20 };
	static const struct timespec nap = { 0, 1000000 };

	for (int i = 0; kbi_signal_main_is_soon(sig); i++) {
		if (i == NAPS)
			kbi_signal_main_is_slow();
		else
			kbi_sys(SYS_nanosleep, &nap, NULL);
	}
}

static void deliver_signal(siginfo_t *info)
{
	struct kbi_signal_to to;
	int sig = info->si_signo;
	bool shared;

	if (kbi_signal_unpack(info, &to) == KBI_SIGNAL_LATE)
		return;
	/* a timer that counts computing time: a thread that computes is asked first */
	if (!to.t && (sig == SIGPROF || sig == SIGVTALRM) && info->si_code == SI_KERNEL)
		to = kbi_signal_to(kbi_signal_computing(sig));
	shared = !to.t;
	if (shared) {
		await_main(sig);
		to = kbi_signal_to(kbi_signal_taker(sig, NULL));
	} else if (!kbi_signal_is_there(to.t)) {
		return;
	}
	if (!to.t) {
		return_to_kernel(info);
		return;
	}
	kbi_signal_send(to, info, shared);
}

/* Passes a signal to the program on to the dispatcher; runs on the supervisor, where VPs are
 * processes. */
static void pass_to_dispatcher(siginfo_t *info)
{
	if (!kbi_signal_is_packed(info)) {
		if (kbi_signal_is_overrun(info, (int)a_load_acq(&tid)))
			return;
		kbi_signal_pack(info, KBI_SIGNAL_TO_PROCESS);
	}
	kbi_sys_signal_info((int)a_load_acq(&tid), info->si_signo, info);
}

/* Tests whether the signal asks for the list of threads; no call of the program's is to notice
 * it. */
static bool is_for_dump(long sig, const siginfo_t *info)
{
	struct sigaction sa;

	if (sig == SIGQUIT)
		return !kbi_libc()->sigaction(SIGQUIT, NULL, &sa) && kbi_dump_is_action(&sa);
	return sig == kbi_preempt_signal() && kbi_preempt_is_wish(info);
}

static bool is_for_work(long sig, const siginfo_t *info)
{
	if (kbi_unlikely(is_for_dump(sig, info))) {
		if (!kbi_process_is_copy(info))
			kbi_preempt_wish();
		return false;
	}
	return sig > 0 && !(sig == kbi_preempt_signal() && info->si_code == SI_TKILL) &&
		!kbi_process_is_copy(info);
}

/* the thread that executes a program: signals that no thread lets through are the new program's */
static aptr heir;

static void leave_with_heir(struct kb_thread *t)
{
	static const struct timespec none;
	uint64_t set = ~(kbi_signal_never() | kbi_broadcast_bit());
	struct kbi_signal_to to;
	siginfo_t info;
	long sig;

	while ((sig = kbi_sys(SYS_rt_sigtimedwait, &set, &info, &none, KBI_MASK_BYTES)) > 0)
		if (is_for_work(sig, &info) && kbi_signal_unpack(&info, &to) != KBI_SIGNAL_LATE &&
			(!to.t || to.t == t))
			kbi_signal_put(kbi_signal_to(t), &info, true);
}

static void wake_unwoken(void)
{
	/* acquire and release: partner is the release in put_and_ring */
	if (kbi_likely(!a_load_rlx(&unwoken)) || !a_xchg_acqrel(&unwoken, 0))
		return;
	for (uint32_t i = 0; i < kbi_descriptor_limit(); i++) {
		struct kb_thread *t = kbi_descriptor_at(i);
		uint64_t takes = kbi_signal_is_bound(t) ? ~(uint64_t)0 : kbi_signal_accepts(t);

		if (kbi_signal_is_there(t) && (a_load_acq(&t->signals.pending) & takes))
			wake_for_signals(t, takes);
	}
}

/* Answers kbi_signal_drain_dispatcher: delivers all signals that came before the request. */
static void answer_post_request(void)
{
	static const struct timespec none;
	uint32_t round = a_load_acq(&asked);
	siginfo_t info;
	uint64_t set;
	long sig;

	wake_unwoken();
	if (kbi_likely(round == a_load_rlx(&answered)))
		return;
	do {
		set = a_load_acq(&open);
		sig = kbi_sys(SYS_rt_sigtimedwait, &set, &info, &none, KBI_MASK_BYTES);
		if (is_for_work(sig, &info))
			deliver_signal(&info);
	} while (sig > 0);
	if (a_load_acq(&heir)) /* acquire: partner is the release in kbi_signal_dispatcher_empty */
		leave_with_heir(a_load_acq(&heir));
	/* release: partner is the acquire in kbi_signal_drain_dispatcher */
	a_store_rel(&answered, round);
	kbi_sys_futex_wake(&answered, INT_MAX);
}

bool kbi_signal_dispatcher_is_at_work(void)
{
	return a_load_acq(&at_work);
}

uint64_t kbi_signal_dispatcher_takes(uint64_t set)
{
	return a_load_acq(&open) & set;
}

/* Waits for the dispatcher, which sleeps or is busy, but not for ever. A thread that runs here
 * holds nothing that the dispatcher needs. */
void kbi_signal_drain_dispatcher(void)
{
	enum { NAPS = 100 };
	static const struct timespec nap = { 0, 10000000 };
	uint32_t mine, now;

	if (!a_load_acq(&tid))
		return;
	mine = a_add_acqrel(&asked, 1) + 1;
	ring_dispatcher();
	/* acquire: partner is the release in answer_post_request */
	for (int i = 0; i < NAPS && (int32_t)((now = a_load_acq(&answered)) - mine) < 0; i++)
		kbi_sys_futex_wait(&answered, now, &nap);
}

/* Returns a VP other than the caller's that lets the signal through, for a thread that has left or
 * has just come; or NULL. */
static const struct kbi_vp *find_open_vp(const struct kbi_vp *mine, uint64_t bit)
{
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (kbi_vps[i] != mine && !(a_load_acq(&kbi_signal_vp_mask[i]) & bit))
			return kbi_vps[i];
	return NULL;
}

static void close_other_vps(const struct kbi_vp *mine, uint64_t bit)
{
	enum { NAPS = 1000 };
	static const struct timespec nap = { 0, 50000 };
	const struct kbi_vp *vp;

	for (int i = 0;
		i < NAPS && (vp = find_open_vp(mine, bit)) && !kbi_signal_anybody_takes(bit); i++) {
		kbi_signal_kick(kbi_signal_tid(vp));
		kbi_sys(SYS_nanosleep, &nap, NULL);
	}
}

void kbi_signal_close_all(const struct kbi_task *self, int sig)
{
	uint64_t bit = kbi_signal_bit(sig);

	if (kbi_posix_me.in_handler)
		return;
	kbi_signal_need_dispatcher();
	if (!kbi_sys_from.processes)
		close_other_vps(self->vp, bit);
	if (!kbi_signal_dispatcher_takes(bit))
		return;
	close_unused();
	if (!kbi_signal_dispatcher_takes(bit))
		kbi_signal_drain_dispatcher(); /* it waits for fewer signals from here on */
}

void kbi_signal_dispatcher_empty(struct kb_thread *t)
{
	/* release: partner is the acquire in answer_post_request */
	a_store_rel(&heir, kbi_sys_from.processes ? t : NULL);
	kbi_signal_drain_dispatcher();
	a_store_rel(&heir, NULL);
}

static void *run_dispatcher(void *unused)
{
	uint64_t all = ~(kbi_signal_bit(KBI_LIBC_FIRST) | kbi_signal_bit(KBI_LIBC_LAST) |
		kbi_broadcast_bit()), set;
	siginfo_t info;

	(void)unused;
	if (kbi_sys_from.processes)
		/* no thread is alone there: a process that is killed inside a section would be waited
		 * for */
		kbi_self();
	kbi_handoff_helps();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, KBI_MASK_BYTES);
	/* release: partner is the acquire in await_dispatcher */
	a_store_rel(&tid, (uint32_t)kbi_sys_gettid());
	kbi_sys_futex_wake(&tid, INT_MAX);
	kbi_process_pass_by(pass_to_dispatcher);
	for (;;) {
		long sig;

		/* acquire: partner is the change in kbi_signal_opened, whose ring comes after the change */
		set = a_load_acq(&open) | kbi_signal_bit(kbi_preempt_signal());
		a_store_rel(&at_work, 0);
		sig = kbi_sys(SYS_rt_sigtimedwait, &set, &info, NULL, KBI_MASK_BYTES);
		a_store_rel(&at_work, 1);
		if (is_for_work(sig, &info))
			deliver_signal(&info);
		answer_post_request();
	}
	return NULL;
}

void kbi_signal_send_here(siginfo_t *info, struct kbi_signal_to to)
{
	int here = kbi_sys_gettid();

	if (kbi_signal_is_overrun(info, here))
		return;
	kbi_signal_pack(info, to);
	kbi_sys_signal_info(here, info->si_signo, info);
}

/* Puts a thread's signal into the thread's list, and lets the dispatcher wake the thread: the
 * caller may be a handler. The signal is not sent to the dispatcher: signals for several threads
 * would become a single signal there, as the kernel merges all signals that do not queue. */
static bool put_and_ring(struct kbi_signal_to to, const siginfo_t *info)
{
	int e;

	a_store_rlx(&kbi_signal_watch, 1);
	e = kbi_signal_put(to, info, false);
	if (e == 0) {
		a_store_rel(&unwoken, 1); /* release: partner is the change in wake_unwoken */
		ring_dispatcher();
	}
	return e != EAGAIN;
}

void kbi_signal_forward(const siginfo_t *info, struct kbi_signal_to to)
{
	siginfo_t packed = *info;
	int sig = info->si_signo, post = (int)a_load_acq(&tid);

	if (to.t && post && put_and_ring(to, info))
		return;
	if (kbi_signal_is_overrun(info, post ? post : getpid()))
		return;
	kbi_signal_pack(&packed, to);
	if (!a_load_acq(&tid)) {
		kbi_sys(SYS_rt_sigqueueinfo, getpid(), sig, &packed);
		kbi_signal_note_sent(kbi_signal_bit(sig));
		return;
	}
	kbi_sys_signal_info((int)a_load_acq(&tid), sig, &packed);
	kbi_signal_note_sent(kbi_signal_bit(sig));
	kbi_signal_opened(kbi_signal_bit(sig));
}

/* Waits until the dispatcher is ready. A signal that came earlier would go back to the kernel and
 * come again at once; where VPs are processes, it would wait at one of them, perhaps for ever. */
static void await_dispatcher(void)
{
	enum { TIMES = 10000 };
	static const struct timespec nap = { 0, 100000 };

	/* acquire: partner is the release in run_dispatcher */
	for (int i = 0; i < TIMES && !a_load_acq(&tid); i++)
		kbi_sys_futex_wait(&tid, 0, &nap);
	for (int i = 0; kbi_sys_from.processes && i < TIMES && !kbi_process_passes(); i++)
		kbi_sys(SYS_nanosleep, &nap, NULL);
}

static KBI_NOINLINE void start_dispatcher(void)
{
	uint64_t all = ~kbi_broadcast_bit(), old;

	kbi_signal_listen();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, KBI_MASK_BYTES);
	if (kbi_worker_kernel_thread(run_dispatcher, NULL))
		kbi_sys_message("no kernel thread for signals: those to the process may be late");
	else
		await_dispatcher();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, KBI_MASK_BYTES);
}

bool kbi_signal_has_dispatcher(void)
{
	return a_load_rlx(&tid) != 0;
}

void kbi_signal_need_dispatcher(void)
{
	a_store_rlx(&kbi_signal_watch, 1);
	if (kbi_unlikely(!a_load_rlx(&started)) && kbi_vp_n && !kbi_posix_forked &&
	    !kbi_posix_me.in_handler && !a_xchg_acqrel(&started, 1))
		start_dispatcher();
}
