/* core/process.c - processes as the workers of VPs. Contract in process.h.
 *
 * Start: main saves its context and leaves its kernel thread to the supervisor, which has a stack
 * and a TLS block in the space. From there every private mapping is moved into the space
 * (os/memory), libc's system calls are taken over (libc/emulate), and the VPs are cloned: no
 * CLONE_VM, but the same descriptors and folder. Each has a stack and a TLS block from the space,
 * too. A process that needs another worker later clones it as a child of the supervisor.
 *
 * End: a process that ends by itself without having said so has ended the program. If the
 * supervisor dies, the kernel kills all the processes.
 *
 * The supervisor's loop runs on its own stack with all signals blocked; it takes no lock that a VP
 * may hold for long. */
#include "core/process.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/option.h"
#include "base/san.h"
#include "core/process_birth.h"
#include "core/process_children.h"
#include "core/process_clock.h"
#include "core/process_fork.h"
#include "core/process_stack.h"
#include "core/process_timers.h"
#include "core/foreign.h"
#include "core/preempt.h"
#include "core/respawn.h"
#include "core/run.h"
#include "core/single_threaded.h"
#include "core/supervisor.h"
#include "mem/heap_door.h"
#include "mem/stack.h"
#include "libc/broadcast.h"
#include "libc/emulate.h"
#include "libc/emulate_lock.h"
#include "libc/intercept_stub.h"
#include "libc/intercept.h"
#include "os/memory.h"
#include "libc/tcb.h"
#include "os/trace.h"
#include "os/sys.h"

enum {
	MASK_BYTES = 8,
	MORE = 1024 /* processes beside the workers that may run: workers kept by their threads */
};

static struct {
	/* at start */
	struct kb_thread *main;
	struct kbi_stack *stack;  /* the supervisor's */
	struct kbi_ctx ctx;
	int (*begin)(void);
	const char *why;
	int error;
	uint64_t mask;            /* the program's */
	/* the program's action for SIGCHLD in the kernel's form, and the action that stands there
	 * instead */
	uint64_t sigchld[4], instead[4];
} sup;
static aptr process_pass; /* see kbi_process_pass_by */

int kbi_process_supervisor(void)
{
	return kbi_supervisor.pid;
}

unsigned kbi_process_most(void)
{
	return kbi_supervisor.process ? kbi_supervisor.most : 0;
}

int kbi_process_at(unsigned i)
{
	return (int)a_load_rlx(&kbi_supervisor.process[i].pid);
}

/* ---- one process ----------------------------------------------------------------------------- */

/* Waits until the parent has added this process to the table of processes in which libc's calls are
 * made, holding that table's lock. Before that the process is taken for a child of the program's:
 * memory that it mapped would be private. */
static void wait_until_added(void)
{
	uint64_t mask;

	for (unsigned n = 0; !kbi_broadcast_has_me(); n++)
		kbi_sys_yield_to_holder(n);
	kbi_broadcast_hold(&mask);
	kbi_broadcast_release(mask);
}

static int run_process(void *arg)
{
	struct kbi_process *p = arg;
	stack_t none = { .ss_flags = SS_DISABLE };

#if KBI_HAVE_TP
	kbi_tp_set(p->stack->tcb.tp);
#endif
	kbi_sys_die_with(kbi_supervisor.pid);
	kbi_intercept_here(p->by_worker);
	kbi_supervisor_wait(p);
	wait_until_added();
	kbi_single_threaded_joins();
	kbi_sys(SYS_sigaltstack, &none, NULL);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &p->mask, NULL, MASK_BYTES);
	p->fn(p->arg);
	kbi_door_ends();
	a_store_rel(&p->over, 1); /* partner: the acquire in handle_process_end */
	kbi_sys(SYS_exit, 0);
	return 0;
}

/* Clones the process. The kernel itself writes the number down: the maker may be killed at this
 * very moment, and the supervisor has to end both. */
static int clone_process(struct kbi_process *p)
{
	long flags = CLONE_FILES | CLONE_FS | CLONE_SYSVSEM | CLONE_PARENT_SETTID | SIGCHLD;

	p->by_worker = kbi_sys(SYS_getpid) != kbi_supervisor.pid;
	if (p->by_worker)
		flags |= CLONE_PARENT;
	return (int)kbi_intercept_stub_process(run_process, p->stack->low + p->stack->size, flags, p,
		&p->pid);
}

/* Makes a process between hold and release: its number is known before anybody can miss it. If
 * maker and process were killed meanwhile, the process may have been started again with another
 * number. */
static long make_process(struct kbi_process *p)
{
	int pid = clone_process(p);

	if (pid < 0)
		return pid;
	kbi_broadcast_add((int)a_load_rlx(&p->pid));
	if (!kbi_supervisor.first)
		kbi_supervisor.first = (int)a_load_rlx(&p->pid);
	return 0;
}

int kbi_process_start(void *(*fn)(void *), void *arg)
{
	struct kbi_stack *s = kbi_process_stack_take(0);
	struct kbi_process *p;
	uint64_t mask;
	long e = -EAGAIN;

	if (!s)
		return EAGAIN;
	kbi_broadcast_hold(&mask);
	p = kbi_supervisor_find(0);
	if (p) {
		*p = (struct kbi_process){ .stack = s, .fn = fn, .arg = arg,
			.mask = mask & ~kbi_broadcast_faults() };
		e = make_process(p);
	}
	kbi_broadcast_release(mask);
	if (e)
		kbi_process_stack_put(s);
	return e ? EAGAIN : 0;
}

/* ---- the supervisor: end --------------------------------------------------------------------- */

static void kill_all(int sig)
{
	for (unsigned i = 0; i < kbi_supervisor.most; i++)
		if (a_load_rlx(&kbi_supervisor.process[i].pid))
			kbi_sys(SYS_kill, a_load_rlx(&kbi_supervisor.process[i].pid), sig);
}

/* Waits for the end of a process. A traced process stops once more before it. */
static void wait_for_end(int pid)
{
	int status;

	for (;;) {
		long r = kbi_sys(SYS_wait4, pid, &status, __WALL, NULL);

		if (r >= 0 && WIFSTOPPED(status))
			kbi_trace_go(pid, 0);
		else if (r != -EINTR)
			return;
	}
}

/* Ends all processes but the supervisor, before the program's parent is told of the end: then
 * nobody uses the program's resources any more. The processes may be starting another process
 * meanwhile. */
static void end_others(void)
{
	for (bool any = true; any;) {
		any = false;
		kill_all(SIGKILL);
		for (unsigned i = 0; i < kbi_supervisor.most; i++) {
			int pid = (int)a_load_rlx(&kbi_supervisor.process[i].pid);

			if (!pid)
				continue;
			kbi_sys(SYS_kill, pid, SIGKILL); /* again: it may have been listed since */
			wait_for_end(pid);
			a_store_rlx(&kbi_supervisor.process[i].pid, 0);
			any = true;
		}
	}
}

/* Ends all processes before exec, and restores the action of SIGCHLD for the next program to
 * inherit. */
static void end_others_for_exec(void)
{
	end_others();
	kbi_sys(SYS_rt_sigaction, SIGCHLD, sup.sigchld, NULL, MASK_BYTES);
}

/* Ends the program as the signal does by default. The dying process has written a core, if any. */
static KBI_NORETURN void die_of_signal(int sig)
{
	const struct rlimit none = { 0, 0 };
	const uint64_t dfl[4] = { 0 }, open = 0; /* the kernel's struct; libc's call would ask processes
	                                          * that are dead */

	kbi_sys(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL);
	kbi_sys(SYS_rt_sigaction, sig, dfl, NULL, MASK_BYTES);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &open, NULL, MASK_BYTES);
	kbi_sys(SYS_kill, kbi_supervisor.pid, sig);
	for (;;)
		kbi_sys(SYS_exit_group, 128 + sig);
}

static KBI_NORETURN void end_supervised_program(int status)
{
	end_others();
	if (WIFSIGNALED(status))
		die_of_signal(WTERMSIG(status));
	for (;;)
		kbi_sys(SYS_exit_group, WEXITSTATUS(status));
}

/* Handles the end of a process of ours. It is reaped only when nobody can send it a signal any
 * more: its number is used again. */
static void handle_process_end(int pid)
{
	struct kbi_stack *s = NULL;
	struct kbi_process *p;
	uint64_t mask;
	bool others;
	int status;

	if (kbi_supervisor_saves(pid))
		return;
	others = kbi_broadcast_act_for(pid, &mask);
	p = kbi_supervisor_find(pid);
	if (p && a_load_acq(&p->over)) { /* partner: the release in run_process */
		s = p->stack;
		kbi_process_clock_ends(pid);
		a_store_rlx(&p->pid, 0);
		kbi_process_clock_ends(0);
		kbi_broadcast_remove(pid);
	}
	if (!others)
		kbi_broadcast_release(mask);
	kbi_sys(SYS_wait4, pid, &status, __WALL, NULL);
	if (s) {
		kbi_process_stack_put(s);
	} else if (p) {
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !a_load_rlx(&p->final))
			kbi_sys_message("a virtual processor (process %d) was killed: the program ends", pid);
		end_supervised_program(status);
	}
}

/* ---- the supervisor: signals ----------------------------------------------------------------- */

static bool is_worker_process(int pid)
{
	return kbi_supervisor_find(pid) || kbi_respawn_is_dying(pid);
}

/* Returns true if the signal is about a process of ours, or about a process that was replaced. */
static bool is_about_worker(const siginfo_t *info)
{
	return info->si_code == CLD_TRAPPED ||
	       (info->si_code > 0 &&
		(is_worker_process(info->si_pid) || kbi_respawn_was_ours(info->si_pid)));
}

static bool is_stop_signal(int sig)
{
	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* Does the default action of a signal, as to any program. */
static void default_action(int sig)
{
	uint64_t only = ~((uint64_t)1 << (sig - 1)), every = ~(uint64_t)0;

	if (is_stop_signal(sig)) {
		kill_all(SIGSTOP);
		kbi_sys(SYS_kill, kbi_supervisor.pid, SIGSTOP);
		kill_all(SIGCONT);
		return;
	}
	kbi_sys(SYS_kill, kbi_supervisor.pid, sig);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &only, NULL, MASK_BYTES);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, MASK_BYTES);
}

/* Sends a signal on with its sender's value, where the kernel permits that. */
static void send_signal_on(int sig, siginfo_t *info)
{
	if (info->si_code >= 0 || kbi_sys(SYS_rt_sigqueueinfo, kbi_supervisor.first, sig, info))
		kbi_sys(SYS_kill, kbi_supervisor.first, sig);
}

bool kbi_process_is_copy(const siginfo_t *info)
{
	int sig = info->si_signo;

	return kbi_sys_from.processes && info->si_code == SI_KERNEL &&
	       (sig == SIGINT || sig == SIGQUIT || sig == SIGWINCH || sig == SIGHUP || sig == SIGCONT ||
		sig == SIGXCPU || is_stop_signal(sig));
}

static bool is_clock_signal(int sig)
{
	return sig == SIGALRM || sig == SIGPROF || sig == SIGVTALRM || sig == SIGXCPU;
}

static void reap_processes(void);

/* Handles a signal for the program. Signals from the terminal have reached each process already. */
static void handle_program_signal(int sig, siginfo_t *info)
{
	/* acquire: partner is the release in kbi_process_pass_by */
	void (*pass)(siginfo_t *) = (void (*)(siginfo_t *))(uintptr_t)a_load_acq(&process_pass);
	uintptr_t action[4]; /* the kernel's struct: its first word is the handler */

	if (sig == KBI_BROADCAST_SIGNAL) {
		kbi_broadcast_answer();
		while (!kbi_children_answer()) {
			kbi_supervisor_reap(handle_process_end);
			kbi_broadcast_answer();
		}
		kbi_process_fork_answer();
		kbi_supervisor_look();
		kbi_process_timers_look();
		/* the answer may have changed the action of SIGCHLD: then the kernel forgets
		 * children that wait */
		reap_processes();
		return;
	}
	if (sig == kbi_preempt_signal() && kbi_preempt_is_wish(info)) {
		kbi_preempt_wish();
		return;
	}
	if (kbi_children_timer(info) || kbi_sys(SYS_rt_sigaction, sig, NULL, action, MASK_BYTES))
		return;
	if (sig == SIGCHLD) {
		action[0] = sup.sigchld[0];
		if (sup.sigchld[1] & SA_NOCLDSTOP &&
		    (info->si_code == CLD_STOPPED || info->si_code == CLD_CONTINUED))
			return;
	}
	if ((info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL) &&
	    is_worker_process(info->si_pid))
		info->si_pid = kbi_supervisor.pid;
	if (pass && !(is_stop_signal(sig) && action[0] == (uintptr_t)SIG_DFL))
		pass(info);
	else if (action[0] == (uintptr_t)SIG_IGN || (action[0] == (uintptr_t)SIG_DFL && sig == SIGCHLD))
		return; /* SIGCHLD stays blocked: an opened SIGCHLD would be thrown away */
	else if (action[0] == (uintptr_t)SIG_DFL)
		default_action(sig);
	else if (info->si_code != SI_KERNEL || is_clock_signal(sig))
		send_signal_on(sig, info);
}

/* Reaps the program's children at once if the program does not want to know of their ends.
 * Processes of ours have been handled before. */
static void reap_unwanted(void)
{
	siginfo_t info;

	if (sup.sigchld[0] != (uintptr_t)SIG_IGN && !(sup.sigchld[1] & SA_NOCLDWAIT))
		return;
	do
		info.si_pid = 0;
	while (!kbi_sys(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, NULL) &&
	       info.si_pid && !is_worker_process(info.si_pid) &&
	       !kbi_sys(SYS_waitid, P_PID, info.si_pid, &info, WEXITED | WNOHANG, NULL));
}

/* Reaps processes of ours; the program's children wait for the program. */
static void reap_processes(void)
{
	kbi_supervisor_reap(handle_process_end);
	reap_unwanted();
	kbi_children_changed();
}

/* Replaces an action for SIGCHLD of the program's that would hide the ends of our processes from
 * the supervisor. */
static void watch_children(void)
{
	enum { HANDLER, FLAGS };
	const uint64_t hides = SA_NOCLDSTOP | SA_NOCLDWAIT;
	uint64_t now[4];

	if (kbi_sys(SYS_rt_sigaction, SIGCHLD, NULL, now, MASK_BYTES) ||
	    !memcmp(now, sup.instead, sizeof now))
		return;
	memcpy(sup.sigchld, now, sizeof now);
	if (now[HANDLER] == (uintptr_t)SIG_IGN)
		now[HANDLER] = (uintptr_t)SIG_DFL;
	now[FLAGS] &= ~hides;
	memcpy(sup.instead, now, sizeof now);
	kbi_sys(SYS_rt_sigaction, SIGCHLD, now, NULL, MASK_BYTES);
	reap_processes(); /* for changes before this */
}

static const uint64_t *programs_sigchld(void)
{
	watch_children();
	return sup.sigchld;
}

void kbi_process_pass_by(void (*pass)(siginfo_t *))
{
	/* release: partners are the acquires in handle_program_signal and kbi_process_passes */
	a_store_rel(&process_pass, (void *)(uintptr_t)pass);
	if (kbi_sys_from.processes) /* it decides again which signals it waits for */
		kbi_sys(SYS_kill, kbi_supervisor.pid, KBI_BROADCAST_SIGNAL);
}

bool kbi_process_passes(void)
{
	return a_load_acq(&process_pass) != NULL; /* partner: the release in kbi_process_pass_by */
}

/* Returns the signals to wait for. Signals that main blocks at the program's start stay pending
 * until pass() is set, because no other thread is known yet. */
static uint64_t signals_to_take(void)
{
	const uint64_t own = (uint64_t)1 << (SIGCHLD - 1) | (uint64_t)1 << (KBI_BROADCAST_SIGNAL - 1);

	return kbi_process_passes() ? ~(uint64_t)0 : ~sup.mask | own;
}

static KBI_NORETURN void run_supervisor(void)
{
	const struct timespec between = { 0, KBI_SUPERVISOR_BETWEEN };
	const uint64_t every = ~(uint64_t)0;
	siginfo_t info;
	uint64_t set;

	/* no signal is open for libc's sake either: a request must come out of the wait below */
	kbi_intercept_not_here();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, MASK_BYTES);
	sup.instead[1] = ~(uint64_t)0;
	/* for requests that came before: a handler does only a part of them */
	kbi_sys(SYS_kill, kbi_supervisor.pid, KBI_BROADCAST_SIGNAL);
	for (;;) {
		long sig;
		bool ours;

		watch_children();
		set = signals_to_take();
		sig = kbi_sys(SYS_rt_sigtimedwait, &set, &info, kbi_supervisor_reminds() ? &between : NULL,
			MASK_BYTES);
		ours = sig == SIGCHLD && is_about_worker(&info);
		if (sig == SIGCHLD)
			reap_processes();
		if (sig > 0 && !ours)
			handle_program_signal((int)sig, &info);
		if (sig == -EAGAIN)
			kbi_supervisor_remind();
	}
}

/* ---- start ----------------------------------------------------------------------------------- */

static const char *why_no_processes(void)
{
	if (KBI_SAN)
		return "not with sanitizers";
	if (kbi_san_is_valgrind())
		return "not under valgrind";
#if !defined(__x86_64__)
	return "not on this machine yet";
#endif
	return NULL;
}

int kbi_process_open(const char **why)
{
	int e;

	*why = why_no_processes();
	e = *why ? ENOTSUP : kbi_memory_is_told(why);
	return e ? e : kbi_memory_open(why);
}

static int prepare_supervisor(void)
{
	int e;

	sup.why = !kbi_tcb_available ? kbi_tcb_why() : kbi_emulate_why_not();
	if (!sup.why)
		sup.why = kbi_door_join();
	if (sup.why)
		return ENOTSUP;
	kbi_intercept_prepare();
	kbi_supervisor.most = kbi_vp_n + kbi_options.spares + MORE;
	kbi_supervisor.process = kbi_sys_map(kbi_supervisor.most * sizeof *kbi_supervisor.process);
	sup.stack = kbi_process_stack_take(kbi_vp_n);
	sup.why = "the space is full";
	e = kbi_supervisor.process &&
		sup.stack ? kbi_broadcast_setup(kbi_supervisor.most + 1) : ENOMEM;
	if (!e)
		kbi_broadcast_add((int)kbi_sys(SYS_getpid));
	return e;
}

/* Moves the program into the space and takes over libc's calls. libc's own TLS: nobody writes to
 * the rseq area of a block that has no kernel thread. */
static int convert_program(void)
{
	int e = kbi_emulate_take_over(&sup.why);

	kbi_process_birth_setup(kbi_intercept_stays() ? programs_sigchld : NULL);
	if (!e)
		e = kbi_memory_convert(&sup.why);
	if (e)
		return e;
	kbi_emulate_lock_again();
	kbi_supervisor.pid = (int)kbi_sys(SYS_getpid);
	kbi_children_setup(kbi_supervisor.pid, is_worker_process);
	kbi_process_fork_setup(kbi_supervisor.pid, end_others_for_exec);
	kbi_process_timers_setup(kbi_supervisor.pid, handle_program_signal);
	kbi_sys_from.futex = 0;
	kbi_sys_from.processes = true;
	kbi_door_shared(true);
	return 0;
}

/* Begins as the supervisor on its stack; main's context is saved, and its kernel thread is the
 * supervisor's from now on. */
static void begin_supervisor(void *unused)
{
	const uint64_t every = ~(uint64_t)0;
	struct kb_thread *t = sup.main;

	(void)unused;
#if KBI_HAVE_TP
	kbi_tp_set(sup.stack->tcb.tp);
#endif
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, &sup.mask, MASK_BYTES);
	sup.error = convert_program();
	if (!sup.error) {
		/* libgcc has locked a mutex of the drop-in's, but no other thread has run yet */
		if (kbi_foreign_undo())
			kbi_single_threaded_begin(kbi_vp_n);
		sup.why = "the system has no processes left for them";
		kbi_supervisor_begin(clone_process);
		sup.error = sup.begin();
	}
	if (sup.error) { /* the processes that have begun end, and the program is a single process as
	                  * before */
		kbi_door_held(true);
		end_others();
		kbi_process_timers_forget();
		kbi_process_fork_alone();
		kbi_door_held(false);
		kbi_supervisor.pid = 0;
		kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &sup.mask, NULL, MASK_BYTES);
#if KBI_HAVE_TP
		kbi_tp_set((void *)t->task.tp);
#endif
		kbi_ctx_leave(&t->task.ctx, NULL, NULL);
	}
	kbi_vp_send(kbi_vps[0], &t->task);
	run_supervisor();
}

KBI_SWITCHER int kbi_process_begin(int (*start)(void), const char **why)
{
	struct kb_thread *t = kbi_thread_of(kbi_self_raw());
	uint64_t fp = kbi_fp_get();
	int e = prepare_supervisor();

	if (!e) {
		sup.main = t;
		sup.begin = start;
		kbi_tcb_leave_block();
		kbi_door_ends(); /* main's allocations are the virtual processors', not the supervisor's */
		kbi_ctx_make(&sup.ctx, sup.stack->low, sup.stack->size, begin_supervisor, NULL);
		kbi_ctx_switch_bare(&t->task.ctx, &sup.ctx, NULL, NULL);
		if (!sup.error)
			kbi_run_load_fp(kbi_self_raw()->vp, fp);
		e = sup.error;
	}
	*why = sup.why;
	return e;
}
