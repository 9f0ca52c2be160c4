/* core/warden.c - the supervisor's care for the processes. Contract in warden.h.
 * Signals for a process that is traced come by way of the supervisor, which passes them on at once. One that is about to end
 * because it was killed gets a successor (core/revive). What it does, it does between two waits on its own stack; where it
 * waits for the lock of os/everywhere it passes signals on meanwhile, for the holder may wait for their handlers. */
#include "core/warden.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/option.h"
#include "core/revive.h"
#include "os/everywhere.h"
#include "os/sys.h"
#include "os/trace.h"

enum { NOTICES = 8 /* a process is told so often that it was killed, until its thread is where it can be lost */ };

struct kbi_warden kbi_warden;

/* The supervisor's; the counts are read by all. */
static struct {
	bool cannot_trace, noticing, again;
	struct kbi_trace_place *place; /* [most] where each stood when it last stopped */
	a32 killed, bound;        /* processes that had a successor; kernel threads that had none */
	a64 longest;              /* ns that it took */
} own;

struct kbi_process *kbi_warden_find(int pid)
{
	for (unsigned i = 0; i < kbi_warden.most; i++)
		if (a_load_rlx(&kbi_warden.process[i].pid) == (uint32_t)pid)
			return &kbi_warden.process[i];
	return NULL;
}

struct kbi_warden_kills kbi_warden_kills(void)
{
	return (struct kbi_warden_kills){ a_load_rlx(&own.killed), a_load_rlx(&own.bound), a_load_rlx(&own.longest) };
}

enum kbi_warden_loss (*kbi_warden_lose)(struct kb_thread **victim, void *context);
unsigned (*kbi_warden_bury)(int pid);

/* In the handler, in every process: was this one killed? */
static void noticed(void *context)
{
	struct kbi_process *p = kbi_warden_find((int)kbi_sys(SYS_getpid));

	if (!p || !a_load_acq(&p->notices) || !kbi_warden_lose) /* partner: revived */
		return;
	switch (kbi_warden_lose(&p->victim, context)) {
	case KBI_WARDEN_LATER:
		break;
	case KBI_WARDEN_ENDS:
		a_store_rlx(&p->final, 1);
		kbi_sys(SYS_kill, kbi_sys(SYS_getpid), SIGKILL);
		break;
	case KBI_WARDEN_DONE:
		a_store_rlx(&p->notices, 0);
	}
}

void kbi_warden_look(void)
{
	for (unsigned i = 0; i < kbi_warden.most && !own.cannot_trace; i++) {
		struct kbi_process *p = &kbi_warden.process[i];
		int pid = (int)a_load_rlx(&p->pid);

		if (!pid || a_load_rlx(&p->traced))
			continue;
		if (kbi_trace_seize(pid) == -EPERM)
			own.cannot_trace = true;
		a_store_rlx(&p->traced, 1);
	}
}

static struct kbi_trace_place *place_of(const struct kbi_process *p)
{
	return &own.place[p - kbi_warden.process];
}

/* Where it stands now; if it is killed once more meanwhile, which takes its registers away, the place is as it was. A
 * successor that was killed before it stood in its place has that one still. */
static bool save(struct kbi_process *p, int pid)
{
	static struct kbi_trace_place now;

	if (p->unplaced)
		return true;
	if (!kbi_trace_save(pid, &now))
		return false;
	*place_of(p) = now;
	return true;
}

/* p was killed, and another process is p from now on. */
static bool revived(struct kbi_process *p, int old)
{
	uint64_t since = kbi_sys_now();
	int now = kbi_revive(old, kbi_warden.supervisor);

	if (now < 0)
		return false;
	p->end_seen = false;
	a_store_rlx(&p->pid, (uint32_t)now);
	if (kbi_warden.first == old)
		kbi_warden.first = now;
	p->victim = NULL;
	a_store_rel(&p->notices, NOTICES); /* partner: noticed */
	own.noticing = true;
	a_add_rlx(&own.killed, 1);
	if (kbi_warden_bury)
		a_add_rlx(&own.bound, kbi_warden_bury(old));
	p->unplaced = !kbi_revive_go(old, now, place_of(p), KBI_EVERYWHERE_SIGNAL);
	since = kbi_sys_now() - since;
	if (since > a_load_rlx(&own.longest))
		a_store_rlx(&own.longest, since);
	return true;
}

static bool may_revive(const struct kbi_process *p, int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !a_load_rlx(&p->over) && !a_load_rlx(&p->final);
}

static void at_end(struct kbi_process *p, int pid)
{
	int status = kbi_trace_status(pid);

	p->end_seen = true;
	if (may_revive(p, status) && save(p, pid) && revived(p, pid))
		return;
	kbi_trace_go(pid, 0);
}

/* A signal is about to be delivered. If the process is killed at this very moment it stands at its end when it is told to
 * go on, and ends unseen: then it stood here. */
static void pass(struct kbi_process *p, int pid, int sig)
{
	if (!save(p, pid))
		return; /* it is gone from here: its end is to be seen next */
	kbi_trace_go(pid, sig);
}

bool kbi_warden_saves(int pid, int status)
{
	struct kbi_process *p = kbi_warden_find(pid);

	return p && own.place && a_load_rlx(&p->traced) && !p->end_seen && may_revive(p, status) && place_of(p)->extended_bytes &&
	       revived(p, pid);
}

static void stopped(struct kbi_process *p, int pid, int status)
{
	int sig;

	switch (kbi_trace_why(status, &sig)) {
	case KBI_TRACE_SIGNAL:
		pass(p, pid, sig);
		break;
	case KBI_TRACE_GROUP:
		kbi_trace_stay(pid);
		break;
	case KBI_TRACE_END:
		at_end(p, pid);
		break;
	case KBI_TRACE_EXEC:
		kbi_trace_leave(pid);
		break;
	default:
		kbi_trace_go(pid, 0);
	}
}

static bool has_changed(int pid, siginfo_t *info, int options)
{
	info->si_pid = 0;
	return pid && !kbi_sys(SYS_waitid, P_PID, pid, info, options | WEXITED | WSTOPPED | WNOHANG | __WALL, NULL) &&
	       info->si_pid;
}

static bool has_stopped(const siginfo_t *info)
{
	return info->si_code == CLD_TRAPPED || info->si_code == CLD_STOPPED;
}

/* While the supervisor waits for the lock of everywhere, whose holder waits for others: signals reach them, and who
 * answers no more is not waited for. All else when it has the lock. */
static void meanwhile(void)
{
	siginfo_t info;
	int sig;

	for (unsigned i = 0; i < kbi_warden.most; i++) {
		int pid = (int)a_load_rlx(&kbi_warden.process[i].pid);

		if (!has_changed(pid, &info, WNOWAIT))
			continue;
		if (has_stopped(&info) && kbi_trace_why(info.si_status, &sig) == KBI_TRACE_SIGNAL) {
			pass(&kbi_warden.process[i], pid, sig);
			continue;
		}
		kbi_everywhere_excuse(pid);
		own.again = true;
	}
}

void kbi_warden_reap(void (*ended)(int pid))
{
	siginfo_t info;

	do {
		own.again = false;
		for (unsigned i = 0; i < kbi_warden.most; i++) {
			struct kbi_process *p = &kbi_warden.process[i];
			int pid = (int)a_load_rlx(&p->pid);

			if (!has_changed(pid, &info, WNOWAIT))
				continue;
			own.again = true;
			if (has_stopped(&info))
				stopped(p, pid, info.si_status);
			else
				ended(pid);
		}
	} while (own.again);
	kbi_revive_bury();
}

/* Who was killed inside the library or libc, and goes on there, is told again. */
void kbi_warden_remind(void)
{
	own.noticing = false;
	for (unsigned i = 0; i < kbi_warden.most; i++) {
		struct kbi_process *p = &kbi_warden.process[i];
		uint32_t n = a_load_rlx(&p->notices);

		if (!n || !a_cas_rlx(&p->notices, &n, n - 1) || n == 1)
			continue;
		own.noticing = true;
		kbi_sys(SYS_kill, a_load_rlx(&p->pid), KBI_EVERYWHERE_SIGNAL);
	}
}

bool kbi_warden_reminds(void)
{
	return own.noticing;
}

void kbi_warden_begin(void)
{
	own.place = kbi_sys_map(kbi_warden.most * sizeof *own.place);
	own.cannot_trace = kbi_options.contain == KBI_OPT_CONTAIN_NO || !own.place || kbi_revive_setup();
	kbi_everywhere_watcher = kbi_warden.supervisor;
	kbi_everywhere_meanwhile = meanwhile;
	kbi_everywhere_more = noticed;
	kbi_warden_look();
}
