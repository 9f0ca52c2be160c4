/* core/process_children.c - work of the program's first process (the supervisor) for the rest:
 * waiting for children, timers, tracing. Contract in process_children.h. A request at a time, under
 * a lock: the asking thread writes it, interrupts the supervisor, and sleeps until the answer. The
 * supervisor never waits: a thread that wants to wait sleeps until some child has changed, and asks
 * again. Runs on the threads' stacks and the supervisor's; does not switch. */
#include "core/process_children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "libc/broadcast.h"
#include "libc/emulate.h"
#include "libc/intercept.h"
#include "os/fd.h"
#include "os/lock.h"
#include "os/sys.h"

enum { IDLE, ASKED, ANSWERED };

bool (*kbi_children_is_over)(void);

static struct {
	int supervisor;
	bool (*ours)(int pid);
	a32 lock;
	a32 changes;          /* waiting threads sleep on it */
	/* the supervisor's: */
	bool asked;           /* it was asked for a child, and has woken nobody since */
	uint64_t last;        /* kbi_broadcast_last at its last wake-up */
	a32 state;            /* the asking thread sleeps on it */
	/* the request and its answer */
	long (*make)(void *);
	void *what;           /* argument of make */
	long nr, arg[6];      /* or a system call to be made; 0: wait for a child */
	int type, id, options;
	long result;
	int status;
	siginfo_t info;
	struct rusage usage;
} children;

/* ---- the supervisor's side ------------------------------------------------------------------- */

static long wait_id(int type, int id, siginfo_t *info, int options)
{
	memset(info, 0, sizeof *info);
	return kbi_sys(SYS_waitid, type, id, info, options, &children.usage);
}

/* Finds a child of the program that has changed. The runtime's processes would hide it: -EBUSY:
 * such a process has changed and is to be reaped first. If it was merely continued, this takes the
 * report, for which nobody else asks. */
static long find_changed_child(int type, int id, siginfo_t *info, int options)
{
	long r = wait_id(type, id, info, options | WNOHANG | WNOWAIT);

	if (r || !info->si_pid)
		return r ? r : -EAGAIN;
	if (children.ours(info->si_pid)) {
		if (info->si_code == CLD_CONTINUED)
			wait_id(P_PID, info->si_pid, info, WCONTINUED | WNOHANG);
		return type == P_PID ? -EAGAIN : -EBUSY;
	}
	if (options & WNOWAIT)
		return 0;
	return wait_id(P_PID, info->si_pid, info, options | WNOHANG);
}

/* Returns true if a number in the text is not a process of ours. The text may end within a number;
 * *rest: where that number begins. */
static bool lists_program_child(const char *text, const char **rest)
{
	const char *end;

	for (*rest = text; (end = strchr(*rest, ' ')); *rest = end + 1)
		if (!children.ours((int)strtol(*rest, NULL, 10)))
			return true;
	return false;
}

/* Returns true if the program has children, or the kernel does not list them. waitid alone would
 * count the runtime's processes, too. */
static bool has_any_child(void)
{
	char path[64], text[4096];
	const char *rest = text;
	bool any = false;
	size_t kept = 0;
	long fd, n;
	KBI_FD_BRIEFLY();

	snprintf(path, sizeof path, "/proc/self/task/%d/children", children.supervisor);
	fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	while (!any && (n = kbi_sys(SYS_read, fd, text + kept, sizeof text - 1 - kept)) > 0) {
		text[kept + (size_t)n] = 0;
		any = lists_program_child(text, &rest);
		kept = strlen(rest);
		memmove(text, rest, kept);
	}
	kbi_sys(SYS_close, fd);
	return any;
}

static void answer_child_request(void)
{
	int type = children.type, id = children.id;
	const long *a = children.arg;

	if (children.make)
		children.result = children.make(children.what);
	else if (children.nr)
		children.result = kbi_sys(children.nr, a[0], a[1], a[2], a[3]);
	else if (type == P_PID && children.ours(id))
		children.result = -ECHILD;
	else
		children.result = has_any_child() ?
			find_changed_child(type, id, &children.info, children.options) : -ECHILD;
}

bool kbi_children_answer(void)
{
	/* acquire: partner is the release in be_answered */
	if (a_load_acq(&children.state) != ASKED)
		return true;
	answer_child_request();
	if (children.result == -EBUSY && !children.nr)
		return false;
	children.asked = true;
	a_store_rel(&children.state, ANSWERED); /* partner: the acquire in be_answered */
	kbi_sys_futex_wake(&children.state, 1);
	return true;
}

a32 *kbi_children_changes(void)
{
	return &children.changes;
}

void kbi_children_look(void)
{
	/* release: partner is the acquire in wait_for_child_change */
	a_add_acqrel(&children.changes, 1);
	kbi_sys_futex_wake(&children.changes, 1 << 30);
}

/* A thread that has only asked for a child is not to be told at once to ask again. But a call that
 * every process has made meanwhile may have changed the action of SIGCHLD, and then the kernel has
 * forgotten a child. */
void kbi_children_changed(void)
{
	uint64_t last = kbi_broadcast_last();
	bool quiet = children.asked && children.last == last;

	children.asked = false;
	children.last = last;
	if (!quiet)
		kbi_children_look();
}

/* ---- the program's side ---------------------------------------------------------------------- */

struct request {
	bool by_id;
	int type, id, options;
	int *status;
	siginfo_t *info;
	struct rusage *usage;
};

/* Returns the status as wait4 has it. */
static int status_of(const siginfo_t *i)
{
	switch (i->si_code) {
	case CLD_EXITED:
		return (i->si_status & 255) << 8;
	case CLD_STOPPED:
	case CLD_TRAPPED:
		return (i->si_status & 255) << 8 | 0x7f;
	case CLD_CONTINUED:
		return 0xffff;
	case CLD_DUMPED:
		return i->si_status | 0x80;
	default:
		return i->si_status;
	}
}

static long give_child_status(const struct request *r)
{
	if (r->usage)
		*r->usage = children.usage;
	if (r->info)
		*r->info = children.info;
	if (r->status)
		*r->status = status_of(&children.info);
	return r->by_id ? 0 : children.info.si_pid;
}

/* Has the request answered, which the caller has written, holding the lock. */
static long be_answered(void)
{
	/* release: partner is the acquire in kbi_children_answer */
	a_store_rel(&children.state, ASKED);
	kbi_sys(SYS_kill, children.supervisor, KBI_BROADCAST_SIGNAL);
	while (a_load_acq(&children.state) == ASKED) /* partner: the release in kbi_children_answer */
		kbi_sys_futex_wait(&children.state, ASKED, NULL);
	a_store_rlx(&children.state, IDLE);
	children.make = NULL;
	children.nr = 0;
	return children.result;
}

static uint64_t enter_child_request(void)
{
	uint64_t every = ~kbi_broadcast_bit(), mask;

	kbi_sys(SYS_rt_sigprocmask, SIG_BLOCK, &every, &mask, sizeof mask);
	kbi_lock_take(&children.lock);
	return mask;
}

static void leave_child_request(uint64_t mask)
{
	kbi_lock_leave(&children.lock);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

static long ask_for_child(const struct request *r)
{
	uint64_t mask = enter_child_request();
	long result;

	children.type = r->type;
	children.id = r->id;
	children.options = r->options;
	result = be_answered();
	if (!result)
		result = give_child_status(r);
	leave_child_request(mask);
	return result;
}

/* ---- timers ---------------------------------------------------------------------------------- */

/* Timers that signal a single kernel thread, which is not the supervisor's. */
enum {
	THREADS_MOST = 1024,
	TO_THREAD = 4, /* SIGEV_THREAD_ID */
	LIBCS = 32 /* libc's signal for SIGEV_THREAD */
};

static struct timer {
	a32 used;
	a32 id;              /* the kernel's number, from 1; 0: not known yet */
	a32 process, thread;
} timers[THREADS_MOST];

static struct timer *find_timer(long id)
{
	for (unsigned i = 0; i < THREADS_MOST; i++)
		if (a_load_acq(&timers[i].id) == (uint32_t)id + 1) /* partner: create_thread_timer */
			return &timers[i];
	return NULL;
}

static struct timer *claim_timer(void)
{
	for (unsigned i = 0; i < THREADS_MOST; i++) {
		uint32_t no = 0;

		/* partner: release_timer */
		if (!a_load_rlx(&timers[i].used) && a_cas_acq(&timers[i].used, &no, 1))
			return &timers[i];
	}
	return NULL;
}

static void release_timer(struct timer *t)
{
	a_store_rlx(&t->id, 0);
	a_store_rel(&t->used, 0); /* partner: claim_timer */
}

bool kbi_children_timer(const siginfo_t *info)
{
	struct timer *t;

	if (info->si_code != SI_TIMER)
		return false;
	t = find_timer(info->si_timerid);
	if (!t) /* a timer of libc's may be over */
		return info->si_signo == LIBCS;
	kbi_sys(SYS_rt_tgsigqueueinfo, a_load_rlx(&t->process), a_load_rlx(&t->thread), info->si_signo,
		info);
	return true;
}

static long call_in_supervisor(long nr, const long arg[6]);

/* Returns the process of ours that the kernel thread belongs to; libc's for SIGEV_THREAD need not
 * be the caller's. */
static uint32_t process_of(int thread)
{
	char path[64], text[512];
	const char *at;
	long fd, n;
	KBI_FD_BRIEFLY();

	snprintf(path, sizeof path, "/proc/%d/status", thread);
	fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (uint32_t)kbi_sys(SYS_getpid);
	n = kbi_sys(SYS_read, fd, text, sizeof text - 1);
	kbi_sys(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "Tgid:");
	return at ? (uint32_t)strtoul(at + 5, NULL, 10) : (uint32_t)kbi_sys(SYS_getpid);
}

static long create_thread_timer(const long arg[6])
{
	struct sigevent e = *(const struct sigevent *)arg[1];
	const long a[6] = { arg[0], (long)&e, arg[2] };
	struct timer *t = claim_timer();
	long r;

	if (!t)
		return -EAGAIN;
	a_store_rlx(&t->process, process_of(e.sigev_notify_thread_id));
	a_store_rlx(&t->thread, (uint32_t)e.sigev_notify_thread_id);
	e.sigev_notify = SIGEV_SIGNAL;
	r = call_in_supervisor(SYS_timer_create, a);
	if (r)
		release_timer(t);
	else
		a_store_rel(&t->id, *(uint32_t *)a[2] + 1); /* partner: find_timer */
	return r;
}

static long on_call_there(long nr, const long arg[6])
{
	struct timer *t;
	long r;

	if (nr == SYS_timer_create && arg[1] &&
	    ((const struct sigevent *)arg[1])->sigev_notify == TO_THREAD)
		return create_thread_timer(arg);
	r = call_in_supervisor(nr, arg);
	t = nr == SYS_timer_delete && !r ? find_timer(arg[0]) : NULL;
	if (t)
		release_timer(t);
	return r;
}

/* Has the supervisor make the call: all memory that it may point to is the supervisor's, too. */
static long call_in_supervisor(long nr, const long arg[6])
{
	uint64_t mask = enter_child_request();
	long result;

	children.nr = nr;
	memcpy(children.arg, arg, sizeof children.arg);
	result = be_answered();
	leave_child_request(mask);
	return result;
}

long kbi_children_make(long (*make)(void *), void *what)
{
	uint64_t mask = enter_child_request();
	/* an identity of its own may forbid the thread to signal the supervisor */
	long result = kbi_sys(SYS_kill, children.supervisor, 0);

	if (!result) {
		children.make = make;
		children.what = what;
		result = be_answered();
	}
	leave_child_request(mask);
	return result;
}

static long wait_for_child_change(const struct request *r)
{
	for (;;) {
		/* partner: the add in kbi_children_look */
		uint32_t changes = a_load_acq(&children.changes);
		long e = ask_for_child(r);

		if (e != -EAGAIN)
			return e;
		if (r->options & WNOHANG) {
			if (r->info)
				memset(r->info, 0, sizeof *r->info);
			return 0;
		}
		if (kbi_sys_futex_wait(&children.changes, changes, NULL) == -EINTR)
			return -EINTR;
		if (kbi_children_is_over && kbi_children_is_over())
			return -EINTR;
	}
}

/* Returns the process group of the caller's children: the supervisor's, unless the children have
 * left it. */
static int group_of_children(void)
{
	return (int)kbi_sys(SYS_getpgid, kbi_intercept_stays() ? children.supervisor : 0);
}

static long wait_by_pid(int pid, int *status, int options, struct rusage *usage)
{
	struct request r = { .options = options | WEXITED, .status = status, .usage = usage };

	r.type = pid == -1 ? P_ALL : pid <= 0 ? P_PGID : P_PID;
	r.id = pid == -1 ? 0 : pid < 0 ? -pid : pid ? pid : group_of_children();
	return wait_for_child_change(&r);
}

static long on_wait_call(long nr, const long a[6])
{
	if (nr == SYS_wait4)
		return wait_by_pid((int)a[0], (int *)a[1], (int)a[2], (struct rusage *)a[3]);
	return wait_for_child_change(&(struct request){ .by_id = true, .type = (int)a[0],
		.id = (int)a[1], .info = (siginfo_t *)a[2], .options = (int)a[3],
		.usage = (struct rusage *)a[4] });
}

void kbi_children_setup(int supervisor, bool (*ours)(int pid))
{
	children.supervisor = supervisor;
	children.ours = ours;
	kbi_emulate_wait = on_wait_call;
	kbi_emulate_there = on_call_there;
}

void kbi_children_forget(void)
{
	kbi_emulate_wait = NULL;
	kbi_emulate_there = NULL;
}
