/* sync/channel.c - bounded typed channels: a ring under a lock, and a queue of waiters on either
 * side. An element goes straight from a sender to a waiting receiver. First come, first served on
 * both sides: waiting senders fill the ring before later senders can. Elements are copied under the
 * lock, so their size is bounded.
 * Callers: all rooms above. Calls waitq, malloc. Send and receive may switch. */
#include "sync/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the ring, under the lock ---------------------------------------------------------------- */

static void ring_put(kb_chan_t *ch, const void *element)
{
	size_t at = ch->first + ch->count;

	if (at >= ch->capacity)
		at -= ch->capacity;
	memcpy(ch->ring + at * ch->size, element, ch->size);
	ch->count++;
}

static void ring_get(kb_chan_t *ch, void *element)
{
	memcpy(element, ch->ring + ch->first * ch->size, ch->size);
	ch->first = ch->first + 1 == ch->capacity ? 0 : ch->first + 1;
	ch->count--;
}

/* ---- waiters, under the lock ----------------------------------------------------------------- */

static inline struct kbi_waitq *chan_waiters(kb_chan_t *ch, enum kbi_chan_way way)
{
	return way == KBI_CHAN_SEND ? &ch->send : &ch->recv;
}

void kbi_chan_queue(kb_chan_t *ch, enum kbi_chan_way way, struct kbi_spot *spot)
{
	spot->n.rank = 0;
	a_store_rlx(&spot->n.state, KBI_WNODE_QUEUED);
	kbi_waitq_append(chan_waiters(ch, way), &spot->n);
}

void kbi_chan_unqueue(kb_chan_t *ch, enum kbi_chan_way way, struct kbi_spot *spot)
{
	if (a_load_rlx(&spot->n.state) == KBI_WNODE_QUEUED)
		kbi_waitq_take(chan_waiters(ch, way), &spot->n);
}

/* Claims the first waiter that no thread has claimed. Returns its spot, unlinked, or
 * NULL. Unlinks stale spots. */
static struct kbi_spot *claim_first(struct kbi_waitq *q)
{
	while (q->head) {
		struct kbi_spot *spot = (struct kbi_spot *)kbi_waitq_take_first(q);

		if (kbi_chan_claim(spot->pick)) {
			spot->pick->index = spot->index;
			spot->pick->error = 0;
			return spot;
		}
	}
	return NULL;
}

static int try_send(kb_chan_t *ch, const void *element, struct kbi_pick **served)
{
	struct kbi_spot *receiver;

	if (ch->closed)
		return EPIPE;
	receiver = claim_first(&ch->recv);
	if (receiver) {
		memcpy(receiver->element, element, ch->size);
		*served = receiver->pick;
		return 0;
	}
	if (ch->count == ch->capacity)
		return EAGAIN;
	ring_put(ch, element);
	return 0;
}

static int try_recv(kb_chan_t *ch, void *element, struct kbi_pick **served)
{
	struct kbi_spot *sender;

	if (ch->count > 0) {
		ring_get(ch, element);
		sender = claim_first(&ch->send);
		if (sender)
			ring_put(ch, sender->element);
	} else {
		sender = claim_first(&ch->send);
		if (!sender)
			return ch->closed ? EPIPE : EAGAIN;
		memcpy(element, sender->element, ch->size);
	}
	*served = sender ? sender->pick : NULL;
	return 0;
}

int kbi_chan_try(kb_chan_t *ch, enum kbi_chan_way way, void *element, struct kbi_pick **served)
{
	*served = NULL;
	return way == KBI_CHAN_SEND ? try_send(ch, element, served) : try_recv(ch, element, served);
}

/* ---- send and receive ------------------------------------------------------------------------ */

static int try_transfer(kb_chan_t *ch, enum kbi_chan_way way, void *element)
{
	struct kbi_task *self = kbi_waitq_self();
	struct kbi_pick *served;
	int rc;

	kbi_np_enter(self);
	kbi_chan_lock(ch);
	rc = kbi_chan_try(ch, way, element, &served);
	kbi_chan_unlock(ch);
	kbi_chan_wake(served);
	kbi_np_leave(self);
	return rc;
}

/* Waits until the pick is served (returns its error) or until ends the wait. */
static int await_pick(struct kbi_pick *pick, struct kbi_until until)
{
	/* acquire: pairs with the release in kbi_chan_wake */
	while (!a_load_acq(&pick->done)) {
		int rc = kbi_waitq_sleep(pick->task, until);

		if (rc && kbi_chan_claim(pick))
			return rc;
		if (rc)
			until = kbi_waitq_until_handling(KBI_FOREVER);
	}
	return pick->error;
}

static int transfer_element(kb_chan_t *ch, enum kbi_chan_way way, void *element,
	struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	struct kbi_pick pick = { .task = self }, *served;
	struct kbi_spot spot = { .pick = &pick, .element = element };
	int rc;

	kbi_np_enter(self);
	kbi_chan_lock(ch);
	rc = kbi_chan_try(ch, way, element, &served);
	if (rc == EAGAIN)
		kbi_chan_queue(ch, way, &spot);
	kbi_chan_unlock(ch);
	kbi_chan_wake(served);
	kbi_np_leave(self);
	if (rc != EAGAIN)
		return rc;
	rc = await_pick(&pick, until);
	if (rc == 0 || rc == EPIPE)
		return rc;
	/* the caller gave up: the spot may still be linked */
	kbi_np_enter(self);
	kbi_chan_lock(ch);
	kbi_chan_unqueue(ch, way, &spot);
	kbi_chan_unlock(ch);
	kbi_np_leave(self);
	return rc;
}

int kb_chan_send(kb_chan_t *ch, const void *element)
{
	return transfer_element(ch, KBI_CHAN_SEND, (void *)element,
		kbi_waitq_until_handling(KBI_FOREVER));
}

int kb_chan_recv(kb_chan_t *ch, void *element)
{
	return transfer_element(ch, KBI_CHAN_RECV, element, kbi_waitq_until_handling(KBI_FOREVER));
}

int kb_chan_timedsend(kb_chan_t *ch, const void *element, uint64_t deadline)
{
	return transfer_element(ch, KBI_CHAN_SEND, (void *)element,
		kbi_waitq_until_handling(deadline));
}

int kb_chan_timedrecv(kb_chan_t *ch, void *element, uint64_t deadline)
{
	return transfer_element(ch, KBI_CHAN_RECV, element, kbi_waitq_until_handling(deadline));
}

int kb_chan_trysend(kb_chan_t *ch, const void *element)
{
	return try_transfer(ch, KBI_CHAN_SEND, (void *)element);
}

int kb_chan_tryrecv(kb_chan_t *ch, void *element)
{
	return try_transfer(ch, KBI_CHAN_RECV, element);
}

/* ---- life ------------------------------------------------------------------------------------ */

int kb_chan_create(kb_chan_t **out, size_t element_size, size_t capacity)
{
	kb_chan_t *ch;

	if (element_size == 0 || element_size > KBI_CHAN_ELEMENT_MAX)
		return EINVAL;
	if (capacity > (SIZE_MAX / 2 - sizeof *ch) / element_size)
		return ENOMEM;
	ch = malloc(sizeof *ch + element_size * capacity);
	if (!ch)
		return ENOMEM;
	*ch = (kb_chan_t){ .size = element_size, .capacity = capacity };
	*out = ch;
	return 0;
}

void kb_chan_destroy(kb_chan_t *ch)
{
	free(ch);
}

/* Fails all waiters of the queue with EPIPE. Chains them by next, for
 * kb_chan_close. Under the lock. */
static void fail_all(struct kbi_waitq *q, struct kbi_wnode **chain)
{
	struct kbi_spot *spot;

	while ((spot = claim_first(q))) {
		spot->pick->error = EPIPE;
		spot->n.next = *chain;
		*chain = &spot->n;
	}
}

int kb_chan_close(kb_chan_t *ch)
{
	struct kbi_task *self = kbi_waitq_self();
	struct kbi_wnode *chain = NULL;
	bool was;

	kbi_np_enter(self);
	kbi_chan_lock(ch);
	was = ch->closed;
	ch->closed = true;
	fail_all(&ch->recv, &chain);
	fail_all(&ch->send, &chain);
	kbi_chan_unlock(ch);
	while (chain) {
		struct kbi_pick *pick = ((struct kbi_spot *)chain)->pick;

		chain = chain->next;
		kbi_chan_wake(pick);
	}
	kbi_np_leave(self);
	return was ? EPIPE : 0;
}

size_t kb_chan_length(kb_chan_t *ch)
{
	struct kbi_task *self = kbi_waitq_self();
	size_t n;

	kbi_np_enter(self);
	kbi_chan_lock(ch);
	n = ch->count;
	kbi_chan_unlock(ch);
	kbi_np_leave(self);
	return n;
}
