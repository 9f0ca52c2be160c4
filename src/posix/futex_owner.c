/* posix/futex_owner.c - contract in futex_owner.h.
 * A program takes a free word itself and writes the number that gettid gives. The kernel does not
 * know that number of a lightweight thread, so the kernel is only asked to sleep and to wake.
 * Priorities are not inherited.
 *
 * In memory of this process, sleepers are parked. In memory shared by processes they sleep in the
 * kernel at the word itself, so the threads of all programs under Kochab exclude each other. An
 * owner that the kernel knows, and that is no lightweight thread, may belong to a program that
 * unlocks words by the kernel, and the kernel refuses to wake such sleepers: a thread that waits
 * for this owner leaves no mark, and looks again and again. A caller whose number is the kernel's
 * asks the kernel first, which serves its own sleepers by its own rules.
 *
 * A waiter of FUTEX_WAIT_REQUEUE_PI sleeps at the first word and takes the second word when it is
 * woken: so no waiter is moved, and all are woken. */
#include "posix/futex_owner.h"

#include "core/vp.h"
#include "core/yield.h"
#include "libc/endable.h"
#include "libc/tcb.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "posix/call_priv.h"
#include "sync/park.h"

enum { LOCK_PI2 = 13 /* Linux 5.14 */, SECOND = 1000000000,
	MOST = 2000000 /* ns between two looks */ };

long kbi_futex_kernel(const struct kbi_futex *c)
{
	/* the program may be several processes */
	int op = kbi_sys_from.futex ? c->op : c->op & ~FUTEX_PRIVATE_FLAG;

	return kbi_sys(SYS_futex, c->addr, op, c->value, c->timeout, c->addr2, c->value3);
}

long kbi_futex_in_kernel(long n, const long a[6])
{
	uint32_t before = kbi_posix_me.handled;
	long r;

	if (!kbi_call_may_wait())
		return kbi_sys(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	kbi_call_leave_vp(true);
	do
		r = kbi_endable_call(n, a);
	/* interrupted by a signal that the program does not know of */
	while (r == -EINTR && kbi_posix_me.handled == before);
	kbi_call_rejoin();
	return r;
}

/* ---- sleeping at a word ------------------------------------------------------------------- */

struct word {
	const uint32_t *addr;
	bool shared;
};

/* True if threads park at the word. False: other processes may have the word, or this process has
 * only kernel threads that wait in the kernel. */
static bool is_parked(const struct word *w)
{
	return !w->shared && kbi_vp_n && !kbi_posix_forked;
}

/* Sleeps until a wake-up, until the word is not `value`, or until the time of CLOCK_MONOTONIC; may
 * wake spuriously. ETIMEDOUT, EAGAIN, or 0. A handler does not end it. */
static int sleep_at_pi_word(const struct word *w, uint32_t value, uint64_t until)
{
	struct timespec t = kbi_sys_timespec(until == KBI_FOREVER ? 0 : until);
	int op = FUTEX_WAIT_BITSET | (w->shared || !kbi_sys_from.futex ? 0 : FUTEX_PRIVATE_FLAG), e;
	const void *limit = until == KBI_FOREVER ? NULL : &t;
	long a[6] = { (long)w->addr, op, (long)value, (long)limit, 0, (long)FUTEX_BITSET_MATCH_ANY };

	if (!is_parked(w))
		return (int)-kbi_futex_in_kernel(SYS_futex, a);
	e = kbi_park_wait_until(w->addr, value, KBI_PARK_ANY, kbi_posix_until(until));
	kbi_signal_resumed();
	return e;
}

static unsigned wake_pi_word(const struct word *w, unsigned n)
{
	unsigned woken = is_parked(w) ? kbi_park_wake(w->addr, n, KBI_PARK_ANY) : 0;
	long more;
	int op = FUTEX_WAKE | (w->shared || !kbi_sys_from.futex ? 0 : FUTEX_PRIVATE_FLAG);

	if (is_parked(w))
		return woken;
	more = kbi_sys(SYS_futex, w->addr, op, n, 0, 0, 0);
	return more > 0 ? (unsigned)more : 0;
}

static void let_others_run(void)
{
	if (kbi_call_may_wait())
		kbi_yield_now();
	else
		kbi_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void pause_for(uint64_t ns)
{
	struct timespec t = { 0, (long)ns };

	if (kbi_call_may_wait())
		kbi_posix_sleep_by_number(CLOCK_MONOTONIC, 0, &t, NULL);
	else
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL, 0, 0);
}

/* ---- owners ------------------------------------------------------------------------------- */

enum owner {
	OWNER_GONE,
	OWNER_LIGHT,   /* or a kernel thread of this process: it unlocks the word by this unit */
	OWNER_KERNELS, /* it may unlock the word by the kernel */
};

/* Returns what the owner is. A lightweight thread's number of another program is recognised, but
 * not whether that thread lives. */
static enum owner kind_of_owner(uint32_t number, const struct word *w)
{
	if (kbi_bind_find((long)number))
		return OWNER_LIGHT;
	if (number >= KBI_TID_BASE)
		return w->shared ? OWNER_LIGHT : OWNER_GONE;
	if (kbi_sys(SYS_tkill, number, 0, 0, 0, 0, 0) == -ESRCH)
		return OWNER_GONE;
	return w->shared ? OWNER_KERNELS : OWNER_LIGHT;
}

/* A time limit; at KBI_FOREVER: none. */
struct limit {
	clockid_t clock;
	uint64_t at; /* ns */
};

struct taking {
	struct word w;
	/* FUTEX_WAITERS once it has slept: it does not know whether further threads still sleep */
	uint32_t me, slept;
	bool tries_only;
	struct limit limit;
	uint64_t pause;
};

/* Returns the end of the next sleep, of CLOCK_MONOTONIC, at most a second: clocks may be set, and
 * owners end. 0: the time is over. */
static uint64_t next_look(const struct limit *l)
{
	struct timespec t = { 0 };
	uint64_t now;

	if (l->at == KBI_FOREVER)
		return kbi_timer_now() + SECOND;
	kbi_sys(SYS_clock_gettime, l->clock, &t, 0, 0, 0, 0);
	now = (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
	if (now >= l->at)
		return 0;
	return kbi_timer_now() + (l->at - now < SECOND ? l->at - now : SECOND);
}

/* Sleeps until the word is unlocked, perhaps spuriously. False: the time is over. */
static bool wait_for_owner(struct taking *t, uint32_t value)
{
	uint64_t until = next_look(&t->limit);

	if (until)
		sleep_at_pi_word(&t->w, value, until);
	t->slept = FUTEX_WAITERS;
	return until;
}

/* Waits likewise without a mark in the word. */
static bool pause_before_look(struct taking *t)
{
	if (!next_look(&t->limit))
		return false;
	pause_for(t->pause);
	t->pause = t->pause * 2 < MOST ? t->pause * 2 : MOST;
	return true;
}

/* Waits for, or gives up, a word with an owner. 0: it may be free now; else an error. */
static int meet_owner(struct taking *t, uint32_t v, enum owner kind)
{
	a32 *word = (a32 *)(uintptr_t)t->w.addr;

	if (t->tries_only)
		return EAGAIN;
	if (kind == OWNER_KERNELS)
		return pause_before_look(t) ? 0 : ETIMEDOUT;
	/* pairs with the program's own atomic operations on the word */
	if (!(v & FUTEX_WAITERS) && !a_cas_acqrel(word, &v, v | FUTEX_WAITERS))
		return 0;
	return wait_for_owner(t, v | FUTEX_WAITERS) ? 0 : ETIMEDOUT;
}

/* Takes the word. A free word with FUTEX_WAITERS was unlocked for the thread that was woken there;
 * that thread gets some turns to take it first: otherwise a thread that unlocks and locks again
 * would have the word for ever. */
static long acquire_pi_word(struct taking *t)
{
	enum { TURNS = 1000 };
	a32 *word = (a32 *)(uintptr_t)t->w.addr;

	for (unsigned turn = 0;;) {
		uint32_t v = a_load_rlx(word), owner = v & FUTEX_TID_MASK;
		enum owner kind = owner && owner != t->me ? kind_of_owner(owner, &t->w)
			: OWNER_LIGHT;
		uint32_t died = kind == OWNER_GONE ? FUTEX_OWNER_DIED : 0;
		int e;

		if (!owner && !t->slept && v & FUTEX_WAITERS && turn++ < TURNS) {
			let_others_run();
			continue;
		}
		if (owner == t->me)
			return -EDEADLK;
		if (died && !t->slept)
			return -ESRCH;
		if (!owner || died) {
			uint32_t mine = t->me | t->slept | died | (v & (FUTEX_WAITERS | FUTEX_OWNER_DIED));

			/* pairs with the program's own atomic operations on the word */
			if (a_cas_acqrel(word, &v, mine))
				return 0;
			continue;
		}
		e = meet_owner(t, v, kind);
		if (e)
			return -e;
	}
}

static long release_pi_word(const struct word *w, uint32_t me)
{
	a32 *word = (a32 *)(uintptr_t)w->addr;
	uint32_t v = a_load_rlx(word), left = FUTEX_WAITERS;

	do
		if ((v & FUTEX_TID_MASK) != me)
			return -EPERM;
	/* pairs with the program's own atomic operations on the word */
	while (!a_cas_acqrel(word, &v, v & FUTEX_WAITERS));
	if (v & FUTEX_WAITERS && !wake_pi_word(w, 1))
		a_cas_acqrel(word, &left, 0); /* no thread waits any more */
	return 0;
}

/* ---- operations --------------------------------------------------------------------------- */

/* Reads the time limit. False: it is invalid. */
static bool read_limit(const struct kbi_futex *c, struct limit *l)
{
	const struct timespec *t = (const struct timespec *)c->timeout;
	bool real = (c->op & KBI_FUTEX_OP) == FUTEX_LOCK_PI || c->op & FUTEX_CLOCK_REALTIME;

	*l = (struct limit){ real ? CLOCK_REALTIME : CLOCK_MONOTONIC, KBI_FOREVER };
	if (!t)
		return true;
	if (!kbi_posix_time_ok(t) || t->tv_sec < 0)
		return false;
	if (t->tv_sec < INT64_MAX / SECOND)
		l->at = (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
	return true;
}

static long lock_pi_word(const struct kbi_futex *c, const struct word *w, uint32_t me,
	bool tries_only)
{
	struct taking t = { .w = *w, .me = me, .tries_only = tries_only, .pause = 50000 };

	if (!read_limit(c, &t.limit) && !tries_only)
		return -EINVAL;
	return acquire_pi_word(&t);
}

/* Sleeps at the first word, then takes the second as if it had slept there: further threads may
 * have been woken with it. */
static long wait_and_lock_pi_word(const struct kbi_futex *c, const struct word *w, uint32_t me)
{
	struct taking t = { .w = { c->addr2, w->shared }, .me = me, .slept = FUTEX_WAITERS,
		.pause = 50000 };
	uint64_t until;
	int e;

	if (!c->addr2 || c->addr2 == c->addr || (uintptr_t)c->addr2 & 3 || !read_limit(c, &t.limit))
		return -EINVAL;
	do {
		until = next_look(&t.limit);
		e = until ? sleep_at_pi_word(w, c->value, until) : ETIMEDOUT;
	} while (e == EINTR || (e == ETIMEDOUT && until));
	return e ? -e : acquire_pi_word(&t);
}

static long wake_instead_of_moving(const struct kbi_futex *c, const struct word *w)
{
	const uint64_t all = (uint64_t)c->value + (unsigned)c->timeout;

	if (c->value != 1 || (int)c->timeout < 0 || !c->addr2 || c->addr2 == c->addr)
		return -EINVAL;
	/* pairs with the program's own atomic operations on the word */
	if (a_load_acq((a32 *)(uintptr_t)c->addr) != c->value3)
		return -EAGAIN;
	return wake_pi_word(w, all < INT32_MAX ? (unsigned)all : INT32_MAX);
}

static long run_pi_operation(const struct kbi_futex *c, const struct word *w, uint32_t me)
{
	switch (c->op & KBI_FUTEX_OP) {
	case FUTEX_LOCK_PI:
	case LOCK_PI2:
		return lock_pi_word(c, w, me, false);
	case FUTEX_TRYLOCK_PI:
		return lock_pi_word(c, w, me, true);
	case FUTEX_UNLOCK_PI:
		return release_pi_word(w, me);
	case FUTEX_WAIT_REQUEUE_PI:
		return wait_and_lock_pi_word(c, w, me);
	case FUTEX_CMP_REQUEUE_PI:
		return wake_instead_of_moving(c, w);
	default:
		return kbi_futex_kernel(c);
	}
}

/* Asks the kernel first, for a caller whose number the kernel knows, and for the kernel's own
 * sleepers; the kernel does not know an owner that is a lightweight thread, nor sleepers of
 * ours. */
static long ask_kernel_first(const struct kbi_futex *c, const struct word *w)
{
	uint32_t owner = a_load_rlx((a32 *)(uintptr_t)c->addr) & FUTEX_TID_MASK;
	int op = c->op & KBI_FUTEX_OP;
	bool takes = op == FUTEX_LOCK_PI || op == LOCK_PI2 || op == FUTEX_TRYLOCK_PI;
	long r;

	if (takes && owner >= KBI_TID_BASE)
		return run_pi_operation(c, w, (uint32_t)kbi_sys_gettid());
	r = kbi_futex_kernel(c);
	owner = a_load_rlx((a32 *)(uintptr_t)c->addr) & FUTEX_TID_MASK;
	if (r == -EINVAL || (takes && r == -ESRCH && owner >= KBI_TID_BASE))
		return run_pi_operation(c, w, (uint32_t)kbi_sys_gettid());
	return r;
}

long kbi_futex_owned(const struct kbi_futex *c, bool shared)
{
	const struct word w = { c->addr, shared };

	if (shared && !kbi_bind_is_light() && (c->op & KBI_FUTEX_OP) != FUTEX_WAIT_REQUEUE_PI &&
	    (c->op & KBI_FUTEX_OP) != FUTEX_CMP_REQUEUE_PI)
		return ask_kernel_first(c, &w);
	return run_pi_operation(c, &w, (uint32_t)kbi_bind_number());
}

long kbi_futex_alone(const struct kbi_futex *c)
{
	const struct word w = { c->addr, true };

	if (c->op & FUTEX_PRIVATE_FLAG || !c->addr || (uintptr_t)c->addr & 3)
		return kbi_futex_kernel(c);
	switch (c->op & KBI_FUTEX_OP) {
	case FUTEX_LOCK_PI:
	case LOCK_PI2:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_UNLOCK_PI:
		return ask_kernel_first(c, &w);
	default:
		return kbi_futex_kernel(c);
	}
}
