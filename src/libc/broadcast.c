/* libc/broadcast.c - one system call in every process. Contract in broadcast.h.
 * One call at a time is under way, under a lock that is held with all signals blocked. A process
 * that waits for the lock makes the call that is under way, so that two callers do not wait for
 * each other. The signal ends some system calls that the kernel does not restart. The sender finds
 * out beforehand in which call the receiver is, and the handler has that call made again, for the
 * rest of its time. A receiver that enters a call between the two sees EINTR. */
#include "libc/broadcast.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/atom.h"
#include "libc/context.h"
#include "libc/real.h"
#include "os/sys.h"
#include "os/trace.h"

enum {
	MASK_BYTES = 8,
	ACTION_FLAGS = 1, /* words of the kernel's struct, x86-64 */
	ACTION_RESTORER = 2,
	ACTION_MASK = 3,
	AGAIN = 20000000, /* ns: repeats the signal, looks for dead processes */
	WATCH = 100000,   /* ns: the watcher looks after other processes while it waits */
	STAND = -1,       /* in place of a call's number: stand still for a while */
};

struct process {
	a32 pid;     /* 0: free */
	a64 begun;   /* number of the last call that it has made, or is making */
	a64 done;
	/* that the process was found in; constant while it is waited for */
	struct kbi_context_call call;
	struct kbi_context_rest rest; /* written by the process itself */
	a32 excused; /* it stands at its end, or has ended: nobody waits for it */
};

uint64_t kbi_broadcast_kept = (uint64_t)1 << (KBI_BROADCAST_SIGNAL - 1);
uintptr_t kbi_broadcast_restorer;

static struct {
	/* holder: its place in `process`, from 1, which a killed holder leaves to its successor; 0:
	 * free */
	a32 lock;
	/* under the lock */
	struct process *process;
	unsigned n, most;
	struct kbi_broadcast_call call;
	bool making; /* the holder is making `call` */
	a64 number;  /* of the call; 0: there was none */
	a32 answers; /* counts answers; the caller sleeps on it (futex) */
	a32 standing; /* lower half of the number of the stop that is on; 0: none */
	/* constant after setup: the signal's action in the kernel's form; libc's, ours */
	uint64_t before[4], ours[4];
} all;

void (*kbi_broadcast_meanwhile)(void);
int kbi_broadcast_watcher;

static void (*more)(void *context);

static struct process *find_process(int pid)
{
	for (unsigned i = 0; i < all.most && i < all.n; i++)
		if (a_load_rlx(&all.process[i].pid) == (uint32_t)pid)
			return &all.process[i];
	return NULL;
}

/* Returns the caller's entry. A killed process leaves it to its successor, perhaps between getpid
 * and find_process: then again. */
static struct process *own_process(void)
{
	struct process *p;
	long pid;

	do {
		pid = kbi_sys(SYS_getpid);
		p = find_process((int)pid);
	} while (!p && pid != kbi_sys(SYS_getpid));
	return p;
}

static uint32_t place_in_processes(const struct process *p)
{
	/* not in the table: about to be added */
	return p ? (uint32_t)(p - all.process) + 1 : UINT32_MAX;
}

bool kbi_broadcast_has_me(void)
{
	return own_process();
}

uint64_t kbi_broadcast_last(void)
{
	struct process *me = own_process();

	return me ? a_load_rlx(&me->begun) : 0;
}

static inline bool is_syscall_error(long r)
{
	return (unsigned long)r > -4096ul;
}

static long make_call_here(const struct kbi_broadcast_call *c)
{
	long a[6], r;
	int sig = 0;

	if (c->fn)
		return c->fn(c);
	memcpy(a, c->arg, sizeof a);
	if (c->pointer >= 0)
		a[c->pointer] = (long)(uintptr_t)c->data;
	if (c->rights)
		kbi_sys(SYS_prctl, PR_GET_PDEATHSIG, &sig);
	r = kbi_sys(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	for (unsigned i = 0; i < c->more; i++)
		kbi_sys(c->nr, a[0] += c->step, a[1], a[2], a[3], a[4], a[5]);
	if (c->rights)
		kbi_sys(SYS_prctl, PR_SET_PDEATHSIG, sig);
	return r;
}

/* Returns true if the process has ended. Only its parent, the supervisor, can tell, before it reaps
 * the process; to a caller that is not the parent every process lives. */
static bool is_dead_pid(uint32_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return !kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL) &&
	       kbi_trace_has_ended(&info);
}

static bool is_dead_holder(uint32_t holder)
{
	uint32_t pid = holder && holder <= all.most ? a_load_rlx(&all.process[holder - 1].pid) : 0;

	return pid && is_dead_pid(pid);
}

void kbi_broadcast_excuse(int pid)
{
	struct process *p = pid ? find_process(pid) : NULL;

	if (!p || a_load_rlx(&p->excused))
		return;
	/* release: partner is the acquire in is_waited_for; of the next line: the acquires in
	 * make_call_in_others and kbi_broadcast_stopped */
	a_store_rel(&p->excused, 1);
	a_add_acqrel(&all.answers, 1);
	kbi_sys_futex_wake(&all.answers, 1);
}

/* Excuses children of the caller that have ended: a holder of the lock may wait for such a process,
 * and cannot know. */
static void excuse_dead_children(void)
{
	siginfo_t info;

	if (kbi_sys(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL))
		return; /* the caller has no children */
	for (unsigned i = 0; i < all.n; i++) {
		uint32_t pid = a_load_rlx(&all.process[i].pid);

		if (pid && is_dead_pid(pid))
			kbi_broadcast_excuse((int)pid);
	}
}

/* Returns true if the caller is the process on which the rest depend while it waits; it has then
 * served them. */
static bool serve_as_watcher(void)
{
	if (!kbi_broadcast_meanwhile || kbi_sys(SYS_getpid) != kbi_broadcast_watcher)
		return false;
	kbi_broadcast_meanwhile();
	return true;
}

/* Returns true if the holder stands at its end until it has a successor: no other process can begin
 * anything. */
static bool is_frozen(uint32_t holder)
{
	return holder && holder <= all.most && a_load_rlx(&all.process[holder - 1].excused);
}

/* Waits for the end of the stop `number`; another stop may follow at once. The stopping process
 * waits for all, and cannot know that a process is at its end: the parent looks. The watcher leaves
 * early if the stopping process depends on it. */
static void stand_still(uint32_t number)
{
	/* acquire: partner is the release in release_standing */
	while (a_load_acq(&all.standing) == number) {
		bool watches = serve_as_watcher();
		const struct timespec patience = { 0, watches ? WATCH : AGAIN };

		if (watches && is_frozen(a_load_rlx(&all.lock)))
			return;
		if (kbi_sys_futex_wait(&all.standing, number, &patience) == -ETIMEDOUT)
			excuse_dead_children();
	}
}

/* Ends the program by SIGABRT, because a thread has given this process an identity of its own: the
 * process can neither follow the others nor interrupt them. SIGABRT's handler does not run, for it
 * would ask the others. */
static void abort_program(const char *why)
{
	const uint64_t by_default[4] = { 0 }, none = 0;

	kbi_sys_message("%s", why);
	kbi_sys(SYS_rt_sigaction, SIGABRT, by_default, NULL, MASK_BYTES);
	kbi_sys_signal(kbi_sys_gettid(), SIGABRT);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, MASK_BYTES);
	kbi_sys(SYS_exit_group, 134);
}

void kbi_broadcast_answer(void)
{
	struct process *me = own_process();
	/* acquire: partner is the release in publish_call_number; makes `call` visible. The CAS
	 * lets either this or a handler that interrupts here make the call; its partner is
	 * itself. */
	uint64_t number = a_load_acq(&all.number), before;
	bool stop, lags;

	if (!me || (before = a_load_rlx(&me->begun)) == number ||
		!a_cas_acqrel(&me->begun, &before, number))
		return;
	stop = all.call.nr == STAND;
	lags = !stop && is_syscall_error(make_call_here(&all.call)) && all.call.rights;
	/* release: partner is the acquire in is_waited_for; of the next line: the acquires in
	 * make_call_in_others and kbi_broadcast_stopped */
	a_store_rel(&me->done, number);
	a_add_acqrel(&all.answers, 1);
	kbi_sys_futex_wake(&all.answers, 1);
	if (lags)
		abort_program("set*id: a kernel thread kept its old identity");
	if (!stop)
		return;
	stand_still((uint32_t)number);
	kbi_broadcast_answer(); /* make the calls that came while it stood */
}

/* ---- the signal ------------------------------------------------------------------------------ */

static void on_broadcast_signal(int sig, siginfo_t *info, void *context)
{
	struct process *me = own_process();
	int saved = errno;

	(void)sig, (void)info;
	if (me && kbi_context_is_in_call(context, &me->call))
		kbi_context_go_on(context, &me->call, &me->rest);
	kbi_broadcast_answer();
	if (more)
		more(context);
	errno = saved;
}

void kbi_broadcast_fit(uint64_t *action)
{
	action[ACTION_MASK] &= ~kbi_broadcast_faults();
	if (kbi_broadcast_restorer)
		action[ACTION_RESTORER] = kbi_broadcast_restorer;
}

static void set_action(int sig, const uint64_t *new, uint64_t *old)
{
	uint64_t fit[4];

	if (new) {
		memcpy(fit, new, sizeof fit);
		kbi_broadcast_fit(fit);
	}
	kbi_sys(SYS_rt_sigaction, sig, new ? fit : NULL, old, MASK_BYTES);
}

/* libc's sigaction refuses this signal; the restorer is copied from another signal's action. The
 * handler runs on the kernel thread's alternate stack: the calls may need more stack than threads
 * are sure to have, and below the stack pointer of some threads nothing may be written. */
int kbi_broadcast_setup(unsigned processes)
{
	struct sigaction sa = { .sa_sigaction = on_broadcast_signal,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK }, other;

	all.process = kbi_sys_map(processes * sizeof *all.process);
	if (!all.process)
		return ENOMEM;
	all.most = processes;
	sigfillset(&sa.sa_mask);
	kbi_real.sigaction(SIGPWR, &sa, &other);
	set_action(SIGPWR, NULL, all.ours);
	kbi_real.sigaction(SIGPWR, &other, NULL);
	all.ours[ACTION_MASK] = ~(uint64_t)0; /* blocks libc's signal for cancellation, too */
	set_action(KBI_BROADCAST_SIGNAL, all.ours, all.before);
	return 0;
}

void kbi_broadcast_also(void (*fn)(void *context))
{
	more = fn;
}

/* ---- one caller at a time -------------------------------------------------------------------- */

/* Returns true if a process stands at its end and has no successor yet. It may have begun to make
 * the last call, which the successor makes again: no call may come between. */
static bool any_frozen(void)
{
	for (unsigned i = 0; kbi_broadcast_meanwhile && i < all.n; i++)
		if (is_frozen(i + 1) && a_load_rlx(&all.process[i].pid))
			return true;
	return false;
}

/* Tries to take the lock. Fails also while a process is frozen, unless the caller acts for it. */
static bool try_lock_calls(bool acts)
{
	uint32_t holder = 0;

	/* acquire: partner is the release in kbi_broadcast_release; also makes the excuses of the last
	 * holder's time visible */
	if (!a_cas_acq(&all.lock, &holder, place_in_processes(own_process())))
		return false;
	if (acts || !any_frozen())
		return true;
	a_store_rel(&all.lock, 0); /* partner: the acquire above */
	return false;
}

/* Takes the lock. Returns true if a frozen process holds it instead; only where the caller can act
 * for that process. */
static bool lock_calls(uint64_t *mask, bool acts)
{
	const uint64_t every = ~kbi_broadcast_faults();

	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, mask, MASK_BYTES);
	for (unsigned n = 0; !try_lock_calls(acts); n++) {
		uint32_t holder = a_load_rlx(&all.lock);

		if (acts && is_frozen(holder))
			return true;
		/* the holder ended, perhaps by exit in another of its kernel threads: the program ends, or
		 * the supervisor hears of it */
		if (is_dead_holder(holder)) {
			if (acts)
				return true;
			/* acquire: partner is the release in kbi_broadcast_release */
			if (a_cas_acq(&all.lock, &holder, place_in_processes(own_process())))
				return false;
		}
		excuse_dead_children();
		kbi_broadcast_answer();
		serve_as_watcher();
		kbi_sys_yield_to_holder(n);
	}
	return false;
}

void kbi_broadcast_hold(uint64_t *mask)
{
	lock_calls(mask, false);
}

static void release_standing(void)
{
	if (!a_load_rlx(&all.standing))
		return;
	a_store_rel(&all.standing, 0); /* partner: stand_still, kbi_broadcast_stand */
	kbi_sys_futex_wake(&all.standing, 1 << 30);
}

void kbi_broadcast_release(uint64_t mask)
{
	release_standing();
	all.making = false;
	/* release: partner is the acquire in try_lock_calls */
	a_store_rel(&all.lock, 0);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
}

void kbi_broadcast_add(int pid)
{
	struct process *p = find_process(0);

	if (!p && all.n < all.most)
		p = &all.process[all.n++];
	if (!p)
		return;
	a_store_rlx(&p->begun, a_load_rlx(&all.number));
	a_store_rlx(&p->done, a_load_rlx(&all.number));
	a_store_rlx(&p->excused, 0);
	a_store_rel(&p->pid, (uint32_t)pid); /* partner: is_waited_for */
}

void kbi_broadcast_remove(int pid)
{
	struct process *p = find_process(pid);
	uint32_t holder = place_in_processes(p);

	if (p) {
		a_store_rel(&p->pid, 0); /* partner: is_waited_for */
		a_cas_acqrel(&all.lock, &holder, 0); /* partner: try_lock_calls */
	}
	kbi_sys_futex_wake(&all.answers, 1);
}

/* acquire: partner is the release in kbi_broadcast_answer (done), _excuse (excused), _add, _remove
 * and _succeed (pid) */
static bool is_waited_for(struct process *p, const struct process *me, uint64_t number)
{
	return p != me && a_load_acq(&p->pid) && a_load_acq(&p->done) != number &&
		!a_load_acq(&p->excused);
}

static bool any_waited_for(const struct process *me, uint64_t number, bool tell)
{
	bool any = false;

	for (unsigned i = 0; i < all.n; i++) {
		struct process *p = &all.process[i];
		uint32_t pid = a_load_rlx(&p->pid);
		long r;

		if (!is_waited_for(p, me, number))
			continue;
		any = true;
		r = tell && pid ? kbi_sys(SYS_kill, pid, KBI_BROADCAST_SIGNAL) : 0;
		if (r == -ESRCH)
			a_cas_rlx(&p->pid, &pid, 0); /* unless a successor has its place */
		else if (r == -EPERM)
			abort_program("a thread with an identity of its own cannot reach "
				"the program's other processes");
	}
	return any;
}

/* Notes the system calls that the processes are in, before they are interrupted. */
static void note_process_calls(const struct process *me)
{
	for (unsigned i = 0; i < all.n; i++) {
		int pid = (int)a_load_rlx(&all.process[i].pid);

		if (pid && &all.process[i] != me)
			kbi_context_find_call(pid, &all.process[i].call);
	}
}

static void publish_call_number(struct process *me, uint64_t number)
{
	if (me) {
		a_store_rlx(&me->begun, number);
		a_store_rlx(&me->done, number);
	}
	/* release: partner is the acquire in kbi_broadcast_answer */
	a_store_rel(&all.number, number);
}

/* Has the call made by all other processes and waits for them. The signal is repeated now and then:
 * the receiver may have been changing its mask, or about to end. */
static void make_call_in_others(void)
{
	struct process *me = own_process();
	uint64_t number = a_load_rlx(&all.number) + 1, told = 0;

	note_process_calls(me);
	publish_call_number(me, number);
	for (;;) {
		uint32_t answers = a_load_acq(&all.answers); /* partner: kbi_broadcast_answer, _excuse */
		bool again = kbi_sys_now() - told >= AGAIN, watches = serve_as_watcher();
		const struct timespec patience = { 0, watches ? WATCH : AGAIN };

		if (!any_waited_for(me, number, again))
			return;
		if (again)
			told = kbi_sys_now();
		if (kbi_sys_futex_wait(&all.answers, answers, &patience) == -ETIMEDOUT)
			excuse_dead_children();
	}
}

/* `making` is set before the call: if the holder is killed, the process that acts for it makes the
 * call again. */
static long make_call_first(const struct kbi_broadcast_call *c)
{
	all.call = *c;
	kbi_compiler_barrier();
	all.making = true;
	return make_call_here(c);
}

long kbi_broadcast(const struct kbi_broadcast_call *c)
{
	uint64_t mask;
	long r;

	kbi_broadcast_hold(&mask);
	r = make_call_first(c);
	if (!is_syscall_error(r))
		make_call_in_others();
	kbi_broadcast_release(mask);
	return r;
}

static void stop_others(void)
{
	all.call = (struct kbi_broadcast_call){ .nr = STAND, .pointer = -1 };
	/* before the number is published */
	a_store_rlx(&all.standing, (uint32_t)(a_load_rlx(&all.number) + 1));
	make_call_in_others();
}

void kbi_broadcast_stop(uint64_t *mask)
{
	kbi_broadcast_hold(mask);
	stop_others();
}

bool kbi_broadcast_try_stop(uint64_t *mask)
{
	const uint64_t every = ~kbi_broadcast_faults();

	if (!try_lock_calls(false))
		return false;
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, mask, MASK_BYTES);
	stop_others();
	return true;
}

long kbi_broadcast_stopped(const struct kbi_broadcast_call *c)
{
	struct process *me = own_process();
	long r = make_call_first(c);
	uint64_t number = a_load_rlx(&all.number) + 1;
	uint32_t answers;

	if (is_syscall_error(r))
		return r;
	publish_call_number(me, number);
	release_standing();
	/* partner: kbi_broadcast_answer */
	while (answers = a_load_acq(&all.answers), any_waited_for(me, number, false))
		kbi_sys_futex_wait(&all.answers, answers, &(struct timespec){ 0, AGAIN });
	return r;
}

/* ---- killed processes ------------------------------------------------------------------------ */

bool kbi_broadcast_act_for(int old, uint64_t *mask)
{
	bool its;

	kbi_broadcast_excuse(old);
	its = lock_calls(mask, true);
	if (its && all.making)
		make_call_here(&all.call);
	if (!a_load_rlx(&all.standing))
		kbi_broadcast_answer();
	return its;
}

bool kbi_broadcast_waits_for_another(int pid)
{
	uint32_t holder = a_load_rlx(&all.lock);

	return a_load_rlx(&all.standing) && is_frozen(holder) &&
		holder != place_in_processes(find_process(pid));
}

void kbi_broadcast_stand(void)
{
	const struct process *me = own_process();
	uint32_t number = a_load_acq(&all.standing); /* partner: release_standing */

	if (me && number && (uint32_t)a_load_rlx(&me->begun) == number)
		stand_still(number);
}

void kbi_broadcast_succeed(int old, int now)
{
	struct process *p = find_process(old);
	uint64_t number = a_load_rlx(&all.number);

	if (!p)
		return;
	/* the successor is a copy of the caller, which has made all calls, also a call that old was
	 * about to announce */
	if (a_load_rlx(&p->done) < number) {
		a_store_rlx(&p->begun, number);
		a_store_rlx(&p->done, number);
	}
	a_store_rlx(&p->excused, 0);
	a_store_rel(&p->pid, (uint32_t)now); /* partner: is_waited_for */
}

void kbi_broadcast_forget(void)
{
	all.n = 0;
	set_action(KBI_BROADCAST_SIGNAL, all.before, NULL);
	a_store_rlx(&all.standing, 0);
	a_store_rlx(&all.lock, 0);
}
