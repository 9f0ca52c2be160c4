/* core/process_timers.c - actions that are due by the program's CPU time. Contract in
 * process_timers.h. The kernel shows any process's clock, and has timers on it. While an action is
 * due after r more ns of the program, the supervisor has a timer on each of the n processes for r /
 * n: before some process has used that much nothing is due, and when it has, r is less. A program
 * that does nothing costs nothing.
 *
 * All state is the supervisor's: a thread that sets a timer asks it (process_children), so there is
 * no lock. */
#include "core/process_timers.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "core/process_children.h"
#include "core/process_clock.h"
#include "core/supervisor.h"
#include "libc/broadcast.h"
#include "libc/emulate.h"
#include "os/sys.h"

enum {
	TIMERS = 256,
	FIRST_ID = 1 << 30,     /* numbers of the program's timers on its clock; libc/emulate has the
	                         * lower numbers */
	PROF_TIMER = TIMERS, USER_TIMER, ALL,  /* setitimer's timers, behind them */
	SECOND = 1000000000,
	MICRO = 1000,
	LEAST = 1000000,        /* ns: a process is watched for no less */
	TO_THREAD = 4,          /* SIGEV_THREAD_ID */
};

struct timer {
	bool used;
	int id;
	enum kbi_process_clock kind;
	uint64_t due, interval; /* ns; due 0: it is not set */
	int notify, sig, process, thread;
	union sigval value;
	int overrun;
};

/* A timer of the kernel's on a process's clock. */
struct watcher {
	int pid, id;
	bool made;
};

/* The supervisor's, except for fields that are constant once it runs. */
static struct {
	int supervisor;
	void (*pass)(int sig, siginfo_t *info);
	a32 active;                 /* 1: some action is due at some time */
	struct timer timer[ALL];
	struct watcher *watcher;    /* [KBI_PROCESS_CLOCKS][supervisor.most + 1] */
	struct rlimit limit;        /* RLIMIT_CPU, as last seen */
} own;

static struct timeval timeval_of(uint64_t ns)
{
	return (struct timeval){ (time_t)(ns / SECOND), (suseconds_t)(ns % SECOND / MICRO) };
}

/* ---- what is due: the supervisor ------------------------------------------------------------- */

static void signal_expiry(struct timer *t, int overrun)
{
	siginfo_t info = { .si_signo = t->sig, .si_code = SI_KERNEL };

	t->overrun = overrun;
	if (t->notify == SIGEV_NONE)
		return;
	if (t < &own.timer[TIMERS]) {
		info.si_code = SI_TIMER;
		info.si_timerid = t->id;
		info.si_overrun = overrun;
		info.si_value = t->value;
	}
	if (t->notify == TO_THREAD)
		kbi_sys(SYS_rt_tgsigqueueinfo, t->process, t->thread, t->sig, &info);
	else
		own.pass(t->sig, &info);
}

static void expire_cpu_timer(struct timer *t, uint64_t now)
{
	uint64_t periods = 1;

	if (!t->used || !t->due || t->due > now)
		return;
	if (t->interval)
		periods += (now - t->due) / t->interval;
	t->due = t->interval ? t->due + periods * t->interval : 0;
	signal_expiry(t, (int)(periods - 1 < INT_MAX ? periods - 1 : INT_MAX));
}

static bool is_least(uint64_t *least, uint64_t due)
{
	if (!due || (*least && due >= *least))
		return false;
	*least = due;
	return true;
}

/* Acts as the kernel does for a process: a signal each second from the first limit on; the second
 * limit kills. */
static void obey_limit(uint64_t used)
{
	struct rlimit *l = &own.limit;
	siginfo_t info = { .si_signo = SIGXCPU, .si_code = SI_KERNEL };

	if (l->rlim_max != RLIM_INFINITY && used >= l->rlim_max * SECOND) {
		for (;;)
			kbi_sys(SYS_kill, own.supervisor, SIGKILL);
	}
	if (l->rlim_cur == RLIM_INFINITY || used < l->rlim_cur * SECOND)
		return;
	l->rlim_cur = used / SECOND + 1 < l->rlim_max ? used / SECOND + 1 : l->rlim_max;
	kbi_sys(SYS_prlimit64, 0, RLIMIT_CPU, l, NULL);
	for (unsigned i = 0; i < kbi_supervisor.most; i++)
		if (a_load_rlx(&kbi_supervisor.process[i].pid))
			kbi_sys(SYS_prlimit64, a_load_rlx(&kbi_supervisor.process[i].pid), RLIMIT_CPU, l, NULL);
	own.pass(SIGXCPU, &info);
}

/* Returns when the first timer of this clock is due; 0: never. */
static uint64_t first_due(enum kbi_process_clock kind)
{
	uint64_t least = 0;

	for (unsigned i = 0; i < ALL; i++)
		if (own.timer[i].used && own.timer[i].kind == kind)
			is_least(&least, own.timer[i].due);
	if (kind == KBI_PROCESS_CLOCK_PROF && own.limit.rlim_cur != RLIM_INFINITY)
		is_least(&least, own.limit.rlim_cur * SECOND);
	if (kind == KBI_PROCESS_CLOCK_PROF && own.limit.rlim_max != RLIM_INFINITY)
		is_least(&least, own.limit.rlim_max * SECOND);
	return least;
}

static void unwatch_process(struct watcher *w)
{
	if (w->made)
		kbi_sys(SYS_timer_delete, w->id);
	w->made = false;
}

/* Sets the timer on a process's clock; span 0: none. */
static void watch_process(struct watcher *w, int pid, enum kbi_process_clock kind, uint64_t span)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = KBI_BROADCAST_SIGNAL };
	struct itimerspec spec = { .it_value = kbi_sys_timespec(span) };

	if (w->made && (!pid || pid != w->pid))
		unwatch_process(w);
	if (!pid || (!span && !w->made))
		return;
	w->pid = pid;
	if (!w->made)
		w->made = !kbi_sys(SYS_timer_create, kbi_process_clock_number(pid, kind), &e, &w->id);
	if (w->made)
		kbi_sys(SYS_timer_settime, w->id, 0, &spec, NULL);
}

static unsigned count_processes(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < kbi_supervisor.most; i++)
		n += a_load_rlx(&kbi_supervisor.process[i].pid) != 0;
	return n + 1;
}

static void watch_all_processes(enum kbi_process_clock kind, uint64_t left)
{
	struct watcher *w = own.watcher + (size_t)kind * (kbi_supervisor.most + 1);
	uint64_t span = left ? left / count_processes() : 0;

	if (left && span < LEAST)
		span = LEAST;
	watch_process(w++, own.supervisor, kind, span);
	for (unsigned i = 0; i < kbi_supervisor.most; i++)
		watch_process(w++, (int)a_load_rlx(&kbi_supervisor.process[i].pid), kind, span);
}

/* Returns true if some timer of this clock is due at some time. */
static bool check_clock_timers(enum kbi_process_clock kind)
{
	uint64_t now = kbi_process_clock_read(kind), due;

	for (unsigned i = 0; i < ALL; i++)
		if (own.timer[i].kind == kind)
			expire_cpu_timer(&own.timer[i], now);
	if (kind == KBI_PROCESS_CLOCK_PROF)
		obey_limit(now);
	due = first_due(kind);
	watch_all_processes(kind, !due ? 0 : due > now ? due - now : LEAST);
	return due;
}

void kbi_process_timers_look(void)
{
	struct rlimit limit;
	bool any = false;

	if (!own.watcher || kbi_sys(SYS_prlimit64, 0, RLIMIT_CPU, NULL, &limit))
		return;
	if (!a_load_rlx(&own.active) && !memcmp(&limit, &own.limit, sizeof limit))
		return;
	own.limit = limit;
	for (int kind = 0; kind < KBI_PROCESS_CLOCKS; kind++)
		any |= check_clock_timers((enum kbi_process_clock)kind);
	a_store_rlx(&own.active, any);
}

/* ---- what the program asks for: by the supervisor, in answer_timer_request ------------------- */

struct request {
	long nr;
	int id, flags;
	enum kbi_process_clock kind;
	bool sets;
	uint64_t value, interval;         /* to be set */
	/* the values before */
	uint64_t had_value, had_interval;
	struct sigevent event;
	int process;
};

static struct timer *find_cpu_timer(int id)
{
	for (unsigned i = 0; i < TIMERS; i++)
		if (own.timer[i].used && own.timer[i].id == id)
			return &own.timer[i];
	return NULL;
}

static long create_cpu_timer(struct request *r)
{
	const struct sigevent *e = &r->event;
	struct timer *t = own.timer;

	while (t < &own.timer[TIMERS] && t->used)
		t++;
	if (t == &own.timer[TIMERS])
		return -EAGAIN;
	*t = (struct timer){ .used = true, .id = FIRST_ID + (int)(t - own.timer), .kind = r->kind,
			     .notify = e->sigev_notify, .sig = e->sigev_signo, .value = e->sigev_value,
			     .process = r->process,
			     .thread = e->sigev_notify_thread_id };
	if (!e->sigev_notify && !e->sigev_signo) /* as for no sigevent */
		t->sig = SIGALRM, t->value.sival_int = t->id;
	r->id = t->id;
	return 0;
}

static void show_cpu_timer(const struct timer *t, struct request *r)
{
	uint64_t now = kbi_process_clock_read(t->kind);

	r->had_interval = t->interval;
	r->had_value = !t->due ? 0 : t->due > now ? t->due - now : 1;
}

static void arm_cpu_timer(struct timer *t, const struct request *r)
{
	bool absolute = r->flags & TIMER_ABSTIME;

	t->interval = r->interval;
	t->due = !r->value ? 0 : absolute ? r->value : r->value + kbi_process_clock_read(t->kind);
	t->overrun = 0;
	a_store_rlx(&own.active, 1);
}

static struct timer *itimer_of_clock(enum kbi_process_clock kind)
{
	struct timer *t = &own.timer[kind == KBI_PROCESS_CLOCK_USER ? USER_TIMER : PROF_TIMER];

	t->used = true;
	t->kind = kind;
	t->sig = kind == KBI_PROCESS_CLOCK_USER ? SIGVTALRM : SIGPROF;
	return t;
}

static bool is_itimer(long nr)
{
	return nr == SYS_setitimer || nr == SYS_getitimer;
}

static long answer_timer_request(void *what)
{
	struct request *r = what;
	struct timer *t = is_itimer(r->nr) ? itimer_of_clock(r->kind) : find_cpu_timer(r->id);

	if (r->nr == SYS_timer_create)
		return create_cpu_timer(r);
	if (!t)
		return -EINVAL;
	if (r->nr == SYS_timer_getoverrun)
		return t->overrun;
	if (r->nr == SYS_timer_delete)
		t->used = false;
	else
		show_cpu_timer(t, r);
	if (r->sets)
		arm_cpu_timer(t, r);
	kbi_process_timers_look();
	return 0;
}

/* ---- the program's side ---------------------------------------------------------------------- */

static bool is_time(const struct timespec *t)
{
	return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < SECOND;
}

static uint64_t ns_of(const struct timespec *t)
{
	return (t->tv_sec > INT_MAX ? (uint64_t)INT_MAX : (uint64_t)t->tv_sec) * SECOND +
	       (uint64_t)t->tv_nsec;
}

static long ask_for_timer(struct request *r)
{
	return kbi_children_make(answer_timer_request, r);
}

static long make_timer(const long a[6])
{
	struct request r = { .nr = SYS_timer_create,
		.kind = (enum kbi_process_clock)kbi_process_clock_of((int)a[0]),
			     .process = (int)kbi_sys(SYS_getpid) };
	const struct sigevent *e = (const struct sigevent *)a[1];
	long result;

	if ((e && !kbi_sys_can_read(e, sizeof *e)) ||
	    !kbi_sys_can_read((const void *)a[2], sizeof r.id))
		return -EFAULT;
	if (e)
		r.event = *e;
	if (e && (e->sigev_notify != SIGEV_NONE && (e->sigev_signo < 1 || e->sigev_signo > 64)))
		return -EINVAL;
	if (e && e->sigev_notify != SIGEV_NONE && e->sigev_notify != SIGEV_SIGNAL &&
	    e->sigev_notify != TO_THREAD)
		return -EINVAL;
	result = ask_for_timer(&r);
	if (!result)
		*(int *)a[2] = r.id;
	return result;
}

static long set_timer(const long a[6])
{
	struct request r = { .nr = SYS_timer_settime, .id = (int)a[0], .flags = (int)a[1],
		.sets = true };
	const struct itimerspec *new = (const struct itimerspec *)a[2];
	struct itimerspec *old = (struct itimerspec *)a[3];
	long result;

	if (new && !kbi_sys_can_read(new, sizeof *new))
		return -EFAULT;
	if (!new || !is_time(&new->it_value) || !is_time(&new->it_interval))
		return -EINVAL;
	r.value = ns_of(&new->it_value);
	r.interval = ns_of(&new->it_interval);
	result = ask_for_timer(&r);
	if (!result && old)
		*old = (struct itimerspec){ kbi_sys_timespec(r.had_interval),
			kbi_sys_timespec(r.had_value) };
	return result;
}

static long get_timer(const long a[6])
{
	struct request r = { .nr = SYS_timer_gettime, .id = (int)a[0] };
	long result = ask_for_timer(&r);

	if (!result)
		*(struct itimerspec *)a[1] =
			(struct itimerspec){ kbi_sys_timespec(r.had_interval), kbi_sys_timespec(r.had_value) };
	return result;
}

/* Does setitimer and getitimer. */
static long use_itimer(long nr, const long a[6])
{
	struct request r = { .nr = nr,
		.kind = a[0] == ITIMER_PROF ? KBI_PROCESS_CLOCK_PROF : KBI_PROCESS_CLOCK_USER };
	struct itimerval *old = (struct itimerval *)a[nr == SYS_setitimer ? 2 : 1];
	const struct itimerval *new = nr == SYS_setitimer ? (const struct itimerval *)a[1] : NULL;
	long result;

	if ((new && !kbi_sys_can_read(new, sizeof *new)) ||
	    (old && !kbi_sys_can_read(old, sizeof *old)))
		return -EFAULT;
	r.sets = nr == SYS_setitimer;
	if (new && ((unsigned long)new->it_value.tv_usec >= SECOND / MICRO ||
		    new->it_value.tv_sec < 0 ||
		    (unsigned long)new->it_interval.tv_usec >= SECOND / MICRO ||
		    new->it_interval.tv_sec < 0))
		return -EINVAL;
	if (new) {
		r.value = ns_of(&(struct timespec){ new->it_value.tv_sec, new->it_value.tv_usec * MICRO });
		r.interval = ns_of(&(struct timespec){ new->it_interval.tv_sec,
			new->it_interval.tv_usec * MICRO });
	}
	result = ask_for_timer(&r);
	if (!result && old)
		*old = (struct itimerval){ timeval_of(r.had_interval),
			timeval_of(r.had_value + MICRO - 1) };
	return result;
}

static bool is_cpu_time_call(long nr, const long a[6])
{
	switch (nr) {
	case SYS_timer_create:
		return kbi_process_clock_of((int)a[0]) >= 0;
	case SYS_setitimer:
	case SYS_getitimer:
		return a[0] == ITIMER_PROF || a[0] == ITIMER_VIRTUAL;
	case SYS_timer_settime:
	case SYS_timer_gettime:
	case SYS_timer_getoverrun:
	case SYS_timer_delete:
		return find_cpu_timer((int)a[0]) || (int)a[0] >= FIRST_ID;
	case SYS_getrusage:
		return a[0] == RUSAGE_SELF;
	default:
		return nr == SYS_times;
	}
}

static bool on_cpu_time_call(long nr, const long a[6], long *r)
{
	struct request other = { .nr = nr, .id = (int)a[0] };

	if (!is_cpu_time_call(nr, a))
		return false;
	switch (nr) {
	case SYS_timer_create:
		*r = make_timer(a);
		break;
	case SYS_timer_settime:
		*r = set_timer(a);
		break;
	case SYS_timer_gettime:
		*r = get_timer(a);
		break;
	case SYS_setitimer:
	case SYS_getitimer:
		*r = use_itimer(nr, a);
		break;
	case SYS_getrusage:
		*r = kbi_process_clock_usage((struct rusage *)a[1]);
		break;
	case SYS_times:
		*r = kbi_process_clock_times((struct tms *)a[0]);
		break;
	default:
		*r = ask_for_timer(&other);
	}
	return true;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Takes over a timer that the program set before it had other processes. */
static void take_itimer(int which, enum kbi_process_clock kind)
{
	const struct itimerval none = { 0 };
	struct itimerval v;
	struct request r = { .kind = kind };

	if (kbi_sys(SYS_setitimer, which, &none, &v) || (!v.it_value.tv_sec && !v.it_value.tv_usec))
		return;
	r.value = ns_of(&(struct timespec){ v.it_value.tv_sec, v.it_value.tv_usec * MICRO });
	r.interval = ns_of(&(struct timespec){ v.it_interval.tv_sec, v.it_interval.tv_usec * MICRO });
	arm_cpu_timer(itimer_of_clock(kind), &r);
}

void kbi_process_timers_setup(int supervisor, void (*pass)(int sig, siginfo_t *info))
{
	own.supervisor = supervisor;
	own.pass = pass;
	own.watcher = kbi_sys_map((size_t)KBI_PROCESS_CLOCKS * (kbi_supervisor.most + 1) *
		sizeof *own.watcher);
	own.limit = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	take_itimer(ITIMER_PROF, KBI_PROCESS_CLOCK_PROF);
	take_itimer(ITIMER_VIRTUAL, KBI_PROCESS_CLOCK_USER);
	kbi_process_clock_begin(supervisor);
	kbi_emulate_cpu = on_cpu_time_call;
}

void kbi_process_timers_forget(void)
{
	kbi_emulate_cpu = NULL;
}
