/* sync/channel.h - the inside of a channel, for select: the record of a waiter and the steps under
 * the channel's lock. A waiting thread has a single `pick`, and a `spot` in the queue of each
 * channel for which it waits. A thread that serves the waiter claims the pick (CAS, once for all
 * its spots), so that exactly one case goes on; a spot whose pick is claimed already is stale and
 * passed over. A waiter that gives up claims its own pick: it is served or timed out, never both.
 * Spot and pick lie on the waiter's stack; the waiter takes each channel's lock to unlink its spots
 * before it returns.
 * Callers: channel.c, select.c. The lock is held inside np brackets; nothing here switches. */
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
	size_t count;  /* number of elements in the ring */
	size_t first;  /* place of the oldest element */
	struct kbi_waitq send; /* spots; unclaimed spots only while the ring is full */
	struct kbi_waitq recv; /* spots; unclaimed spots only while the ring is empty */
	unsigned char ring[];
};

struct kbi_pick {
	struct kbi_task *task; /* constant */
	a32 claimed;           /* 1: the case is decided */
	a32 done;              /* stored last, by the serving thread */
	/* written by the claimer, before done */
	size_t index;
	int error;
};

struct kbi_spot {
	struct kbi_wnode n; /* first; state QUEUED while linked, under the channel's lock */
	struct kbi_pick *pick;
	void *element;      /* source or destination */
	size_t index;       /* number of the case */
};

enum kbi_chan_way { KBI_CHAN_RECV = KB_SELECT_RECV, KBI_CHAN_SEND = KB_SELECT_SEND };

static inline void kbi_chan_lock(kb_chan_t *ch) { kbi_waitq_lock(&ch->word); }
static inline void kbi_chan_unlock(kb_chan_t *ch) { kbi_waitq_unlock(&ch->word, 0); }

/* Sends or receives an element if that is possible. Returns 0, EPIPE (closed) or EAGAIN. Stores in
 * *served the waiter that was served thereby, for kbi_chan_wake after the lock is released, or
 * NULL. Under the lock. */
int kbi_chan_try(kb_chan_t *ch, enum kbi_chan_way way, void *element, struct kbi_pick **served);
/* Queues the spot at the end; unlinks the spot if it is still linked. Under the lock. */
void kbi_chan_queue(kb_chan_t *ch, enum kbi_chan_way way, struct kbi_spot *spot);
void kbi_chan_unqueue(kb_chan_t *ch, enum kbi_chan_way way, struct kbi_spot *spot);

/* Decides the pick. False: it is decided already. */
static inline bool kbi_chan_claim(struct kbi_pick *p)
{
	uint32_t free = 0;

	/* relaxed: the data of a claimed pick comes with done; between claimers the
	 * channel's lock gives the order */
	return a_load_rlx(&p->claimed) == 0 && a_cas_rlx(&p->claimed, &free, 1);
}

/* Lets a served thread go on; p may be NULL. Not under a lock. */
static inline void kbi_chan_wake(struct kbi_pick *p)
{
	struct kbi_task *t;

	if (!p)
		return;
	t = p->task;
	/* release: pairs with the acquire of done in await_pick (channel.c) and
	 * await_select_pick (select.c): element and pick */
	a_store_rel(&p->done, 1);
	kbi_wait_wake(t);
}

#endif
