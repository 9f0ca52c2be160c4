/* posix/call_child.c - waiting for children: for a single process by its descriptor; for any
 * process or a group by libc's call with the virtual processor left to other threads
 * (call_blocking), since the kernel has no descriptor for that. Where virtual processors are
 * processes, the children belong to the program's first process: that is asked, and a kernel thread
 * of ours learns of each change and tells all waiting threads, whatever they wait for. Contract in
 * call_priv.h.
 * Callers: call_blocking, call_number. A kernel-thread lock for the list. May switch. */
#include "posix/bind.h"
#include "posix/call_priv.h"

#include "core/handoff.h"
#include "core/process_children.h"
#include "core/worker_thread.h"
#include "libc/emulate.h"
#include "os/fd.h"
#include "os/lock.h"
#include "os/newer.h"
#include "os/sys.h"
#include "sync/sem.h"

enum { LOOK = 2000000, LOOK_MAX = 64000000, LOOKS = 50 }; /* ns, ns, number of looks */

struct child {
	struct kbi_call c;
	pid_t pid;
	int options;
	int *status;
	struct rusage *usage;
	/* waitid only */
	idtype_t type;
	id_t id;
	siginfo_t *info;
};

static long try_child(struct kbi_call *c)
{
	struct child *x = (struct child *)(void *)c;
	const long arg[6] = { x->pid, (long)x->status, x->options | WNOHANG, (long)x->usage };
	long r = kbi_emulate_waits(SYS_wait4, arg);

	return r ? r : -EAGAIN;
}

static long try_child_id(struct kbi_call *c)
{
	struct child *x = (struct child *)(void *)c;
	const long arg[6] = { x->type, (long)x->id, (long)x->info, x->options | WNOHANG,
		(long)x->usage };
	long r;

	x->info->si_pid = 0;
	r = kbi_emulate_waits(SYS_waitid, arg);
	return r || x->info->si_pid ? r : -EAGAIN;
}

/* ---- told by a kernel thread -------------------------------------------------------------- */

struct told {
	struct told *next;
	kb_sem_t sem;
};

static struct {
	a32 lock;
	struct told *first; /* waiting threads; under the lock */
	a32 watched;        /* whether run_child_watcher runs: 0 no, 1 yes */
} waiting;

static void enlist_waiter(struct told *w)
{
	kbi_np_enter(kbi_self_raw());
	kbi_lock_take(&waiting.lock);
	w->next = waiting.first;
	waiting.first = w;
	kbi_lock_leave(&waiting.lock);
	kbi_np_leave(kbi_self_raw());
}

static void delist_waiter(struct told *w)
{
	struct told **at = &waiting.first;

	kbi_np_enter(kbi_self_raw());
	kbi_lock_take(&waiting.lock);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	kbi_lock_leave(&waiting.lock);
	kbi_np_leave(kbi_self_raw());
}

static void post_waiters(void)
{
	kbi_lock_take(&waiting.lock);
	for (struct told *w = waiting.first; w; w = w->next)
		kb_sem_post(&w->sem);
	kbi_lock_leave(&waiting.lock);
}

static void *run_child_watcher(void *unused)
{
	a32 *changes = kbi_children_changes();

	kbi_self();
	for (;;) {
		/* acquire: pairs with the release in kbi_children_changed */
		uint32_t seen = a_load_acq(changes);

		post_waiters();
		kbi_sys_futex_wait(changes, seen, NULL);
	}
	return unused;
}

/* Starts the watcher. Returns the time of the next look in case the watcher cannot run. */
static uint64_t start_child_watcher(void)
{
	/* no data is published: the exchange only decides which thread starts the watcher */
	if (!a_load_rlx(&waiting.watched) && !a_xchg_acqrel(&waiting.watched, 1) &&
		kbi_worker_start_closed(run_child_watcher, NULL))
		a_store_rlx(&waiting.watched, 0); /* the next caller tries again */
	return a_load_rlx(&waiting.watched) ? KBI_FOREVER : kbi_timer_now() + LOOK_MAX;
}

static void end_child_wait(struct told *w)
{
	delist_waiter(w);
}

/* Looks, and sleeps if nothing has come. w is in the list before the look, so a later change is
 * told. */
static long look_or_sleep(struct kbi_call *c)
{
	struct told w __attribute__((cleanup(end_child_wait))) = { 0 };
	uint64_t until = start_child_watcher();
	long r;
	int e;

	enlist_waiter(&w);
	r = c->attempt(c);
	if (r != -EAGAIN)
		return r;
	e = kbi_sem_wait(&w.sem, c->cancels ? kbi_posix_until_cancelled(until)
		: kbi_posix_until(until));
	return e == ECANCELED ? -ECANCELED : -EAGAIN;
}

static long wait_until_told(struct kbi_call *c)
{
	uint32_t ending = kbi_posix_me.ending;
	long r;

	while ((r = look_or_sleep(c)) == -EAGAIN || r == -ECANCELED) {
		kbi_signal_resumed();
		if (r == -ECANCELED)
			kbi_cancel_test();
		if (kbi_posix_me.ending != ending)
			return -EINTR;
	}
	return r;
}

/* ---- by its descriptor -------------------------------------------------------------------- */

static int open_child_pidfd(pid_t pid)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return (int)fd;
	fd = kbi_fd_move((int)fd);
	kbi_fd_keep((int)fd);
	return (int)fd;
}

static void close_child_pidfd(const int *fd)
{
	if (*fd < 0)
		return;
	kbi_fd_let(*fd);
	kbi_sys(SYS_close, *fd);
}

/* Waits for a while on the caller's kernel thread, which stays the caller's for good if it sees a
 * traced child stop: such a stop does not show at the child's descriptor, and only the kernel
 * thread that forked the child is its tracer. 0: nothing came. */
static long wait_child_in_kernel(struct child *x)
{
	struct pollfd p = { .fd = x->c.fd, .events = POLLIN };
	struct timespec nap = { 0, LOOK };
	long r = -EAGAIN;

	kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	for (int i = 0; i < LOOKS && r == -EAGAIN; i++) {
		if (kbi_sys(SYS_ppoll, &p, 1, &nap, NULL, 0) < 0)
			break;
		r = try_child(&x->c);
	}
	if (r > 0 && x->status && WIFSTOPPED(*x->status))
		kbi_bind_self("a traced process", KBI_BIND_WATCHED);
	kbi_handoff_end();
	kbi_signal_resumed();
	return r == -EAGAIN ? 0 : r;
}

/* Waits by the descriptor, with a look now and then. */
static long wait_child(struct child *x)
{
	int fd __attribute__((cleanup(close_child_pidfd))) = open_child_pidfd(x->pid);
	uint64_t nap = LOOK;
	long r;

	if (fd < 0)
		return -ENOSYS;
	x->c.fd = fd;
	r = wait_child_in_kernel(x);
	while (r == 0) {
		x->c.deadline = kbi_sys_now() + nap;
		r = kbi_call_wait(&x->c);
		nap = nap < LOOK_MAX ? nap * 2 : nap;
		r = r == -EAGAIN ? 0 : r;
	}
	return r;
}

/* ---- the calls ---------------------------------------------------------------------------- */

/* Tries once. -EAGAIN: the call has to wait. */
static long try_child_at_once(struct kbi_call *c, int options)
{
	long r;

	if (c->cancels)
		kbi_cancel_test();
	r = c->attempt(c);
	return kbi_call_again(r) && options & WNOHANG ? 0 : r;
}

long kbi_call_waitpid(pid_t pid, int *status, int options, struct rusage *usage, bool cancels)
{
	struct child x = { .c = KBI_CALL(.attempt = try_child, .fd = -1, .events = POLLIN,
		.cancels = cancels, .waits_anyway = true),
			   .pid = pid, .options = options, .status = status, .usage = usage };
	long r;

	r = try_child_at_once(&x.c, options);
	if (!kbi_call_again(r))
		return r;
	if (kbi_sys_from.processes)
		return wait_until_told(&x.c);
	/* a process that stops does not show at its descriptor */
	return pid > 0 && !(options & (WUNTRACED | WCONTINUED)) ? wait_child(&x) : -ENOSYS;
}

long kbi_call_waitid(idtype_t type, id_t id, siginfo_t *info, int options, bool cancels)
{
	siginfo_t none;
	struct child x = { .c = KBI_CALL(.attempt = try_child_id, .fd = -1, .cancels = cancels),
		.options = options, .type = type, .id = id, .info = info ? info : &none };
	long r;

	r = try_child_at_once(&x.c, options);
	if (!kbi_call_again(r))
		return r;
	return kbi_sys_from.processes ? wait_until_told(&x.c) : -ENOSYS;
}
