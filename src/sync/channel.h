/* sync/channel.h - the inside of a channel, for select: what a waiter is and the steps under the
 * channel's lock.
 *
 * A waiting thread has one `pick` and a `spot` in the queue of each channel it waits for. Whoever serves
 * it claims the pick (CAS, once for all its spots), so that exactly one case goes on; a spot whose pick
 * is claimed already is stale and passed over. A thread that gives up claims its own pick: served or
 * timed out, never both. Spot and pick lie on the waiter's stack; it takes each channel's lock to unlink
 * its spots before it returns.
 * Callers: channel.c, select.c. */
#ifndef KBI_CHANNEL_H
#define KBI_CHANNEL_H

#include <kochab/sync.h>

#include "sync/waitq.h"

enum { KBI_CHAN_ELEMENT_MAX = 65536 };

struct kb_chan {
	a32 word; /* KBI_WAITQ_LOCK */
	/* constant */
	size_t size, capacity;
	/* under word */
	bool closed;
	size_t count;  /* elements in the ring */
	size_t first;  /* place of the oldest */
	struct kbi_waitq send; /* spots; unclaimed ones only while the ring is full */
	struct kbi_waitq recv; /* spots; unclaimed ones only while the ring is empty */
	unsigned char ring[];
};

struct kbi_pick {
	struct kbi_task *task; /* constant */
	a32 claimed;           /* 1: its case is decided */
	a32 done;              /* stored last by who served it */
	/* by who claimed it, before done */
	size_t index;
	int error;
};

struct kbi_spot {
	struct kbi_wnode n; /* first; state QUEUED while linked, under the channel's lock */
	struct kbi_pick *pick;
	void *element;      /* where from or where to */
	size_t index;       /* of the case */
};

enum kbi_chan_way { KBI_CHAN_RECV = KB_SELECT_RECV, KBI_CHAN_SEND = KB_SELECT_SEND };

static inline void kbi_chan_lock(kb_chan_t *ch) { kbi_waitq_lock(&ch->word); }
static inline void kbi_chan_unlock(kb_chan_t *ch) { kbi_waitq_unlock(&ch->word, 0); }

/* Under the lock. Sends or receives one element if that is possible: 0, EPIPE, or EAGAIN. *served: who
 * has been served thereby, for kbi_chan_wake after the lock is released, or NULL. */
int kbi_chan_try(kb_chan_t *ch, enum kbi_chan_way way, void *element, struct kbi_pick **served);
/* Under the lock: queues the spot at the end, or unlinks it if it still is. */
void kbi_chan_queue(kb_chan_t *ch, enum kbi_chan_way way, struct kbi_spot *spot);
void kbi_chan_unqueue(kb_chan_t *ch, enum kbi_chan_way way, struct kbi_spot *spot);

/* Decides the pick; false: it is decided. */
static inline bool kbi_chan_claim(struct kbi_pick *p)
{
	uint32_t free = 0;

	/* relaxed: a claimed pick's data comes with done; between claimers the channel's lock orders it */
	return a_load_rlx(&p->claimed) == 0 && a_cas_rlx(&p->claimed, &free, 1);
}

/* Lets a served thread go on; NULL is allowed. Not under a lock. */
static inline void kbi_chan_wake(struct kbi_pick *p)
{
	struct kbi_task *t;

	if (!p)
		return;
	t = p->task;
	/* release: partner is the acquire of who waits for done: the element and the pick's fields */
	a_store_rel(&p->done, 1);
	kbi_wait_wake(t);
}

#endif
