/* sched/link.h - the rotator's links: packets of ready tasks from VP to VP.
 *
 * A packet is a chain of tasks. A link is a ring of packets with one producer and one consumer:
 * no lock, no read-modify-write. Link k of VP i leads to VP i + distance[k]. With few VPs there
 * is a link to each VP; with more VPs the links lead 1, 2, 4, 8 ... places on, so that a task
 * reaches any VP in O(log VPs) hops. The rings lie with their consumer. The words that their
 * producers write are together in one line (up to 8 links), and an idle poll reads only this
 * line.
 * A sender also counts its tasks in that word. So every VP sees how many tasks are on their way
 * to a VP that does not look (it is not running just now) and does not believe that it lacks
 * work.
 * Callers: sched/rotator, sched/packet. Never switches. */
#ifndef KBI_SCHED_LINK_H
#define KBI_SCHED_LINK_H

#include "base/ring.h"
#include "sched/sched_priv.h"

enum {
	KBI_LINKS = 10,     /* 2^10 = KBI_MAX_VPS */
	KBI_LINK_MESH = 9,  /* up to this many VPs have a link from each to each */
	KBI_LINK_SLOTS = 128,
	KBI_PACKET_MAX = 64, /* tasks */
};

_Static_assert(1 << KBI_LINKS >= KBI_MAX_VPS, "links reach everybody");
_Static_assert(KBI_LINK_MESH - 1 <= KBI_LINKS, "a mesh has that many links");

struct kbi_packet {
	struct kbi_task *head; /* linked by ->next, NULL at the end */
	uint32_t n;
};

struct kbi_links {
	/* [k] written by its producer, distance[k] places back: tasks ever sent << 32 | packets ever
	 * sent */
	a64 tail[KBI_LINKS] KBI_ALIGNED(KBI_CACHE_LINE);
	/* written by the owner; head is read by the producers, counted and taken_tasks by any VP */
	a32 head[KBI_LINKS] KBI_ALIGNED(KBI_CACHE_LINE); /* packets taken */
	a32 counted; /* tasks ever sent to this VP that its published load includes */
	a32 taken_tasks; /* tasks ever taken */
	/* owner only */
	uint32_t taken[KBI_LINKS] KBI_ALIGNED(KBI_CACHE_LINE); /* copy of head */
	uint64_t put[KBI_LINKS];      /* copy of the tails that this VP writes */
	unsigned n;                   /* constant: links */
	unsigned distance[KBI_LINKS]; /* constant, ascending */
	struct kbi_packet slot[KBI_LINKS][KBI_LINK_SLOTS]; /* inbound */
};

void kbi_link_init(struct kbi_links *l, unsigned vps);

/* ---- consumer -------------------------------------------------------------------------------- */

/* Returns true if a packet has arrived. */
static inline bool kbi_link_arrived(const struct kbi_links *l)
{
	for (unsigned k = 0; k < l->n; k++)
		if ((uint32_t)a_load_rlx(&l->tail[k]) != l->taken[k])
			return true;
	return false;
}

/* Any VP: returns true if packets have not been taken yet: a hint. */
static inline bool kbi_link_untaken(const struct kbi_links *l)
{
	for (unsigned k = 0; k < l->n; k++)
		if ((uint32_t)a_load_rlx(&l->tail[k]) != a_load_rlx(&l->head[k]))
			return true;
	return false;
}

/* Any VP: returns the number of tasks ever sent to this VP. Relaxed: only a number. */
static inline uint32_t kbi_link_sent(const struct kbi_links *l)
{
	uint32_t sum = 0;

	for (unsigned k = 0; k < l->n; k++)
		sum += (uint32_t)(a_load_rlx(&l->tail[k]) >> 32);
	return sum;
}

/* Owner: returns how many tasks wait in the links. The caller includes them in the load that it
 * publishes. */
static inline uint32_t kbi_link_count(struct kbi_links *l)
{
	uint32_t sent = kbi_link_sent(l);

	a_store_rlx(&l->counted, sent);
	return sent - a_load_rlx(&l->taken_tasks);
}

/* Any VP: returns how many tasks wait in the links: a hint. */
static inline uint32_t kbi_link_waiting(const struct kbi_links *l)
{
	int32_t n = (int32_t)(kbi_link_sent(l) - a_load_rlx(&l->taken_tasks));

	return n > 0 ? (uint32_t)n : 0;
}

/* Any VP: returns how many tasks are on their way to this VP and not in its published load. */
static inline uint32_t kbi_link_coming(const struct kbi_links *l)
{
	int32_t n = (int32_t)(kbi_link_sent(l) - a_load_rlx(&l->counted));

	return n > 0 ? (uint32_t)n : 0;
}

/* Takes the next packet of at most `most` tasks. Returns false if there is none. The packet's
 * slot stays in use until kbi_link_release. */
bool kbi_link_take(struct kbi_links *l, uint32_t most, struct kbi_packet *p);
void kbi_link_release(struct kbi_links *l);

/* ---- producer: `from`: its own links; `to`: the links of the VP that link k leads to --------- */

/* Returns the number of free slots; KBI_LINK_SLOTS: the consumer has taken every packet. */
static inline uint32_t kbi_link_room(const struct kbi_links *from, const struct kbi_links *to,
	unsigned k)
{
	return kbi_ring_room(&to->head[k], (uint32_t)from->put[k], KBI_LINK_SLOTS);
}

/* Puts a packet into the link, which must have room. No VP sees it until kbi_link_publish. */
static inline void kbi_link_put(struct kbi_links *from, struct kbi_links *to, unsigned k,
	struct kbi_packet p)
{
	to->slot[k][(uint32_t)from->put[k] % KBI_LINK_SLOTS] = p;
	from->put[k] = ((from->put[k] >> 32) + p.n) << 32 | (uint32_t)(from->put[k] + 1);
}

/* Publishes the packets put so far. release: pairs with the acquire in kbi_link_take. The caller
 * then fences and looks which VPs sleep. */
static inline void kbi_link_publish(const struct kbi_links *from, struct kbi_links *to, unsigned k)
{
	a_store_rel(&to->tail[k], from->put[k]);
}

#endif
