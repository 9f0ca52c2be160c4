/* space/chan.c - bounded channels. Contract in kochab/space.h. A ring under the object's lock: an element is there, or
 * gone, by one store, after it has been copied. Queue 0: receivers, 1: senders. */
#include "space/chan.h"

#include <string.h>

enum { MOST = 65536 };

int kb_space_chan_open(kb_space_t *s, const char *name, size_t element_size, size_t capacity, unsigned ends,
		       kb_space_chan_t **chan)
{
	struct kbi_space_wish w = {
		.type = KBI_SPACE_CHAN,
		.size = (uint32_t)element_size,
		.capacity = capacity,
		.ends = ends,
	};

	if (!element_size || element_size > MOST || !capacity || capacity > s->head->limit / element_size || !ends ||
	    ends & ~(unsigned)(KB_SPACE_RECV | KB_SPACE_SEND))
		return EINVAL;
	w.buffer = (uint64_t)element_size * capacity;
	return kbi_space_thing_open(s, name, &w, (struct kbi_space_thing **)chan);
}

static void *element_at(const struct kbi_space_op *op, uint64_t number)
{
	return kbi_space_place(op->s, op->t->buffer + number % op->t->capacity * op->t->size);
}

static inline void copy(void *to, const void *from, uint32_t n)
{
	if (kbi_likely(n == 8))
		memcpy(to, from, 8);
	else
		memcpy(to, from, n);
}

static int put(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;
	int gone = kbi_space_thing_gone(t, 0);

	if (!(a_load_rlx(&t->ends[1]) >> op->s->slot & 1))
		return EPIPE;
	if (gone)
		return gone;
	if (t->chan.tail - t->chan.head == t->capacity)
		return EAGAIN;
	copy(element_at(op, t->chan.tail), op->arg, t->size);
	kbi_compiler_barrier(); /* who cleans up after our death sees a whole element or none */
	t->chan.tail++;
	kbi_space_queue_call(op, 0, 1);
	return 0;
}

static int get(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;
	int gone;

	if (!(a_load_rlx(&t->ends[0]) >> op->s->slot & 1))
		return EPIPE;
	if (t->chan.tail == t->chan.head) {
		gone = kbi_space_thing_gone(t, 1);
		return gone ? gone : EAGAIN;
	}
	copy(op->arg, element_at(op, t->chan.head), t->size);
	kbi_compiler_barrier();
	t->chan.head++;
	kbi_space_queue_call(op, 1, 1);
	return 0;
}

void kbi_space_chan_op(struct kbi_space_op *op, struct kbi_space_thing *t, unsigned queue, void *element)
{
	op->s = kbi_space_of(t);
	op->t = t;
	op->try = queue ? put : get;
	op->gave_up = NULL;
	op->arg = element;
	op->queue = queue;
	op->n_wakes = op->tries = 0;
}

void kbi_space_chan_renew(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;

	if (op->queue ? t->chan.tail - t->chan.head < t->capacity : t->chan.tail != t->chan.head)
		kbi_space_queue_call(op, op->queue, 1);
}

int kb_space_chan_send(kb_space_chan_t *chan, const void *element, uint64_t deadline)
{
	struct kbi_space_op op;

	kbi_space_chan_op(&op, (struct kbi_space_thing *)chan, 1, (void *)(uintptr_t)element);
	return kbi_space_queue_do(&op, deadline);
}

int kb_space_chan_recv(kb_space_chan_t *chan, void *element, uint64_t deadline)
{
	struct kbi_space_op op;

	kbi_space_chan_op(&op, (struct kbi_space_thing *)chan, 0, element);
	return kbi_space_queue_do(&op, deadline);
}

int kb_space_chan_close(kb_space_chan_t *chan, unsigned ends)
{
	return kbi_space_thing_leave((struct kbi_space_thing *)chan, ends);
}

size_t kb_space_chan_length(kb_space_chan_t *chan)
{
	struct kbi_space_thing *t = (struct kbi_space_thing *)chan;
	struct kb_space *s = kbi_space_of(t);
	struct kbi_task *self = kbi_self();
	uint64_t n;

	kbi_np_enter(self);
	kbi_space_queue_lock(s, t);
	n = t->chan.tail - t->chan.head;
	kbi_space_queue_unlock(t);
	kbi_np_leave(self);
	return (size_t)n;
}
