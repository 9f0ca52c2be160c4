/* bench/crew.h - the same small program on lightweight and on kernel threads: create, join, park. A
 * crew is the three ways to have threads (light, own TLS, pthread); under the drop-in the pthread
 * way is Kochab too. Everything is inline so that the choice costs nothing in the measured loops. */
#ifndef KOCHAB_BENCH_CREW_H
#define KOCHAB_BENCH_CREW_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <kochab/kochab.h>

#include "bench.h"

#define CREW_INLINE static inline __attribute__((always_inline))

enum crew { CREW_LIGHT, CREW_OWN, CREW_PTHREAD };

struct crew_attr {
	enum crew kind;
	kb_attr_t kb;
	pthread_attr_t posix;
};

/* Starts Kochab for the first two kinds, checks the number of VPs; 64 KiB stacks for all. */
static inline void crew_start(struct crew_attr *a, enum crew kind, const struct bench_case *c)
{
	a->kind = kind;
	if (kind == CREW_PTHREAD) {
		pthread_attr_init(&a->posix);
		pthread_attr_setstacksize(&a->posix, 65536);
		return;
	}
	int e = kb_init();
	if (e)
		bench_fail("kb_init: %s", strerror(e));
	if (kb_vp_count() != c->vps)
		bench_fail("%u virtual processors instead of %u", kb_vp_count(), c->vps);
	kb_attr_init(&a->kb);
	kb_attr_settls(&a->kb, kind == CREW_OWN ? KB_TLS_OWN : KB_TLS_LIGHT);
}

/* `kind` is a constant at every call, so that a single branch is left. */
CREW_INLINE int crew_try_create(
	const struct crew_attr *a, enum crew kind, uintptr_t *t, void *(*fn)(void *), void *arg)
{
	if (kind == CREW_PTHREAD)
		return pthread_create((pthread_t *)t, &a->posix, fn, arg);
	return kb_thread_create((kb_thread_t *)t, &a->kb, fn, arg);
}

CREW_INLINE void crew_create(
	const struct crew_attr *a, enum crew kind, uintptr_t *t, void *(*fn)(void *), void *arg)
{
	int e = crew_try_create(a, kind, t, fn, arg);

	if (e)
		bench_skip("creating a thread: %s", strerror(e));
}

CREW_INLINE void crew_join(enum crew kind, uintptr_t t, void **result)
{
	int e = kind == CREW_PTHREAD ? pthread_join((pthread_t)t, result)
				     : kb_thread_join((kb_thread_t)t, result);

	if (e)
		bench_fail("joining a thread: %s", strerror(e));
}

/* The three ways to ask run(c, kind), and the rows of Kochab's two in a table of methods. */
#define CREW_WAYS(run)                                   \
	static void crew_light(const struct bench_case *c) \
	{                                                \
		run(c, CREW_LIGHT);                      \
	}                                                \
	static void crew_own(const struct bench_case *c) \
	{                                                \
		run(c, CREW_OWN);                        \
	}                                                \
	static void crew_nptl(const struct bench_case *c) \
	{                                                \
		run(c, CREW_PTHREAD);                    \
	}
#define CREW_KOCHAB                                                  \
	{ "kochab", crew_light, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 }, \
	{ "kochab-own", crew_own, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 }

/* ---- a common start: the clock starts when the first thread is through ---- */

struct crew_gate {
	enum crew kind;
	pthread_barrier_t posix;
	kb_barrier_t kb;
	unsigned through;
	double start;
};

static inline void crew_gate_init(struct crew_gate *g, enum crew kind, unsigned count)
{
	g->kind = kind;
	g->through = 0;
	if (kind == CREW_PTHREAD)
		pthread_barrier_init(&g->posix, NULL, count);
	else
		kb_barrier_init(&g->kb, count);
}

static inline void crew_gate_wait(struct crew_gate *g)
{
	if (g->kind == CREW_PTHREAD)
		pthread_barrier_wait(&g->posix);
	else
		kb_barrier_wait(&g->kb);
	if (!__atomic_exchange_n(&g->through, 1, __ATOMIC_RELAXED))
		g->start = bench_now();
}

/* ---- parked threads (bench/crew.c) ---- */

struct crew_park;

/* Creates `count` threads that count themselves in and wait; returns when all wait. *made: how many
 * could be created, *error: why not all. */
struct crew_park *crew_park(enum crew kind, const struct bench_case *c, unsigned *made, int *error);
void crew_unpark(struct crew_park *p);
void crew_sleep(enum crew kind, double seconds);

#endif
