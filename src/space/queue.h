/* space/queue.h - waiting at an object: its lock, its two queues of records, and the loop of all
 * operations. An operation is tried under the object's lock; if it cannot be done, its thread
 * stands in a queue, and tries again when it has been woken. So a wake-up decides nothing, and a
 * wake-up that is lost with a process does no harm: the process that cleans up wakes all waiters.
 * The lock is held inside np brackets, never across a switch.
 * Callers: the objects, recover. */
#ifndef KBI_SPACE_QUEUE_H
#define KBI_SPACE_QUEUE_H

#include "core/wait.h"
#include "space/note.h"

enum { KBI_SPACE_WAKES = 16 };

struct kbi_space_op {
	struct kb_space *s;
	struct kbi_space_thing *t;
	const struct kbi_space_hold *h; /* for channels */
	/* Tries the operation. Under the lock. Returns 0, EAGAIN (wait), or an error. May name waiters
	 * to be woken (kbi_space_queue_call). */
	int (*try)(struct kbi_space_op *op);
	/* Undoes a try after the caller has given up. Under the lock. May be NULL. */
	void (*gave_up)(struct kbi_space_op *op);
	void *arg;
	uint64_t value;
	unsigned queue; /* number of the queue to wait in */
	unsigned tries;
	bool stuck;     /* the last try could not get the lock */
	/* to be told once the lock is free */
	unsigned n_wakes;
	struct kbi_space_record *wake[KBI_SPACE_WAKES];
};

/* A record of this process, in use for a wait. */
struct kbi_space_seat {
	struct kbi_space_record *r;
	uint32_t ref;
};

/* Locks the object. Returns 0; ETIMEDOUT: the deadline (0: none) has passed; EPROTO: the holder has
 * not released the lock for a long time. */
int kbi_space_queue_lock(struct kb_space *s, struct kbi_space_thing *t, uint64_t deadline);
/* Locks for a thread that gives up waiting and should leave the queue: soon, or not at all. */
int kbi_space_queue_lock_soon(struct kb_space *s, struct kbi_space_thing *t);
static inline void kbi_space_queue_unlock(struct kbi_space_thing *t)
{
	/* release: pairs with the acquire in grab_thing_lock (queue.c) */
	a_store_rel(&t->lock, 0);
}

/* Appends the seat to a queue; unlinks a record from its queue. Under the lock. */
void kbi_space_queue_link(struct kb_space *s, struct kbi_space_thing *t, unsigned queue,
	const struct kbi_space_seat *seat);
void kbi_space_queue_unlink(struct kb_space *s, struct kbi_space_thing *t, unsigned queue,
	struct kbi_space_record *r);
static inline bool kbi_space_queue_any(const struct kbi_space_thing *t, unsigned queue)
{
	return a_load_rlx(&t->queue[queue].head);
}
/* Returns, without the lock, whether a waiter may stand in the queue or be about to. The lock is
 * read first: a thread that has released it has queued itself already. In the opposite order, a
 * waiter that queues itself between the two reads would be missed. */
static inline bool kbi_space_queue_maybe(struct kbi_space_thing *t, unsigned queue)
{
	/* acquire: pairs with the release in kbi_space_queue_unlock */
	return a_load_acq(&t->lock) || a_load_rlx(&t->queue[queue].head);
}
/* Takes up to n of the first waiters out of the queue, to be woken. Tells those
 * beyond the room in op at once. */
void kbi_space_queue_call(struct kbi_space_op *op, unsigned queue, unsigned n);

/* Tells a record, or all records in op. Not under a lock. */
void kbi_space_queue_tell(struct kb_space *s, struct kbi_space_record *r);
void kbi_space_queue_tell_called(struct kbi_space_op *op);

/* Gets a record for a wait. Returns 0, or EAGAIN: none is left. */
int kbi_space_queue_get(struct kb_space *s, struct kbi_space_seat *seat);
void kbi_space_queue_put(struct kb_space *s, const struct kbi_space_seat *seat);
/* Gives up a record that may still stand in a queue whose lock cannot be
 * had: it is not used again. */
void kbi_space_queue_retire(struct kb_space *s);
/* Returns whether the deadline has passed for a waiter that is woken again and again. Reads the
 * clock only after some tries. */
bool kbi_space_queue_is_late(unsigned tries, uint64_t deadline);
/* Makes all records of this process's entry free: no thread of the process waits. */
void kbi_space_queue_reset(struct kb_space *s);

/* Does the whole operation. Returns the result of try, or ETIMEDOUT;
 * EAGAIN: too many threads wait. */
KBI_SWITCHES int kbi_space_queue_do(struct kbi_space_op *op, uint64_t deadline);

#endif
