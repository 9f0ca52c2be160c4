/* space/chan.c - bounded channels. Contract in kochab/space.h and chan.h. A ring under the object's
 * lock: an element is there, or gone, by a single store, after the copy.
 * Queue 0: receivers, 1: senders.
 * Callers: programs, select. Calls queue, thing. Only send and receive may switch. */
#include "space/chan.h"

#include <string.h>

enum { MOST = 65536 };

int kb_space_chan_open(kb_space_t *s, const char *name, size_t element_size, size_t capacity,
	unsigned ends, kb_space_chan_t **chan)
{
	struct kbi_space_wish w = {
		.type = KBI_SPACE_CHAN,
		.size = (uint32_t)element_size,
		.capacity = capacity,
		.ends = ends,
	};

	if (!element_size || element_size > MOST || !capacity || capacity > s->limit / element_size ||
			!ends || ends & ~(unsigned)(KB_SPACE_RECV | KB_SPACE_SEND))
		return EINVAL;
	w.buffer = (uint64_t)element_size * capacity;
	return kbi_space_thing_open(s, name, &w, (struct kbi_space_hold **)chan);
}

static void *element_at(const struct kbi_space_op *op, uint64_t number)
{
	return op->h->buffer + number % op->h->capacity * op->h->size;
}

static inline void copy_element(void *to, const void *from, uint32_t n)
{
	if (kbi_likely(n == 8))
		memcpy(to, from, 8);
	else
		memcpy(to, from, n);
}

static int try_put_element(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;
	uint64_t tail = KBI_SPACE_ONCE(t->chan.tail), n = tail - KBI_SPACE_ONCE(t->chan.head);
	int gone = kbi_space_thing_gone(t, 0);

	if (!(a_load_rlx(&t->ends[1]) >> op->s->slot & 1))
		return EPIPE;
	if (gone)
		return gone;
	if (n >= op->h->capacity)
		return n == op->h->capacity ? EAGAIN : EPROTO;
	copy_element(element_at(op, tail), op->arg, op->h->size);
	/* a process that cleans up after our death sees a whole element or none */
	kbi_compiler_barrier();
	t->chan.tail = tail + 1;
	kbi_space_queue_call(op, 0, 1);
	return 0;
}

static int try_get_element(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;
	uint64_t head = KBI_SPACE_ONCE(t->chan.head), n = KBI_SPACE_ONCE(t->chan.tail) - head;
	int gone;

	if (!(a_load_rlx(&t->ends[0]) >> op->s->slot & 1))
		return EPIPE;
	if (n == 0) {
		gone = kbi_space_thing_gone(t, 1);
		return gone ? gone : EAGAIN;
	}
	if (n > op->h->capacity)
		return EPROTO;
	copy_element(op->arg, element_at(op, head), op->h->size);
	kbi_compiler_barrier();
	t->chan.head = head + 1;
	kbi_space_queue_call(op, 1, 1);
	return 0;
}

void kbi_space_chan_op(struct kbi_space_op *op, struct kbi_space_hold *h, unsigned queue,
	void *element)
{
	op->s = h->s;
	op->t = h->t;
	op->h = h;
	op->try = queue ? try_put_element : try_get_element;
	op->gave_up = NULL;
	op->arg = element;
	op->queue = queue;
	op->n_wakes = op->tries = 0;
}

void kbi_space_chan_renew(struct kbi_space_op *op)
{
	uint64_t n = KBI_SPACE_ONCE(op->t->chan.tail) - KBI_SPACE_ONCE(op->t->chan.head);

	if (op->queue ? n < op->h->capacity : n != 0)
		kbi_space_queue_call(op, op->queue, 1);
}

int kb_space_chan_send(kb_space_chan_t *chan, const void *element, uint64_t deadline)
{
	struct kbi_space_op op;

	kbi_space_chan_op(&op, (struct kbi_space_hold *)chan, 1, (void *)(uintptr_t)element);
	return kbi_space_queue_do(&op, deadline);
}

int kb_space_chan_recv(kb_space_chan_t *chan, void *element, uint64_t deadline)
{
	struct kbi_space_op op;

	kbi_space_chan_op(&op, (struct kbi_space_hold *)chan, 0, element);
	return kbi_space_queue_do(&op, deadline);
}

int kb_space_chan_close(kb_space_chan_t *chan, unsigned ends)
{
	return kbi_space_thing_leave((struct kbi_space_hold *)chan, ends);
}

size_t kb_space_chan_length(kb_space_chan_t *chan)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)chan;
	struct kbi_task *self = kbi_self();
	uint64_t n = 0;

	kbi_np_enter(self);
	if (!kbi_space_queue_lock(h->s, h->t, 0)) {
		n = KBI_SPACE_ONCE(h->t->chan.tail) - KBI_SPACE_ONCE(h->t->chan.head);
		kbi_space_queue_unlock(h->t);
	}
	kbi_np_leave(self);
	return n <= h->capacity ? (size_t)n : 0;
}
