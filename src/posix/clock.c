/* posix/clock.c - CPU clocks of lightweight threads, and their use of the processor. Contract in
 * clock.h. core/meter measures the time; it begins at the first question about any thread. Callers:
 * programs. Switches only where the caller's turn is over. */
#include "posix/clock.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/meter.h"
#include "core/process_clock.h"
#include "core/wait.h"
#include "libc/tcb.h"
#include "os/sys.h"
#include "posix/bind.h"

/* The 28 bits of a number: a bit that no number of the kernel has, 5 bits of the thread's number,
 * 22 bits of the descriptor's place. */
enum {
	KIND = 6, /* the kernel's kind: a thread's clock, as scheduled */
	KIND_BITS = 3,
	PLACE_BITS = 22,
	CHECK_BITS = 5,
	OURS = 1 << (PLACE_BITS + CHECK_BITS),
	NUMBERS = 1 << 29, /* the numbers that fit into an id */
	/* an id above this contains a number so large that the inverted number is positive */
	OTHERS = 1 << 16,
	SECOND = 1000000000,
	MICRO = 1000, /* ns */
};

/* ---- which clock -------------------------------------------------------------------------- */

struct kb_thread *kbi_clock_caller(void)
{
	struct kbi_task *self = kbi_self_raw();
	struct kb_thread *t = kbi_thread_of(self);

	if (!self || kbi_posix_forked || (!self->vp && !t->worker))
		return NULL;
	return t->own_tls && t->posix ? t : NULL;
}

static uint32_t clock_number(const struct kb_thread *t)
{
	if (t->is_main)
		return (uint32_t)getpid();
	return (uint32_t)OURS | kbi_tcb_check(a_load_rlx(&t->number), 1 << CHECK_BITS) << PLACE_BITS |
		t->task.index;
}

/* Returns the thread with this number. The program may also have computed the id from the number
 * that gettid gives: an id keeps all bits of that but two, which are known. */
static struct kb_thread *thread_of_clock_number(uint32_t number)
{
	struct kb_thread *t = NULL;

	if (number == (uint32_t)getpid())
		return kbi_bind_find(number); /* main */
	if (number & OURS && number < 2 * OURS)
		t = kbi_descriptor_at(number % (1 << PLACE_BITS));
	if (t && kbi_bind_lives(t) && clock_number(t) == number)
		return t;
	return kbi_bind_find((long)(KBI_TID_BASE | number));
}

/* True if the form is that of some thread's CPU clock. */
static bool is_thread_cpu_clock(clockid_t clock)
{
	return kbi_unlikely(clock == CLOCK_THREAD_CPUTIME_ID) ||
	       (kbi_unlikely(clock < 0 || clock > OTHERS) && (clock & ((1 << KIND_BITS) - 1)) == KIND);
}

/* True for the CPU time of a thread or a process. */
static bool is_cpu_clock(clockid_t clock)
{
	return kbi_unlikely(clock < 0) ||
		kbi_unlikely(clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID);
}

struct kb_thread *kbi_clock_whose(clockid_t clock)
{
	uint32_t number = ~((uint32_t)clock >> KIND_BITS) % NUMBERS;

	if (!is_thread_cpu_clock(clock) || kbi_posix_forked || !kbi_vp_n)
		return NULL;
	return clock == CLOCK_THREAD_CPUTIME_ID || !number ? kbi_clock_caller()
		: thread_of_clock_number(number);
}

/* ---- what it shows ------------------------------------------------------------------------ */

static uint64_t read_own_cpu_time(struct kb_thread *t)
{
	bool handler = a_load_rlx(&t->task.np) > 0;
	uint64_t ns;

	kbi_np_enter(&t->task);
	ns = kbi_meter_self(&t->task, handler);
	kbi_np_leave(&t->task);
	return ns;
}

uint64_t kbi_clock_read(struct kb_thread *t)
{
	kbi_meter_start();
	return t == kbi_clock_caller() ? read_own_cpu_time(t) : kbi_meter_read(t);
}

/* Returns the thread whose clock it is, if the clock can be read. Starts the meter even in a
 * program without virtual processors: it may have some soon. */
static struct kb_thread *find_metered_thread(clockid_t clock)
{
	struct kb_thread *t;

	kbi_posix_let_turn_end();
	t = kbi_clock_whose(clock);
	return (t || !kbi_vp_n) && kbi_meter_start() ? t : NULL;
}

bool kbi_clock_is_programs(clockid_t clock)
{
	return kbi_sys_from.processes && kbi_process_clock_of(clock) >= 0;
}

static bool get_program_cpu_time(clockid_t clock, struct timespec *now)
{
	bool is = kbi_clock_is_programs(clock);

	if (is)
		*now = kbi_sys_timespec(kbi_process_clock_read(
			(enum kbi_process_clock)kbi_process_clock_of(clock)));
	return is;
}

static bool get_thread_cpu_time(clockid_t clock, struct timespec *now)
{
	struct kb_thread *t;

	if (!is_thread_cpu_clock(clock))
		return get_program_cpu_time(clock, now);
	t = find_metered_thread(clock);

	if (t)
		*now = kbi_sys_timespec(kbi_clock_read(t));
	return t;
}

/* The resolution is the kernel's, 1 ns. */
static bool get_resolution(clockid_t clock, struct timespec *fine)
{
	if (!kbi_clock_whose(clock))
		return false;
	if (fine)
		*fine = (struct timespec){ 0, 1 };
	return true;
}

static struct timeval timeval_of_us(uint64_t us)
{
	return (struct timeval){ (time_t)(us / (SECOND / MICRO)),
		(suseconds_t)(us % (SECOND / MICRO)) };
}

static uint64_t us_of_timeval(struct timeval t)
{
	return (uint64_t)t.tv_sec * (SECOND / MICRO) + (uint64_t)t.tv_usec;
}

/* Splits the thread's time into user and system time in the proportion of its kernel thread's
 * times. */
static void split_cpu_time(struct rusage *r, uint64_t ns)
{
	uint64_t user = us_of_timeval(r->ru_utime), both = user + us_of_timeval(r->ru_stime),
		us = ns / MICRO;

	user = both ? (uint64_t)((double)us * ((double)user / (double)both)) : us;
	if (user > us)
		user = us;
	r->ru_utime = timeval_of_us(user);
	r->ru_stime = timeval_of_us(us - user);
}

static void set_thread_usage(struct rusage *r)
{
	struct kb_thread *t = find_metered_thread(CLOCK_THREAD_CPUTIME_ID);

	if (t)
		split_cpu_time(r, read_own_cpu_time(t));
}

/* ---- the program's names ------------------------------------------------------------------ */

/* Also called before our constructor, where the loader's look-ups must not be disturbed: then the
 * kernel is asked directly. */
KBI_POSIX_API int clock_gettime(clockid_t clock, struct timespec *now)
{
	/* acquire: pairs with the release in kbi_libc_look_up */
	if (kbi_likely(!is_cpu_clock(clock) && a_load_acq(&kbi_libc_ready)))
		return kbi_libc_table.clock_gettime(clock, now);
	if (is_cpu_clock(clock) && get_thread_cpu_time(clock, now))
		return 0;
	return kbi_posix_answer(kbi_sys(SYS_clock_gettime, clock, now));
}

/* libc's own function asks the kernel and would bypass clock_gettime above. */
KBI_POSIX_API clock_t clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (clock_t)now.tv_sec * CLOCKS_PER_SEC +
		(clock_t)(now.tv_nsec / (SECOND / CLOCKS_PER_SEC));
}

KBI_POSIX_API int clock_getres(clockid_t clock, struct timespec *fine)
{
	if (get_resolution(clock, fine))
		return 0;
	return kbi_posix_answer(kbi_sys(SYS_clock_getres, clock, fine));
}

KBI_POSIX_API int getrusage(__rusage_who_t who, struct rusage *r)
{
	bool programs = kbi_sys_from.processes && who == RUSAGE_SELF;
	int e = kbi_posix_answer(programs ? kbi_process_clock_usage(r) :
		kbi_sys(SYS_getrusage, who, r));

	if (e == 0 && who == RUSAGE_THREAD)
		set_thread_usage(r);
	return e;
}

KBI_POSIX_API int pthread_getcpuclockid(pthread_t id, clockid_t *clock)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);

	if (gone)
		return ESRCH;
	if (kbi_posix_forked && t)
		return ESRCH;
	if (!kbi_vp_n)
		kbi_meter_start();
	if (kbi_posix_forked || !t || !t->own_tls)
		return kbi_libc()->pthread_getcpuclockid(id, clock);
	if (!kbi_bind_lives(t))
		return ESRCH;
	if (t->task.index >= 1 << PLACE_BITS || !kbi_meter_start())
		return ENOENT;
	*clock = (clockid_t)(~clock_number(t) << KIND_BITS | KIND);
	return 0;
}

bool kbi_clock_by_number(long n, const long *a, long *r)
{
	switch (n) {
	case SYS_clock_gettime:
		*r = 0;
		return is_cpu_clock((clockid_t)a[0]) && a[1] &&
			get_thread_cpu_time((clockid_t)a[0], (struct timespec *)a[1]);
	case SYS_clock_getres:
		*r = 0;
		return is_thread_cpu_clock((clockid_t)a[0]) &&
			get_resolution((clockid_t)a[0], (struct timespec *)a[1]);
	case SYS_getrusage:
		if (kbi_sys_from.processes && a[0] == RUSAGE_SELF)
			return false; /* libc/emulate answers it */
		*r = kbi_sys(n, a[0], a[1]);
		if (*r == 0 && a[0] == RUSAGE_THREAD)
			set_thread_usage((struct rusage *)a[1]);
		return true;
	default:
		return false;
	}
}
