/* posix/cputimer.c - contract in cputimer.h.
 *
 * A kernel thread, started with the first timer on another thread's clock, reads the clocks. A
 * thread cannot use more CPU time than passes, so the kernel thread sleeps until the first timer
 * may be due: at least a millisecond, and longer the longer the timer's thread has used nothing. If
 * a timer becomes due again before its last signal was taken, it counts as overrun. Timers are
 * under a lock that no handler interrupts; signals are sent outside the lock. */
#include "posix/cputimer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/handoff.h"
#include "core/meter.h"
#include "core/worker_thread.h"
#include "posix/bind.h"
#include "posix/clock.h"
#include "posix/deputy.h"
#include "posix/signal_priv.h"

enum { SECOND = 1000000000, LEAST = 1000000, MOST = 20000000 /* ns */ };

struct cputimer {
	struct cputimer *next;
	uintptr_t id;
	struct kbi_signal_to of; /* the thread whose clock it is on */
	struct kbi_signal_to to; /* the thread to signal; t NULL: the process, or a kernel thread */
	struct sigevent event;
	uint64_t at;             /* the time by that clock when it is due; 0: it is not set */
	uint64_t interval;       /* ns; 0: once */
	uint64_t seen, nap;      /* the clock at the last look; ns to sleep if it stands still */
	uint64_t missed;         /* expirations since the last signal */
	int overrun;             /* the overrun count of that signal */
};

static a32 lock, bell, n_timers, serving;
static struct cputimer *all; /* under the lock */

/* ---- the clock thread --------------------------------------------------------------------- */

static uint64_t cpu_time_of_target(const struct kbi_signal_to *of)
{
	return kbi_clock_read(of->t);
}

/* True if the last signal has not been taken. pending: the process's. Call under the lock. */
static bool is_pending(const struct cputimer *c, uint64_t pending)
{
	uint64_t bit = c->event.sigev_signo > 0 ? kbi_signal_bit(c->event.sigev_signo) : 0;

	if (c->event.sigev_notify == SIGEV_THREAD_ID && c->to.t)
		return a_load_rlx(&c->to.t->signals.pending) & bit;
	return c->event.sigev_notify == SIGEV_SIGNAL && (pending & bit);
}

/* True: it is due, and c has been moved to the next time. *nap: reduced to the time until it may be
 * due. */
static bool is_cputimer_due(struct cputimer *c, uint64_t *nap)
{
	uint64_t used, more;

	if (!c->at || !kbi_bind_has(c->of))
		return false;
	used = cpu_time_of_target(&c->of);
	if (used < c->at) {
		c->nap = used != c->seen ? LEAST : c->nap < MOST ? 2 * c->nap : MOST;
		c->seen = used;
		more = c->at - used > c->nap ? c->at - used : c->nap;
		*nap = more < *nap ? more : *nap;
		return false;
	}
	more = c->interval ? (used - c->at) / c->interval : 0;
	c->at = c->interval ? c->at + (more + 1) * c->interval : 0;
	c->missed += more;
	c->nap = LEAST;
	*nap = LEAST;
	return true;
}

static uint64_t pending_for_process(void)
{
	uint64_t set = 0;

	kbi_sys(SYS_rt_sigpending, &set, KBI_MASK_BYTES);
	return set | kbi_signal_at_dispatcher();
}

/* Finds the next timer to report; *found: a copy of it. */
static bool find_due_cputimer(struct cputimer *found, uint64_t *nap)
{
	uint64_t old = kbi_signal_enter(&lock), pending = pending_for_process();
	struct cputimer *c;

	for (c = all; c; c = c->next) {
		if (!is_cputimer_due(c, nap))
			continue;
		if (!is_pending(c, pending))
			break;
		c->missed++;
	}
	if (c) {
		c->overrun = c->missed < INT32_MAX ? (int)c->missed : INT32_MAX;
		c->missed = 0;
		*found = *c;
	}
	kbi_signal_leave(&lock, old);
	return c;
}

static void fill_timer_info(siginfo_t *info, const struct cputimer *c)
{
	memset(info, 0, sizeof(*info));
	info->si_signo = c->event.sigev_signo;
	info->si_code = SI_TIMER;
	info->si_timerid = (int)c->id;
	info->si_overrun = c->overrun;
	info->si_value = c->event.sigev_value;
}

struct call {
	void (*function)(union sigval);
	union sigval value;
};

static void *run_notification(void *arg)
{
	struct call c = *(struct call *)arg;
	uint64_t none = 0;

	free(arg);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, KBI_MASK_BYTES);
	c.function(c.value);
	return NULL;
}

/* Starts a kernel thread of libc for each expiration, as libc does. */
static void start_notification(const struct cputimer *c)
{
	struct call *call = malloc(sizeof(*call));
	pthread_t id;

	if (!call)
		return;
	*call = (struct call){ c->event.sigev_notify_function, c->event.sigev_value };
	if (kbi_libc()->pthread_create(&id, c->event.sigev_notify_attributes, run_notification,
		call) == 0)
		kbi_libc()->pthread_detach(id);
	else
		free(call);
}

static void report_expiration(const struct cputimer *c)
{
	siginfo_t info;

	fill_timer_info(&info, c);
	switch (c->event.sigev_notify) {
	case SIGEV_THREAD:
		start_notification(c);
		break;
	case SIGEV_THREAD_ID:
		if (!c->to.t)
			kbi_sys_signal_info(c->event._sigev_un._tid, info.si_signo, &info);
		else if (kbi_bind_has(c->to))
			kbi_signal_send(c->to, &info, false);
		break;
	case SIGEV_SIGNAL:
		if (!kbi_signal_dispatcher_program(&info))
			kbi_sys(SYS_rt_sigqueueinfo, getpid(), info.si_signo, &info);
		break;
	default:
		break;
	}
}

static void *run_clock_thread(void *unused)
{
	uint64_t set = ~(kbi_signal_bit(KBI_LIBC_FIRST) | kbi_signal_bit(KBI_LIBC_LAST) |
		kbi_broadcast_bit());
	struct cputimer due = { 0 };
	struct timespec t;

	(void)unused;
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, KBI_MASK_BYTES);
	kbi_handoff_helps();
	for (;;) {
		/* acquire: pairs with the release in ring_clock_thread: a timer set before the ring
		 * is seen at the next look */
		uint32_t rung = a_load_acq(&bell);
		uint64_t nap = UINT64_MAX;

		while (find_due_cputimer(&due, &nap))
			report_expiration(&due);
		t = kbi_sys_timespec(nap);
		kbi_sys_futex_wait(&bell, rung, nap == UINT64_MAX ? NULL : &t);
	}
	return NULL;
}

static void ring_clock_thread(void)
{
	a_add_acqrel(&bell, 1); /* release: pairs with the acquire in run_clock_thread */
	kbi_sys_futex_wake(&bell, 1);
}

/* Starts the kernel thread. False: there are no more kernel threads. */
static bool start_clock_thread(void)
{
	kbi_signal_need_dispatcher();
	kbi_signal_listen();
	/* no data is published: it only decides which thread starts it */
	if (a_xchg_acqrel(&serving, 1))
		return true;
	if (kbi_worker_start_closed(run_clock_thread, NULL) == 0)
		return true;
	a_store_rlx(&serving, 0);
	return false;
}

/* ---- timers ------------------------------------------------------------------------------- */

/* timer_create by libc's name, or by syscall(): their ids differ. */
typedef long Make(clockid_t clock, struct sigevent *e, uintptr_t *id);

/* Replaces the number of SIGEV_THREAD_ID: by a kernel thread's number, or (ours) stores the thread
 * in *to. 0, or an errno. */
static int resolve_target(struct sigevent *e, bool ours, struct kbi_signal_to *to)
{
	struct kb_thread *t = kbi_bind_find(e->_sigev_un._tid);
	int tid;

	*to = KBI_SIGNAL_TO_PROCESS;
	if (!t)
		return ours && kbi_sys(SYS_tkill, e->_sigev_un._tid, 0) ? EINVAL : 0;
	if (ours) {
		*to = kbi_signal_to(t);
		return 0;
	}
	if (kbi_bind_is_self(e->_sigev_un._tid)) {
		if (!kbi_bind_change("a timer with SIGEV_THREAD_ID", KBI_BIND_WATCHED))
			return EAGAIN;
		tid = kbi_sys_gettid();
		if (e->sigev_signo > 0 && e->sigev_signo <= KBI_SIGNALS)
			a_or_rlx(&kbi_posix_me.own_timers, kbi_signal_bit(e->sigev_signo));
	} else {
		tid = kbi_deputy_receives((struct kbi_signal_to){ t, (uint32_t)e->_sigev_un._tid });
	}
	e->_sigev_un._tid = tid;
	return tid < 0 ? -tid : 0;
}

static long add_cputimer(struct kb_thread *of, const struct sigevent *e, struct kbi_signal_to to,
	Make *make, uintptr_t *id)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	struct cputimer *c = calloc(1, sizeof(*c));
	uint64_t old;
	long r;

	if (!c || !start_clock_thread()) {
		free(c);
		return -EAGAIN;
	}
	r = make(CLOCK_MONOTONIC, &none, id);
	if (r) {
		free(c);
		return r;
	}
	kbi_meter_start();
	c->id = *id;
	c->of = kbi_signal_to(of);
	c->to = to;
	c->event = *e;
	if (e->sigev_notify != SIGEV_THREAD && !e->sigev_value.sival_ptr && e->sigev_signo == 0)
		c->event.sigev_value.sival_int = (int)*id;
	old = kbi_signal_enter(&lock);
	c->next = all;
	all = c;
	a_add_rlx(&n_timers, 1);
	kbi_signal_leave(&lock, old);
	return 0;
}

static bool is_valid_event(const struct sigevent *e)
{
	int how = e->sigev_notify;

	if (how == SIGEV_SIGNAL || how == SIGEV_THREAD_ID)
		return e->sigev_signo > 0 && e->sigev_signo <= KBI_SIGNALS;
	return how == SIGEV_NONE || how == SIGEV_THREAD;
}

/* Creates a timer. For a timer on its own CPU clock the caller keeps its kernel thread, whose clock
 * advances as its own does from then on. */
static long create_cputimer(clockid_t clock, const struct sigevent *given, Make *make,
	uintptr_t *id)
{
	struct sigevent own = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct kb_thread *of = kbi_clock_whose(clock);
	struct kbi_signal_to to = KBI_SIGNAL_TO_PROCESS;
	bool ours = of && of != kbi_clock_caller();
	int e;

	if (given)
		own = *given;
	if (of && !ours) {
		if (!kbi_bind_change("a timer on a thread's CPU clock", KBI_BIND_WATCHED))
			return -EAGAIN;
		clock = CLOCK_THREAD_CPUTIME_ID;
	}
	if (ours && !is_valid_event(&own))
		return -EINVAL;
	e = own.sigev_notify == SIGEV_THREAD_ID ? resolve_target(&own, ours, &to) : 0;
	if (e)
		return -e;
	if (ours)
		return add_cputimer(of, &own, to, make, id);
	return make(clock, given ? &own : NULL, id);
}

/* Finds a timer. Call under the lock. */
static struct cputimer *find_cputimer(uintptr_t id)
{
	struct cputimer *c = all;

	while (c && c->id != id)
		c = c->next;
	return c;
}

static uint64_t ns_of_timespec(const struct timespec *t)
{
	return (t->tv_sec > INT32_MAX ? (uint64_t)INT32_MAX : (uint64_t)t->tv_sec) * SECOND +
		(uint64_t)t->tv_nsec;
}

/* Stores the time left: 1 ns, not 0 (not set), if it is due and has not been reported yet. */
static void read_cputimer(const struct cputimer *c, struct itimerspec *to)
{
	uint64_t used = c->at && kbi_bind_has(c->of) ? cpu_time_of_target(&c->of) : 0;

	to->it_interval = kbi_sys_timespec(c->interval);
	to->it_value = kbi_sys_timespec(!c->at ||
		!kbi_bind_has(c->of) ? 0 : c->at > used ? c->at - used : 1);
}

static long set_cputimer(struct cputimer *c, int flags, const struct itimerspec *new,
	struct itimerspec *old)
{
	uint64_t value;

	if (!kbi_posix_time_ok(&new->it_value) || !kbi_posix_time_ok(&new->it_interval) ||
		new->it_value.tv_sec < 0 ||
	    new->it_interval.tv_sec < 0)
		return -EINVAL;
	if (!kbi_bind_has(c->of))
		return -ESRCH;
	if (old)
		read_cputimer(c, old);
	value = ns_of_timespec(&new->it_value);
	c->seen = cpu_time_of_target(&c->of);
	c->at = !value ? 0 : flags & TIMER_ABSTIME ? value : c->seen + value;
	c->interval = ns_of_timespec(&new->it_interval);
	c->nap = LEAST;
	c->missed = 0;
	c->overrun = 0;
	return 0;
}

/* Makes a call on one of our timers. False: it is the kernel's, or has to be made there, too. */
static bool call_cputimer(long n, uintptr_t id, const long *a, long *r)
{
	struct cputimer **at = &all, *c;
	uint64_t old;

	if (kbi_likely(!a_load_rlx(&n_timers)) || kbi_posix_forked)
		return false;
	*r = 0;
	old = kbi_signal_enter(&lock);
	c = find_cputimer(id);
	if (c && n == SYS_timer_settime)
		*r = set_cputimer(c, (int)a[1], (const struct itimerspec *)a[2],
			(struct itimerspec *)a[3]);
	else if (c && n == SYS_timer_gettime)
		read_cputimer(c, (struct itimerspec *)a[1]);
	else if (c && n == SYS_timer_getoverrun)
		*r = c->overrun;
	else if (c && n == SYS_timer_delete) {
		while (*at != c)
			at = &(*at)->next;
		*at = c->next;
		a_sub_rlx(&n_timers, 1);
	}
	kbi_signal_leave(&lock, old);
	if (!c)
		return false;
	if (n == SYS_timer_settime)
		ring_clock_thread();
	if (n == SYS_timer_delete)
		free(c);
	/* deletes the kernel's timer of that id, too */
	return n != SYS_timer_delete;
}

/* ---- by number ---------------------------------------------------------------------------- */

typedef long Syscall(long n, long a, long b, long c);

static long make_by_number(clockid_t clock, struct sigevent *e, uintptr_t *id)
{
	int made = 0;
	long r = ((Syscall *)(uintptr_t)kbi_libc()->syscall)(SYS_timer_create, clock, (long)e,
		(long)&made);

	*id = (uintptr_t)made;
	return r < 0 ? -errno : 0;
}

bool kbi_cputimer_by_number(long n, const long *a, long *r)
{
	struct sigevent given;
	uintptr_t id;

	switch (n) {
	case SYS_timer_create:
		if (!a[2] || !kbi_vp_n || kbi_posix_forked ||
			(a[1] && !kbi_bind_is_readable((const void *)a[1])))
			return false;
		if (a[1])
			given = *(const struct sigevent *)a[1];
		if (a[1] && given.sigev_notify == SIGEV_THREAD)
			return false;
		*r = create_cputimer((clockid_t)a[0], a[1] ? &given : NULL, make_by_number, &id);
		if (*r == 0)
			*(int *)a[2] = (int)id;
		return true;
	case SYS_timer_settime:
	case SYS_timer_gettime:
		if (!a[n == SYS_timer_settime ? 2 : 1])
			return false;
		return call_cputimer(n, (uintptr_t)(int)a[0], a, r);
	case SYS_timer_getoverrun:
	case SYS_timer_delete:
		return call_cputimer(n, (uintptr_t)(int)a[0], a, r);
	default:
		return false;
	}
}

/* ---- by their names ----------------------------------------------------------------------- */

static long make_by_name(clockid_t clock, struct sigevent *e, uintptr_t *id)
{
	timer_t made = NULL;
	int r = kbi_libc()->timer_create(clock, e, &made);

	*id = (uintptr_t)made;
	return r ? -errno : 0;
}

KBI_POSIX_API int timer_create(clockid_t clock, struct sigevent *restrict event,
	timer_t *restrict timer)
{
	uintptr_t id = 0;
	long r = create_cputimer(clock, event, make_by_name, &id);

	if (r == 0)
		*timer = (timer_t)id;
	return kbi_posix_answer(r);
}

static void forget_overruns(timer_t id)
{
	if ((uintptr_t)id <= INT_MAX)
		kbi_signal_forget_overruns((int)(uintptr_t)id);
}

KBI_POSIX_API int timer_settime(timer_t id, int flags, const struct itimerspec *restrict new,
				struct itimerspec *restrict old)
{
	const long a[6] = { 0, flags, (long)new, (long)old };
	long r;

	if (call_cputimer(SYS_timer_settime, (uintptr_t)id, a, &r))
		return kbi_posix_answer(r);
	forget_overruns(id);
	return kbi_libc()->timer_settime(id, flags, new, old);
}

KBI_POSIX_API int timer_gettime(timer_t id, struct itimerspec *to)
{
	const long a[6] = { 0, (long)to };
	long r;

	if (call_cputimer(SYS_timer_gettime, (uintptr_t)id, a, &r))
		return kbi_posix_answer(r);
	return kbi_libc()->timer_gettime(id, to);
}

/* The kernel's count belongs to the signal taken from it last, which the handler may not have had
 * yet. */
KBI_POSIX_API int timer_getoverrun(timer_t id)
{
	int told;
	long r;

	if (call_cputimer(SYS_timer_getoverrun, (uintptr_t)id, NULL, &r))
		return kbi_posix_answer(r);
	r = kbi_libc()->timer_getoverrun(id);
	told = (uintptr_t)id <= INT_MAX ? kbi_signal_overruns((int)(uintptr_t)id) : -1;
	return r >= 0 && told >= 0 ? told : (int)r;
}

KBI_POSIX_API int timer_delete(timer_t id)
{
	long r;

	(void)call_cputimer(SYS_timer_delete, (uintptr_t)id, NULL, &r);
	forget_overruns(id);
	return kbi_libc()->timer_delete(id);
}
