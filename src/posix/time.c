/* posix/time.c - the functions that sleep. A lightweight thread sleeps on its virtual processor's
 * deadline heap; any other thread in libc's function. libc also serves the clocks that we do not,
 * such as the process's CPU time where virtual processors are kernel threads. A wait until a
 * lightweight thread or the program has used some CPU time reads that clock again and again.
 * Callers: programs. All may switch and are cancellation points. */
#include "posix/call_priv.h"

#include "core/process_clock.h"
#include "core/process.h"
#include "core/slice.h"
#include "core/yield.h"
#include "posix/clock.h"
#include "os/cpu.h"
#include "os/sys.h"

enum { SECOND = 1000000000 };

static bool is_our_clock(clockid_t clock)
{
	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && kbi_posix_light();
}

/* Sleeps until the deadline, then returns 0; EINTR: a signal handler ran. */
static int sleep_until_deadline(uint64_t deadline, bool cancels)
{
	struct kbi_task *self = kbi_self();
	struct kbi_until until = cancels ? kbi_posix_until_cancelled(deadline)
		: kbi_posix_until(deadline);

	kbi_slice_note(self);
	for (;;) {
		int e;

		if (cancels)
			kbi_cancel_test();
		if (kbi_timer_now() >= deadline)
			return 0;
		kbi_waitq_sleep(self, until);
		e = kbi_posix_stop_signal(self);
		kbi_signal_resumed();
		if (e)
			return e;
	}
}

static int sleep_absolute(clockid_t clock, const struct timespec *t, bool cancels)
{
	while (!kbi_timer_passed(clock, t->tv_sec, t->tv_nsec)) {
		int e = sleep_until_deadline(kbi_timer_deadline(clock, t->tv_sec, t->tv_nsec),
			cancels);

		if (e)
			return e;
	}
	return 0;
}

static int sleep_relative(const struct timespec *t, struct timespec *left, bool cancels)
{
	uint64_t ns = kbi_timer_ns(t->tv_sec, t->tv_nsec), deadline = kbi_timer_after(ns), now;
	int e;

	if (!ns) {
		/* the kernel would let other threads run, and a program that waits so expects no more */
		sched_yield();
		return 0;
	}
	e = sleep_until_deadline(deadline, cancels);
	if (e && left) {
		now = kbi_timer_now();
		ns = now < deadline ? deadline - now : 0;
		*left = (struct timespec){ (time_t)(ns / SECOND), (long)(ns % SECOND) };
	}
	return e;
}

static int sleep_on_vp(clockid_t clock, int flags, const struct timespec *t, struct timespec *left,
	bool cancels)
{
	if (!kbi_posix_time_ok(t) || t->tv_sec < 0)
		return EINVAL;
	if (cancels)
		kbi_cancel_test();
	return flags & TIMER_ABSTIME ? sleep_absolute(clock, t, cancels)
		: sleep_relative(t, left, cancels);
}

/* Ends the wait of a lightweight thread that has left its virtual processor; a cancellation may
 * unwind the frame. */
static void rejoin_vp_if_left(const bool *left)
{
	if (*left)
		kbi_call_rejoin();
}

/* Sleeps in libc. The runtime's own signals do not end the sleep. */
static int sleep_in_libc(clockid_t clock, int flags, const struct timespec *t,
	struct timespec *left)
{
	struct timespec rest = { 0, 0 };
	uint32_t before = kbi_posix_me.handled;
	bool left_vp __attribute__((cleanup(rejoin_vp_if_left))) = kbi_call_may_wait();
	int e;

	if (left_vp)
		kbi_call_leave_vp(true);
	e = kbi_libc()->clock_nanosleep(clock, flags, t, &rest);
	while (e == EINTR && left_vp && kbi_posix_me.handled == before) {
		struct timespec again = flags & TIMER_ABSTIME ? *t : rest;

		e = kbi_libc()->clock_nanosleep(clock, flags, &again, &rest);
	}
	if (left && e == EINTR && !(flags & TIMER_ABSTIME))
		*left = rest;
	return e;
}

/* ---- until a lightweight thread has used so much CPU time --------------------------------- */

static int sleep_for_ns(uint64_t ns)
{
	struct timespec t = kbi_sys_timespec(ns);

	return kbi_posix_light() ? sleep_until_deadline(kbi_timer_after(ns), true) :
				   kbi_libc()->clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* Sleeps until the thread has used that much: in a given time it cannot use more. EINVAL: the
 * thread has ended. */
static int sleep_until_used(clockid_t clock, uint64_t until, uint64_t *left)
{
	enum { LEAST = 1000000 };
	struct kb_thread *t;
	int e = 0;

	while ((t = kbi_clock_whose(clock)) && !e) {
		uint64_t used = kbi_clock_read(t);

		*left = until > used ? until - used : 0;
		if (!*left)
			return 0;
		e = sleep_for_ns(*left > LEAST ? *left : LEAST);
	}
	return t ? e : EINVAL;
}

/* The same for the program's clock, where the kernel has a clock for each of its processes, which
 * use a processor each at most. */
static int sleep_until_program_used(clockid_t clock, int flags, const struct timespec *t,
	struct timespec *left)
{
	enum { LEAST = 1000000 };
	enum kbi_process_clock kind = (enum kbi_process_clock)kbi_process_clock_of(clock);
	uint64_t used = kbi_process_clock_read(kind), until;
	int e = 0;

	if (!kbi_posix_time_ok(t) || t->tv_sec < 0)
		return EINVAL;
	until = (flags & TIMER_ABSTIME ? 0 : used) + kbi_timer_ns(t->tv_sec, t->tv_nsec);
	while ((used = kbi_process_clock_read(kind)) < until && !e) {
		uint64_t least = (until - used) / kbi_process_most();

		e = sleep_for_ns(least > LEAST ? least : LEAST);
	}
	if (e == EINTR && left && !(flags & TIMER_ABSTIME))
		*left = kbi_sys_timespec(used < until ? until - used : 0);
	return e == EINTR && used >= until ? 0 : e;
}

/* Sleeps on a thread's clock. EINVAL: on its own, which would never advance. */
static int sleep_on_clock(struct kb_thread *of, clockid_t clock, int flags,
	const struct timespec *t, struct timespec *left)
{
	uint64_t until = flags & TIMER_ABSTIME ? 0 : kbi_clock_read(of), rest = 0;
	int e;

	if (!kbi_posix_time_ok(t) || t->tv_sec < 0 || of == kbi_clock_caller())
		return EINVAL;
	e = sleep_until_used(clock, until + kbi_timer_ns(t->tv_sec, t->tv_nsec), &rest);
	if (e == EINTR && left && !(flags & TIMER_ABSTIME))
		*left = kbi_sys_timespec(rest);
	return e;
}

KBI_POSIX_API int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
	struct timespec *left)
{
	struct kb_thread *of = kbi_clock_whose(clock);

	if (kbi_unlikely(of != NULL))
		return sleep_on_clock(of, clock, flags, t, left);
	if (kbi_clock_is_programs(clock))
		return sleep_until_program_used(clock, flags, t, left);
	if (!is_our_clock(clock))
		return sleep_in_libc(clock, flags, t, left);
	return sleep_on_vp(clock, flags, t, left, true);
}

long kbi_posix_sleep_by_number(clockid_t clock, int flags, const struct timespec *t,
	struct timespec *left)
{
	struct kb_thread *of = kbi_clock_whose(clock);

	if (of)
		return -sleep_on_clock(of, clock, flags, t, left);
	if (kbi_clock_is_programs(clock))
		return -sleep_until_program_used(clock, flags, t, left);
	return -sleep_on_vp(clock, flags, t, left, false);
}

KBI_POSIX_API int nanosleep(const struct timespec *t, struct timespec *left)
{
	int e;

	if (!is_our_clock(CLOCK_MONOTONIC))
		return kbi_libc()->nanosleep(t, left);
	e = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
	if (e == 0)
		return 0;
	errno = e;
	return -1;
}

KBI_POSIX_ALIAS(__nanosleep, nanosleep);

KBI_POSIX_API int usleep(useconds_t us)
{
	struct timespec t = { us / 1000000, (long)(us % 1000000) * 1000 };

	return is_our_clock(CLOCK_MONOTONIC) ? nanosleep(&t, NULL) : kbi_libc()->usleep(us);
}

KBI_POSIX_API unsigned sleep(unsigned seconds)
{
	struct timespec t = { seconds, 0 }, left = { 0, 0 };

	if (!is_our_clock(CLOCK_MONOTONIC))
		return kbi_libc()->sleep(seconds);
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &left) ? (unsigned)left.tv_sec : 0;
}

KBI_POSIX_API int thrd_sleep(const struct timespec *t, struct timespec *left)
{
	int e = clock_nanosleep(CLOCK_REALTIME, 0, t, left);

	return e == 0 ? 0 : e == EINTR ? -1 : -2;
}

/* Offers the processor to the kernel's other threads in every 32nd call, if no other thread is
 * ready here, since another process may have to run first; or if there are more virtual processors
 * than processors, since a thread's virtual processor may be without a processor. */
static void offer_processor(const struct kbi_task *self)
{
	enum { EVERY = 32 };
	static a32 processors;
	const struct kbi_vp *vp = self->vp;

	if (++kbi_posix_me.yields % EVERY)
		return;
	if (kbi_unlikely(a_zero32_rlx(&processors)))
		a_store_rlx(&processors, kbi_cpu_affinity());
	if (kbi_unlikely(kbi_vp_n > a_load_rlx(&processors)) || (vp && !kbi_vp_backlog(vp)))
		kbi_sys_yield();
}

KBI_POSIX_API int sched_yield(void)
{
	struct kbi_task *self = kbi_posix_light();

	if (!self) {
		kbi_sys_yield();
		return 0;
	}
	offer_processor(self);
	kbi_yield_now();
	kbi_signal_resumed();
	return 0;
}

KBI_POSIX_ALIAS(__sched_yield, sched_yield);
KBI_POSIX_ALIAS(pthread_yield, sched_yield);

KBI_POSIX_API void thrd_yield(void)
{
	sched_yield();
}
