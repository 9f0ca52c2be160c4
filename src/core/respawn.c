/* core/respawn.c - a successor for a process that was killed. Contract in respawn.h. Model:
 * model/respawn.pml.
 *
 * The killed process has stopped at its end and still has all its registers; it is let go when its
 * successor stands in its place. Between the two, no call that is made in every process
 * (libc/broadcast) begins: it needs the lock, which the supervisor has; or the killed process
 * itself had the lock, then the supervisor acts for it. A call that is under way does not wait for
 * the killed process: the successor is a copy of the supervisor, which has made that call.
 *
 * Runs on the supervisor's stack; the successor takes its first steps on a stack of its own. No
 * TLS. */
#include "core/respawn.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/worker.h"
#include "core/single_threaded.h"
#include "core/vp.h"
#include "core/preempt.h"
#include "mem/heap_door.h"
#include "libc/broadcast.h"
#include "libc/intercept.h"
#include "libc/real.h"
#include "os/sys.h"
#include "os/trace.h"

enum { STACK = 16384, GRAVES = 256, TRIES = 100, RECENT = 64 };

static struct {
	char *stack;                /* a successor's, until it stands in its predecessor's place */
	a32 seized;
	int supervisor;
	void *signal_stack;         /* of the worker that the successor is to be */
	int grave[GRAVES];          /* killed processes that have not been reaped */
	unsigned graves;
	int recent[RECENT];         /* killed processes, reaped or not */
	unsigned n_recent;
} respawn;

int kbi_respawn_setup(void)
{
	respawn.stack = kbi_sys_map(STACK);
	return respawn.stack ? 0 : ENOMEM;
}

/* Sets a process's attributes beside memory and registers. All signals are blocked, as they are in
 * the supervisor. */
static int run_successor(void *unused)
{
	stack_t ss = { .ss_sp = respawn.signal_stack, .ss_size = KBI_SIGNAL_STACK };

	(void)unused;
	if (!ss.ss_sp)
		ss = (stack_t){ .ss_flags = SS_DISABLE };
	kbi_sys_die_with(respawn.supervisor);
	kbi_intercept_here(false);
	kbi_single_threaded_joins();
	kbi_sys(SYS_sigaltstack, &ss, NULL);
	/* acquire: partner is the release in start_successor */
	while (!a_load_acq(&respawn.seized))
		kbi_sys_futex_wait(&respawn.seized, 0, NULL);
	for (;;)
		kbi_sys(SYS_kill, kbi_sys(SYS_getpid), SIGSTOP);
	return 0;
}

static bool is_successor_ready(int pid)
{
	siginfo_t info;
	int sig;

	for (;;) {
		if (kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WSTOPPED | __WALL, NULL))
			return false;
		if (!kbi_trace_has_stopped(&info))
			return false;
		if (kbi_trace_why(info.si_status, &sig) == KBI_TRACE_SIGNAL && sig == SIGSTOP)
			return true;
		kbi_trace_go(pid, 0);
	}
}

static void discard_successor(int pid)
{
	siginfo_t info;

	kbi_sys(SYS_kill, pid, SIGKILL);
	while (!kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WSTOPPED | __WALL, NULL) &&
	       kbi_trace_has_stopped(&info))
		kbi_trace_go(pid, 0);
}

/* Starts a process that stands in run_successor, stopped. -EAGAIN: it was killed, or the system has
 * no more. */
static int start_successor(void)
{
	long pid;

	a_store_rlx(&respawn.seized, 0);
	pid = kbi_real.clone(run_successor, respawn.stack + STACK,
		CLONE_FILES | CLONE_FS | CLONE_SYSVSEM | SIGCHLD, NULL);
	if (pid < 0)
		return -EAGAIN;
	if (kbi_trace_seize((int)pid)) {
		discard_successor((int)pid);
		return -EAGAIN; /* the new process was killed already */
	}
	/* release: partner is the acquire in run_successor */
	a_store_rel(&respawn.seized, 1);
	kbi_sys_futex_wake(&respawn.seized, 1);
	if (is_successor_ready((int)pid))
		return (int)pid;
	discard_successor((int)pid);
	return -EAGAIN;
}

/* Changes the number in the runtime's tables: the process's number was its kernel thread's, too. */
static void renumber_worker(struct kbi_worker *b, int old, int now)
{
	uint32_t was = (uint32_t)old;

	if (!b)
		return;
	a_store_rlx(&b->tid, (uint32_t)now);
	a_store_rlx(&b->sigcancel, 0); /* none is on its way to the successor */
	a_store_rlx(&b->posted, 0);
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (a_load_rlx(&kbi_vps[i]->tid) == was)
			a_store_rlx(&kbi_vps[i]->tid, (uint32_t)now);
}

int kbi_respawn(int old, int supervisor)
{
	struct kbi_worker *b = kbi_worker_of_tid(old);
	const struct timespec nap = { 0, 1000000 };
	uint64_t mask;
	bool its;
	int pid;

	if (respawn.graves == GRAVES)
		return -EPERM;
	respawn.supervisor = supervisor;
	respawn.signal_stack = b ? b->signal_stack : NULL;
	its = kbi_broadcast_act_for(old, &mask);
	for (unsigned i = 0; (pid = start_successor()) == -EAGAIN && i < TRIES; i++)
		kbi_sys(SYS_nanosleep, &nap, NULL);
	if (pid > 0) {
		kbi_broadcast_succeed(old, pid);
		renumber_worker(b, old, pid);
		kbi_door_renumber(old, pid);
	}
	if (!its)
		kbi_broadcast_release(mask);
	return pid;
}

bool kbi_respawn_go(int old, int now, struct kbi_trace_place *place, int sig,
	const siginfo_t *passed)
{
	bool stands = kbi_trace_load(now, place);

	/* else the successor was killed, too: *place is kept for a further successor */
	if (stands) {
		kbi_sys(SYS_kill, now, sig);
		if (passed->si_signo)
			kbi_trace_go_with(now, passed);
		else
			kbi_trace_go(now, 0);
	}
	kbi_respawn_gone(old);
	kbi_trace_go(old, 0);
	return stands;
}

void kbi_respawn_gone(int old)
{
	respawn.recent[respawn.n_recent++ % RECENT] = old;
	if (respawn.graves < GRAVES)
		respawn.grave[respawn.graves++] = old;
}

bool kbi_respawn_was_ours(int pid)
{
	for (unsigned i = 0; i < RECENT; i++)
		if (respawn.recent[i] == pid)
			return true;
	return false;
}

bool kbi_respawn_is_dying(int pid)
{
	for (unsigned i = 0; i < respawn.graves; i++)
		if (respawn.grave[i] == pid)
			return true;
	return false;
}

void kbi_respawn_reap(void)
{
	for (unsigned i = 0; i < respawn.graves;)
		if (kbi_sys(SYS_wait4, respawn.grave[i], NULL, WNOHANG | __WALL, NULL))
			respawn.grave[i] = respawn.grave[--respawn.graves];
		else
			i++;
}
