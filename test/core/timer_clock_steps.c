/* core/timer: waits for a time of CLOCK_REALTIME when that clock is set, forward and back: they
 * follow it within a second, and waits on CLOCK_MONOTONIC are not affected. The clock is this
 * program's own function.
 * matrix: vps=1,2 sched=rotator */
#include <errno.h>
#include <kochab/kochab.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/timer.h"
#include "test.h"

enum { HOUR = 3600 };

static int64_t step; /* seconds that CLOCK_REALTIME has been set by */

/* Replaces libc's: the library in this program calls this function. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, clock, t);

	if (clock == CLOCK_REALTIME)
		t->tv_sec += __atomic_load_n(&step, __ATOMIC_RELAXED);
	return r;
}

static void set_clock(int64_t seconds)
{
	__atomic_store_n(&step, seconds, __ATOMIC_RELAXED);
}

struct waiter {
	clockid_t clock;
	struct timespec until;
	uint32_t over;
};

static void *waits(void *arg)
{
	struct waiter *w = arg;

	while (!kbi_timer_passed(w->clock, w->until.tv_sec, w->until.tv_nsec))
		kbi_timer_sleep(kbi_self(),
			kbi_timer_deadline(w->clock, w->until.tv_sec, w->until.tv_nsec));
	__atomic_store_n(&w->over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static kb_thread_t start(struct waiter *w, clockid_t clock, long ms)
{
	kb_thread_t t;

	*w = (struct waiter){ .clock = clock, .until = test_in_ms(clock, ms) };
	CHECK_EQ(kb_thread_create(&t, NULL, waits, w), 0);
	return t;
}

static int is_over(const struct waiter *w)
{
	return (int)__atomic_load_n(&w->over, __ATOMIC_ACQUIRE);
}

int main(void)
{
	struct waiter real, soon, mono;
	kb_thread_t r, s, m;
	uint64_t before;

	CHECK_EQ(kb_init(), 0);
	r = start(&real, CLOCK_REALTIME, HOUR * 1000L);
	m = start(&mono, CLOCK_MONOTONIC, 1500);
	s = start(&soon, CLOCK_REALTIME, 60);
	set_clock(-HOUR); /* back: a near deadline is an hour ahead now */
	kb_sleep(100000000);
	CHECK(!is_over(&soon) && !is_over(&real));
	before = kb_now();
	set_clock(1); /* forward: it has come */
	CHECK_EQ(kb_thread_join(s, NULL), 0);
	CHECK(kb_now() - before < 5000000000ull && !is_over(&real));
	set_clock(HOUR + 10);
	CHECK_EQ(kb_thread_join(r, NULL), 0);
	CHECK(kb_now() - before < 10000000000ull);
	before = kb_now();
	CHECK_EQ(kb_thread_join(m, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &soon.until);
	CHECK(soon.until.tv_sec > mono.until.tv_sec ||
	      (soon.until.tv_sec == mono.until.tv_sec && soon.until.tv_nsec >= mono.until.tv_nsec));
	return 0;
}
