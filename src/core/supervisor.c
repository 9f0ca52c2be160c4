/* core/supervisor.c - the supervisor's care for the processes. Contract in supervisor.h. Signals
 * for a traced process come by way of the supervisor, which passes them on at once. A process that
 * is about to end because it was killed gets a successor (core/respawn). All this happens between
 * two waits on the supervisor's own stack; while it waits for the lock of libc/broadcast it passes
 * signals on, because the lock's holder may wait for handlers. A process does nothing before it is
 * traced: a process that is killed before is started again. */
#include "core/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/option.h"
#include "core/respawn.h"
#include "libc/broadcast.h"
#include "os/sys.h"
#include "os/trace.h"

enum {
	NOTICES = 8 /* a killed process is told so often, until its thread is where it can be lost */
};

struct kbi_supervisor kbi_supervisor;

/* The supervisor's; the counts are read by all. */
static struct {
	bool traces; /* constant once there are other processes, unless the first attempt fails */
	bool noticing, again;
	int (*start_again)(struct kbi_process *p);
	struct kbi_trace_place *place; /* [most]: where each process stood when it last stopped */
	a32 killed, bound;        /* processes that had a successor; kernel threads that had none */
	a64 at, last, longest;    /* ns, see struct kbi_supervisor_kills */
} own;

struct kbi_process *kbi_supervisor_find(int pid)
{
	for (unsigned i = 0; i < kbi_supervisor.most; i++)
		if (a_load_rlx(&kbi_supervisor.process[i].pid) == (uint32_t)pid)
			return &kbi_supervisor.process[i];
	return NULL;
}

struct kbi_supervisor_kills kbi_supervisor_kills(void)
{
	/* acquire: partner is the add in count_kill */
	return (struct kbi_supervisor_kills){ a_load_acq(&own.killed), a_load_rlx(&own.bound),
					 a_load_rlx(&own.at),
					 a_load_rlx(&own.last), a_load_rlx(&own.longest) };
}

enum kbi_supervisor_loss (*kbi_supervisor_lose)(struct kbi_victim *victim, void *context);
int (*kbi_supervisor_kick)(int pid);
unsigned (*kbi_supervisor_lose_bound)(int pid);
void (*kbi_supervisor_counts)(int pid);

/* Runs in the handler, in every process: begins the loss of the thread if this process was
 * killed. */
static void on_kill_notice(void *context)
{
	struct kbi_process *p = kbi_supervisor_find((int)kbi_sys(SYS_getpid));

	/* acquire: partner is the release in respawn_process */
	if (!p || !a_load_acq(&p->notices) || !kbi_supervisor_lose)
		return;
	switch (kbi_supervisor_lose(&p->victim, context)) {
	case KBI_SUPERVISOR_LATER:
		break;
	case KBI_SUPERVISOR_ENDS:
		a_store_rlx(&p->final, 1);
		kbi_sys(SYS_kill, kbi_sys(SYS_getpid), SIGKILL);
		break;
	case KBI_SUPERVISOR_DONE:
		a_store_rlx(&p->notices, 0);
	}
}

static struct kbi_trace_place *place_of_process(const struct kbi_process *p)
{
	return &own.place[p - kbi_supervisor.process];
}

/* Answers libc/broadcast while it waits: this process's signals are blocked. */
void kbi_supervisor_wait(struct kbi_process *p)
{
	const struct timespec nap = { 0, 1000000 };

	if (own.traces)
		kbi_sys(SYS_kill, kbi_supervisor.pid, KBI_BROADCAST_SIGNAL);
	/* acquire: partner is the release in set_traced */
	while (own.traces && a_load_acq(&p->traced) == KBI_SUPERVISOR_NOT_YET) {
		kbi_broadcast_answer();
		kbi_sys_futex_wait(&p->traced, KBI_SUPERVISOR_NOT_YET, &nap);
	}
	a_store_rlx(&p->begun, 1);
}

static void set_traced(struct kbi_process *p, enum kbi_supervisor_traced is)
{
	a_store_rel(&p->traced, is); /* partner: the acquire in kbi_supervisor_wait */
	kbi_sys_futex_wake(&p->traced, 1);
}

/* Returns true if the process has ended: then it cannot be traced either. */
static bool has_process_ended(int pid)
{
	siginfo_t info = { .si_pid = 0 };

	return kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL) ||
	       kbi_trace_has_ended(&info);
}

static void trace_process(struct kbi_process *p, int pid)
{
	long e = kbi_trace_seize(pid);

	if (e && has_process_ended(pid))
		return;
	if (e) {
		kbi_sys_message("processes that are killed have no successors: "
				"the kernel refuses to trace them (errno %d)",
				(int)-e);
		own.traces = false;
	}
	place_of_process(p)->extended_bytes = 0;
	set_traced(p, e ? KBI_SUPERVISOR_NEVER : KBI_SUPERVISOR_TRACED);
}

void kbi_supervisor_look(void)
{
	for (unsigned i = 0; i < kbi_supervisor.most && own.traces; i++) {
		struct kbi_process *p = &kbi_supervisor.process[i];
		int pid = (int)a_load_rlx(&p->pid);

		if (pid && a_load_rlx(&p->traced) == KBI_SUPERVISOR_NOT_YET)
			trace_process(p, pid);
	}
}

/* Saves the place where the process stands now. If it is killed again meanwhile, which takes its
 * registers away, the place stays as it was. A successor that was killed before it stood in its
 * place still has that place. */
static bool save_process_place(struct kbi_process *p, int pid)
{
	static struct kbi_trace_place now;

	if (p->unplaced)
		return true;
	if (!kbi_trace_save(pid, &now, place_of_process(p)))
		return false;
	*place_of_process(p) = now;
	return true;
}

/* Makes process `now` the entry p, which was the killed process `old`. */
static void renumber_process(struct kbi_process *p, int old, int now)
{
	if (kbi_supervisor_counts)
		kbi_supervisor_counts(old);
	a_store_rlx(&p->pid, (uint32_t)now);
	if (kbi_supervisor_counts)
		kbi_supervisor_counts(0);
	if (kbi_supervisor.first == old)
		kbi_supervisor.first = now;
}

static void count_kill(int old, uint64_t since)
{
	uint64_t now = kbi_sys_now();

	a_store_rlx(&own.at, now);
	a_store_rlx(&own.last, now - since);
	if (now - since > a_load_rlx(&own.longest))
		a_store_rlx(&own.longest, now - since);
	if (kbi_supervisor_lose_bound)
		a_add_rlx(&own.bound, kbi_supervisor_lose_bound(old));
	/* release: a reader in kbi_supervisor_kills that sees this count sees the rest */
	a_add_acqrel(&own.killed, 1);
}

/* Gives p, which was killed as process `old`, a successor, and the signal that `old` did not
 * get. */
static bool respawn_process(struct kbi_process *p, int old)
{
	uint64_t since = kbi_sys_now();
	int now = kbi_respawn(old, kbi_supervisor.pid);

	if (now < 0)
		return false;
	p->end_seen = false;
	renumber_process(p, old, now);
	p->victim.thread = NULL;
	a_store_rel(&p->notices, NOTICES); /* partner: on_kill_notice */
	own.noticing = true;
	kbi_trace_copy_signals(old, now);
	if (kbi_supervisor_kick)
		kbi_supervisor_kick(now);
	p->unplaced = !kbi_respawn_go(old, now, place_of_process(p), KBI_BROADCAST_SIGNAL,
		&p->passed);
	count_kill(old, since);
	return true;
}

/* Starts p again: it was killed before it had done anything. */
static bool restart_process(struct kbi_process *p, int old)
{
	uint64_t mask;
	bool others = kbi_broadcast_act_for(old, &mask);
	int now;

	a_store_rlx(&p->traced, KBI_SUPERVISOR_NOT_YET);
	now = own.start_again(p);
	if (now > 0) {
		kbi_broadcast_succeed(old, now);
		renumber_process(p, old, now);
	}
	if (!others)
		kbi_broadcast_release(mask);
	if (now > 0)
		kbi_respawn_gone(old);
	kbi_supervisor_look();
	return now > 0;
}

static bool may_respawn(const struct kbi_process *p, int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !a_load_rlx(&p->over) &&
	       !a_load_rlx(&p->final);
}

static void handle_end(struct kbi_process *p, int pid)
{
	int status = kbi_trace_status(pid);

	p->end_seen = a_load_rlx(&p->begun);
	if (!p->unplaced)
		p->passed.si_signo = 0; /* it has got that signal */
	if (may_respawn(p, status) && a_load_rlx(&p->begun) && save_process_place(p, pid) &&
	    respawn_process(p, pid))
		return;
	kbi_trace_go(pid, 0);
}

/* Tells the process to go on: a signal is about to be delivered, or it has stopped for another
 * reason (sig 0). If it is killed at this very moment it stands at its end when it is told, and
 * ends unseen: then it stood here. */
static void resume_process(struct kbi_process *p, int pid, int sig)
{
	/* else it has left this place: its end is to be seen next */
	if (!save_process_place(p, pid) || !kbi_trace_signal(pid, &p->passed))
		return;
	if (!sig)
		p->passed.si_signo = 0;
	kbi_trace_go(pid, sig);
}

/* Returns the signal that killed a process which has ended and is not reaped yet; 0: it was not
 * killed. */
static int kill_status(int pid)
{
	siginfo_t info;

	if (kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL) ||
	    info.si_code != CLD_KILLED)
		return 0;
	return info.si_status;
}

bool kbi_supervisor_saves(int pid)
{
	struct kbi_process *p = kbi_supervisor_find(pid);

	if (!p || !own.traces || p->end_seen || !may_respawn(p, kill_status(pid)))
		return false;
	if (!a_load_rlx(&p->begun))
		return restart_process(p, pid);
	return place_of_process(p)->extended_bytes && kbi_trace_end_is_seen() &&
		respawn_process(p, pid);
}

/* Handles a stop. An untraced process is told to go on by whoever has stopped it: the kernel is not
 * to report it again. */
static void handle_stop(struct kbi_process *p, int pid, int status)
{
	siginfo_t info;
	int sig;

	if (!own.traces) {
		kbi_sys(SYS_waitid, P_PID, pid, &info, WSTOPPED | WNOHANG | __WALL, NULL);
		return;
	}
	switch (kbi_trace_why(status, &sig)) {
	case KBI_TRACE_SIGNAL:
		resume_process(p, pid, sig);
		break;
	case KBI_TRACE_GROUP:
		kbi_trace_stay(pid);
		break;
	case KBI_TRACE_END:
		if (kbi_broadcast_waits_for_another(pid))
			break;
		handle_end(p, pid);
		break;
	case KBI_TRACE_EXEC:
		kbi_trace_leave(pid);
		break;
	default:
		resume_process(p, pid, 0);
	}
}

/* Returns true if the process has stopped or ended; also if it is nobody's child any more, because
 * it has ended and the kernel was told to forget it. */
static bool has_changed(int pid, siginfo_t *info)
{
	long e;

	info->si_pid = 0;
	if (!pid)
		return false;
	e = kbi_sys(SYS_waitid, P_PID, pid, info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL,
		NULL);
	return e == -ECHILD || info->si_pid;
}

/* Runs while the supervisor waits for the lock of libc/broadcast, whose holder waits for other
 * processes: signals reach those, and a process that does not answer any more is not waited for.
 * The rest follows when it has the lock. */
static void handle_stops_in_wait(void)
{
	siginfo_t info;
	int sig;

	kbi_supervisor_look();
	for (unsigned i = 0; i < kbi_supervisor.most; i++) {
		int pid = (int)a_load_rlx(&kbi_supervisor.process[i].pid);

		if (!has_changed(pid, &info))
			continue;
		if (kbi_trace_has_stopped(&info) && kbi_trace_why(info.si_status, &sig) != KBI_TRACE_END) {
			handle_stop(&kbi_supervisor.process[i], pid, info.si_status);
			continue;
		}
		kbi_broadcast_excuse(pid);
		own.again = true;
	}
}

void kbi_supervisor_reap(void (*ended)(int pid))
{
	siginfo_t info;

	do {
		own.again = false;
		for (unsigned i = 0; i < kbi_supervisor.most; i++) {
			struct kbi_process *p = &kbi_supervisor.process[i];
			int pid = (int)a_load_rlx(&p->pid);

			if (!has_changed(pid, &info))
				continue;
			own.again = true;
			if (kbi_trace_has_stopped(&info))
				handle_stop(p, pid, info.si_status);
			else
				ended(pid);
		}
		kbi_respawn_reap();
	} while (own.again);
	if (own.traces)
		kbi_broadcast_stand();
}

/* Tells again a process that was killed inside the library or libc, and goes on there. */
void kbi_supervisor_remind(void)
{
	own.noticing = false;
	for (unsigned i = 0; i < kbi_supervisor.most; i++) {
		struct kbi_process *p = &kbi_supervisor.process[i];
		uint32_t n = a_load_rlx(&p->notices);

		if (!n || !a_cas_rlx(&p->notices, &n, n - 1) || n == 1)
			continue;
		own.noticing = true;
		kbi_sys(SYS_kill, a_load_rlx(&p->pid), KBI_BROADCAST_SIGNAL);
	}
}

bool kbi_supervisor_reminds(void)
{
	return own.noticing;
}

void kbi_supervisor_begin(int (*again)(struct kbi_process *p))
{
	if (!kbi_supervisor_lose)
		return;
	own.start_again = again;
	own.place = kbi_sys_map(kbi_supervisor.most * sizeof *own.place);
	own.traces = own.place && !kbi_respawn_setup();
	kbi_options.io_uring = 0; /* a process's requests end with it */
	kbi_broadcast_watcher = kbi_supervisor.pid;
	kbi_broadcast_meanwhile = handle_stops_in_wait;
	kbi_broadcast_also(on_kill_notice);
}
