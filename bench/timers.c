/* bench/timers.c - what does a deadline cost that never comes? N threads wait for their
 * notification, each with a deadline hours away; they are notified in random order and wait again:
 * each time a deadline leaves the heap and a new deadline comes in, among N. A run without
 * deadlines is measured before, and the difference is "insert+cancel". "drift": a thread sleeps
 * until points of time 1 ms apart; its median lateness. */
#include <stdlib.h>

#include "crew.h"

enum { BATCH = 64, WAKES = 300000, NAPS = 200 };

struct run {
	const struct bench_case *c;
	struct crew_attr attr;
	kb_event_t *event; /* of each thread */
	uint32_t ready, woken, timed, stop;
	uint64_t rand;
};

struct seat {
	struct run *r;
	unsigned i;
};

static uint64_t random_next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void *waits(void *arg)
{
	struct seat *s = arg;
	struct run *r = s->r;
	kb_event_t *e = &r->event[s->i];
	uint64_t rand = s->i * UINT64_C(0x9E3779B97F4A7C15) + 1, hours = UINT64_C(3600000000000) * 10;

	kb_event_init(e, NULL);
	__atomic_fetch_add(&r->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		uint64_t now = 0;

		if (__atomic_load_n(&r->timed, __ATOMIC_RELAXED))
			kb_event_timedwait(e, &now, hours + random_next(&rand) % hours);
		else
			kb_event_wait(e, &now);
		__atomic_fetch_add(&r->woken, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void await(const uint32_t *count, uint32_t n)
{
	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < n)
		kb_yield();
}

/* Seconds for a wake-up of a random thread and its next wait. */
static double wakes(struct run *r, unsigned n)
{
	double start = bench_now();

	__atomic_store_n(&r->woken, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i += BATCH) {
		/* on separate lines: a thread has a single notification at a time */
		unsigned first = (unsigned)(random_next(&r->rand) % r->c->threads), step = r->c->threads / BATCH;

		for (unsigned k = 0; k < BATCH; k++)
			kb_event_notify(&r->event[(first + k * step) % r->c->threads], 0);
		await(&r->woken, i + BATCH);
	}
	return (bench_now() - start) / n;
}

/* Each once, so that all wait as `timed` says. */
static void turn_over(struct run *r, uint32_t timed)
{
	__atomic_store_n(&r->timed, timed, __ATOMIC_RELAXED);
	__atomic_store_n(&r->woken, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < r->c->threads; i++) {
		kb_event_notify(&r->event[i], 0);
		if (i % BATCH == BATCH - 1)
			await(&r->woken, i + 1);
	}
	await(&r->woken, r->c->threads);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Points of time 1 ms apart: a sleep that is late does not make the next ones late. */
static void drift(void)
{
	static double late[NAPS];
	uint64_t at = kb_now() + 5000000;

	for (unsigned i = 0; i < NAPS; i++, at += 1000000) {
		kb_sleep_until(at);
		late[i] = (double)(kb_now() - at);
	}
	qsort(late, NAPS, sizeof *late, by_value);
	bench_report("late", "ns", late[NAPS / 2]);
}

static void run(const struct bench_case *c, enum crew kind)
{
	struct run r = { .c = c, .rand = 88172645463325252u };
	struct seat *seat = bench_alloc(c->threads, sizeof *seat);
	uintptr_t *t = bench_alloc(c->threads, sizeof *t);
	double without, with;

	r.event = bench_alloc(c->threads + 1, sizeof *r.event);
	r.event = (kb_event_t *)(((uintptr_t)r.event + 63) & ~(uintptr_t)63);
	crew_start(&r.attr, kind, c);
	for (unsigned i = 0; i < c->threads; i++) {
		seat[i] = (struct seat){ &r, i };
		crew_create(&r.attr, kind, &t[i], waits, &seat[i]);
		if (i % 1024 == 0)
			kb_yield();
	}
	await(&r.ready, c->threads);
	turn_over(&r, 0);
	wakes(&r, WAKES / 10);
	without = wakes(&r, WAKES);
	turn_over(&r, 1);
	wakes(&r, WAKES / 10);
	with = wakes(&r, WAKES);
	bench_report("wake+wait", "ns", without * 1e9);
	bench_report("timed", "ns", with * 1e9);
	bench_report("insert+cancel", "ns", with > without ? (with - without) * 1e9 : 0);
	drift();
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
	turn_over(&r, 0);
	for (unsigned i = 0; i < c->threads; i++)
		crew_join(kind, t[i], NULL);
}

static void light(const struct bench_case *c)
{
	run(c, CREW_LIGHT);
}

static void own(const struct bench_case *c)
{
	run(c, CREW_OWN);
}

static const struct bench_method methods[] = {
	{ "kochab", light, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-own", own, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_timers = {
	.name = "timers",
	.question = "a deadline that never comes, among as many as there are threads",
	.methods = methods,
	.threads = "1000,1000000",
	.vps = "1,cores",
	.reference = NULL,
};
