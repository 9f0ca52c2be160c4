/* sync/lost.h - objects that a lost thread (core/contain) holds are given up for their waiters. A
 * waiter announces its object in its `awaits`, at an address that no cell has, and then checks
 * whether the holder is lost. A lost thread, once it is known to be lost, looks for waiters. One of
 * the two sees the other's step.
 * Callers: mutex, rwlock. Calls contain. Never switches. */
#ifndef KBI_LOST_H
#define KBI_LOST_H

#include "core/contain.h"

/* The lowest bits of such an `awaits`. */
enum kbi_lost_kind { KBI_LOST_MUTEX = 1, KBI_LOST_RWLOCK, KBI_LOST_KINDS };

struct kbi_lost_how {
	/* A thread waits for the object: gives the object up if the lost thread t holds it. */
	void (*wanted)(void *object, const struct kb_thread *t);
	/* Gives up all objects of this kind that t holds, with or without waiters. NULL: the unit does
	 * not know a thread's objects. */
	void (*held)(struct kb_thread *t);
};

/* Registers the functions of a kind; its unit calls this from its first use on. */
void kbi_lost_know(enum kbi_lost_kind kind, const struct kbi_lost_how *how);

/* Announces that t is about to wait for the object. The caller then issues a full
 * fence and checks the holder. */
void kbi_lost_say(struct kbi_task *t, void *object, enum kbi_lost_kind kind,
	const struct kbi_lost_how *how);
/* Withdraws the announcement of the caller. When this returns, no lost thread looks at the object
 * on the caller's behalf. */
void kbi_lost_say_no_more(struct kbi_task *self);

/* Returns the thread with this index if it is lost, else NULL. */
struct kb_thread *kbi_lost_at(uint32_t index);
/* Reports that a thread wants an object which the lost thread t held: ends the program, or returns,
 * by the option on_crash. */
void kbi_lost_complain(const char *what, const void *object, const struct kb_thread *t);

#endif
