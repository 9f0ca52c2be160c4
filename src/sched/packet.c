/* sched/packet.c - packets: cut out of a Protect Queue, and opened at another VP. Contract
 * in packet.h. */
#include "sched/packet.h"

/* tasks prefetched at once while a packet is opened: in a packet `prev` leads this many tasks on */
enum { AHEAD = 8 };

struct kbi_packet kbi_packet_cut(struct kbi_sched_vp *s, struct kbi_task **at, unsigned n,
	unsigned to)
{
	struct kbi_task *t = *at, *before, *behind, *last = NULL;
	struct kbi_packet p = { .n = 0 };

	while (t && kbi_task_is(t, KBI_TASK_BOUND))
		t = t->next;
	p.head = behind = t;
	before = t ? t->prev : NULL;
	for (; t && !kbi_task_is(t, KBI_TASK_BOUND) && p.n < n; t = t->next, p.n++) {
		/* release: pairs with the acquire of any reader of the state word (core/wait, core/dump) */
		a_store_rel(&t->state, KBI_STATE(KBI_TASK_WAIVED, to));
		last = t;
		if (p.n < AHEAD)
			continue;
		behind->prev = t;
		behind = behind->next;
	}
	*at = t;
	if (!last)
		return p;
	last->next = NULL;
	*(before ? &before->next : &s->pq.head) = t;
	*(t ? &t->prev : &s->pq.tail) = before;
	s->pq.n -= p.n;
	return p;
}

struct kbi_packet kbi_packet_cut_newest(struct kbi_sched_vp *s, struct kbi_task **at, unsigned n,
	unsigned to)
{
	struct kbi_task *t = *at ? s->pq.tail : NULL, *before, *later[AHEAD];
	struct kbi_packet p = { .n = 0 };

	for (; t && p.n < n && kbi_task_is(t, KBI_TASK_NOT_STARTED) &&
		!kbi_task_is(t, KBI_TASK_BOUND); t = before, p.n++) {
		before = t->prev;
		if (t == *at) {
			*at = NULL;
			n = 0;
		}
		/* release: pairs as in kbi_packet_cut */
		a_store_rel(&t->state, KBI_STATE(KBI_TASK_WAIVED, to));
		if (p.n >= AHEAD)
			t->prev = later[p.n % AHEAD];
		later[p.n % AHEAD] = p.head = t;
	}
	if (!p.n)
		return p;
	*(t ? &t->next : &s->pq.head) = NULL;
	s->pq.tail = t;
	s->pq.n -= p.n;
	return p;
}

void kbi_packet_open(struct kbi_sched_vp *s, struct kbi_packet p)
{
	for (struct kbi_task *t = p.head, *next; t; t = next) {
		next = t->next;
		__builtin_prefetch(t->prev, 1);
		kbi_sched_accept(s, t);
	}
	s->taken += p.n;
}
