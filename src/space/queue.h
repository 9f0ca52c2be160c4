/* space/queue.h - waiting at an object: its lock, its two queues of records, and the loop that all operations are.
 * An operation is tried under the object's lock; if it cannot be done its thread stands in a queue, and tries again
 * when it has been woken. So a wake-up decides nothing, and none that is lost with a process matters: who cleans up wakes
 * everybody. Inside np brackets while the lock is held; never across a switch. Callers: the objects, recover. */
#ifndef KBI_SPACE_QUEUE_H
#define KBI_SPACE_QUEUE_H

#include "core/wait.h"
#include "space/note.h"

enum { KBI_SPACE_WAKES = 16 };

struct kbi_space_op {
	struct kb_space *s;
	struct kbi_space_thing *t;
	const struct kbi_space_hold *h; /* of channels */
	/* Under the lock: 0, EAGAIN (waits), or an error. It may name those to be woken (kbi_space_queue_call) */
	int (*try)(struct kbi_space_op *op);
	/* Under the lock, after the caller has given up; may be NULL. */
	void (*gave_up)(struct kbi_space_op *op);
	void *arg;
	uint64_t value;
	unsigned queue; /* where it waits */
	unsigned tries;
	bool stuck;     /* the lock could not be had at the last try */
	/* to be told once the lock is free */
	unsigned n_wakes;
	struct kbi_space_record *wake[KBI_SPACE_WAKES];
};

/* A record of this process for a wait. */
struct kbi_space_seat {
	struct kbi_space_record *r;
	uint32_t ref;
};

/* 0; ETIMEDOUT: the deadline (0: none) has come; EPROTO: its holder has not given it back for a long time. */
int kbi_space_queue_lock(struct kb_space *s, struct kbi_space_thing *t, uint64_t deadline);
/* For a thread that gives up waiting and should leave the queue: soon, or not at all. */
int kbi_space_queue_lock_soon(struct kb_space *s, struct kbi_space_thing *t);
static inline void kbi_space_queue_unlock(struct kbi_space_thing *t)
{
	/* release: partner is the acquire in kbi_space_queue_lock */
	a_store_rel(&t->lock, 0);
}

/* Under the lock. */
void kbi_space_queue_link(struct kb_space *s, struct kbi_space_thing *t, unsigned queue, const struct kbi_space_seat *seat);
void kbi_space_queue_unlink(struct kb_space *s, struct kbi_space_thing *t, unsigned queue, struct kbi_space_record *r);
static inline bool kbi_space_queue_any(const struct kbi_space_thing *t, unsigned queue)
{
	return a_load_rlx(&t->queue[queue].head);
}
/* Without the lock: may somebody stand there, or be about to? The lock is looked at first: who has given it back has queued
 * itself already. The other way round one who queues itself between the two looks is missed. */
static inline bool kbi_space_queue_maybe(struct kbi_space_thing *t, unsigned queue)
{
	/* acquire: partner is the release in kbi_space_queue_unlock */
	return a_load_acq(&t->lock) || a_load_rlx(&t->queue[queue].head);
}
/* Up to n of the first waiters are to be woken. Beyond the room in op they are told at once. */
void kbi_space_queue_call(struct kbi_space_op *op, unsigned queue, unsigned n);

/* Not under a lock. */
void kbi_space_queue_tell(struct kb_space *s, struct kbi_space_record *r);
void kbi_space_queue_tell_called(struct kbi_space_op *op);

/* A record for a wait, EAGAIN: none is left. */
int kbi_space_queue_get(struct kb_space *s, struct kbi_space_seat *seat);
void kbi_space_queue_put(struct kb_space *s, const struct kbi_space_seat *seat);
/* It may stand in a queue still, whose lock cannot be had: it is not used again. */
void kbi_space_queue_retire(struct kb_space *s);
/* Does a waiter that is woken again and again look at the clock? */
bool kbi_space_queue_is_late(unsigned tries, uint64_t deadline);
/* All records of this process's entry become free: nobody of it waits. */
void kbi_space_queue_reset(struct kb_space *s);

/* The whole operation. What try said, or ETIMEDOUT; EAGAIN: too many wait. */
KBI_SWITCHES int kbi_space_queue_do(struct kbi_space_op *op, uint64_t deadline);

#endif
