/* bench/ring_kochab.c - waiting as a lightweight thread on its notification area (kb_event), polled
 * by the agents of the virtual processors (section 4.2.3 of the paper). The message travels in the
 * event. */
#include <string.h>

#include <kochab/kochab.h>

#include "ring.h"

static void make(void *p)
{
	kb_event_init(p, NULL);
}

RING_INLINE void send(void *p, uint64_t message)
{
	kb_event_notify(p, message);
}

RING_INLINE uint64_t receive(void *p)
{
	uint64_t message;
	int e = kb_event_wait(p, &message);

	if (e)
		bench_fail("kb_event_wait: %s", strerror(e));
	return message;
}

static void *seat_main(void *seat)
{
	return ring_sit(seat, make, send, receive, kb_yield);
}

void ring_kochab_run(struct ring *r, const struct bench_case *c, int own)
{
	kb_attr_t attr;
	int e = kb_init();

	if (e)
		bench_fail("kb_init: %s", strerror(e));
	if (kb_vp_count() != c->vps)
		bench_fail("%u virtual processors instead of %u", kb_vp_count(), c->vps);
	ring_prepare(r, c, sizeof(kb_event_t));
	kb_attr_init(&attr);
	kb_attr_settls(&attr, own ? KB_TLS_OWN : KB_TLS_LIGHT);
	for (unsigned i = 0; i < c->threads; i++) {
		if (c->spread)
			kb_attr_setvp(&attr, (int)(i % c->vps));
		e = kb_thread_create((kb_thread_t *)&r->seats[i].thread, &attr, seat_main, &r->seats[i]);
		if (e)
			bench_fail("kb_thread_create of thread %u: %s", i, strerror(e));
	}
	for (unsigned i = 0; i < c->threads; i++)
		kb_thread_join((kb_thread_t)r->seats[i].thread, NULL);
	ring_finish(r);
}

void ring_kochab_light(const struct bench_case *c)
{
	struct ring r = { 0 };

	ring_kochab_run(&r, c, 0);
}

void ring_kochab_own(const struct bench_case *c)
{
	struct ring r = { 0 };

	ring_kochab_run(&r, c, 1);
}
