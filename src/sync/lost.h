/* sync/lost.h - what a thread that is lost (core/contain) held is given up for those who want it.
 * Who waits for an object says so, in its `awaits`, where no cell has such an address, and then looks whether the holder
 * is lost; who is lost looks, after it is known to be, who waits: one of the two sees the other.
 * Callers: mutex, rwlock. Calls contain. */
#ifndef KBI_LOST_H
#define KBI_LOST_H

#include "core/contain.h"

/* The lowest bits of what `awaits` says then. */
enum kbi_lost_kind { KBI_LOST_MUTEX = 1, KBI_LOST_RWLOCK, KBI_LOST_KINDS };

struct kbi_lost_how {
	/* Somebody waits for the object: if t, which is lost, holds it, it does no more. */
	void (*wanted)(void *object, const struct kb_thread *t);
	/* Whatever t holds of this kind, whether somebody waits or not. NULL: nothing is known of that. */
	void (*held)(struct kb_thread *t);
};

/* Each unit's, from its first use on. */
void kbi_lost_know(enum kbi_lost_kind kind, const struct kbi_lost_how *how);

/* t is about to wait for the object. A full fence follows, and the look at its holder. */
void kbi_lost_say(struct kbi_task *t, void *object, enum kbi_lost_kind kind, const struct kbi_lost_how *how);
/* The caller does not wait any more; nobody looks at the object for its sake when this returns. */
void kbi_lost_say_no_more(struct kbi_task *self);

/* The thread with this index, if it is lost; else NULL. */
struct kb_thread *kbi_lost_at(uint32_t index);
/* Somebody wants the object, which t has held: the program ends, or returns, as the option on_crash says. */
void kbi_lost_complain(const char *what, const void *object, const struct kb_thread *t);

#endif
