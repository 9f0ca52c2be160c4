/* mem/stack.h - stacks of threads: mapped without memory (pages come on first use), pooled last in
 * first out per VP and class, with a guard page below that costs no mapping of its own where the
 * kernel can do that (MADV_GUARD_INSTALL).
 *
 * A stack's record lies at its top, in the page that its first frame uses. For a thread with own
 * TLS, the TLS block and the control block (TCB) lie at the top, too, and stay there for the life
 * of the stack. A slot is a VP's own store of stacks: slot 0 is for callers that are no VP (under a
 * lock), slot 1 + id for VP id (only that VP).
 *
 * Callers: core. Never switches. Runs inside no-preempt (np) brackets. Locks: slot 0's, then the
 * pool's. */
#ifndef KBI_STACK_H
#define KBI_STACK_H

#include <errno.h>

#include "mem/stack_make.h"

/* Allocates the pools of `slots` slots. 0 or ENOMEM. Called once, at start. */
int kbi_stack_setup(unsigned slots);
/* Returns the class of stacks of at least `size` bytes, with or without a control block; -1: more
 * than any machine has. */
int kbi_stack_class(size_t size, bool tcb);
/* Returns the usable bytes of a class's stacks. */
size_t kbi_stack_class_size(int class);
/* A slot's store of one class. The creation and the end of a thread touch only this cache line. */
enum { KBI_STACK_CACHE = 256 /* a slot gives away half of a longer list */ };
struct kbi_stack_list {
	struct kbi_stack *free;
	uint32_t n;
	int32_t credit; /* promises that the slot may still make */
};
struct kbi_stack_slot {
	struct kbi_stack_list list[KBI_STACK_CLASSES];
	/* value of kbi_stack_reclaim_wanted at the last reclaim; written by its caller */
	a32 reclaim_seen;
} KBI_ALIGNED(KBI_CACHE_LINE);
extern struct kbi_stack_slot *kbi_stack_slots;

/* Takes a stack from the slot's pool. Without control block: keeps a promise, and may map a new
 * stack. With control block: no promise was made; takes a free block that is promised to no
 * thread. NULL: there is none. A control block belongs to nobody until its self is set. */
struct kbi_stack *kbi_stack_get_slow(unsigned slot, int class);
void kbi_stack_put_slow(unsigned slot, struct kbi_stack *s);
/* Promises a stack of this class to a thread, for its first run on any VP; maps address space
 * ahead for stacks without control block. ENOMEM: nothing to promise; for stacks with control
 * block: no free one. A promise of address space lasts until kbi_stack_unreserve_slow, or
 * kbi_stack_put_promised, at the thread's end. A promise of a control block lasts until
 * kbi_stack_redeem; if the thread never runs, kbi_stack_unreserve_slow takes it back. */
int kbi_stack_reserve_slow(unsigned slot, int class);
void kbi_stack_unreserve_slow(unsigned slot, int class);
/* Takes a stack, or makes it with its control block: np is 0, or the caller is no thread. NULL:
 * none. */
struct kbi_stack *kbi_stack_get_or_make(int class);
/* Takes the control block that was promised, where the slot's pool has none. NULL: a process was
 * killed while it moved the block. */
struct kbi_stack *kbi_stack_redeem_slow(unsigned slot, int class);

/* In the child of fork: leaves alone (leaks) what another thread of the parent held locked, because
 * that thread does not exist in the child. */
void kbi_stack_after_fork(void);

/* The inline versions below are for a VP, on its own slot. */
static inline unsigned kbi_stack_slot_of(const struct kbi_stack_slot *s)
{
	return (unsigned)(s - kbi_stack_slots);
}

static inline struct kbi_stack *kbi_stack_get(struct kbi_stack_slot *s, int class)
{
	struct kbi_stack_list *l = &s->list[class];
	struct kbi_stack *k = l->free;

	if (kbi_unlikely(!k)) {
		/* a stack may have to be made: that must not change the errno of the creating thread */
		int before = errno;

		k = kbi_stack_get_slow(kbi_stack_slot_of(s), class);
		errno = before;
		return k;
	}
	l->free = k->next;
	l->n--;
	return k;
}

static inline void kbi_stack_put(struct kbi_stack_slot *s, struct kbi_stack *k)
{
	struct kbi_stack_list *l = &s->list[k->class];

	if (kbi_unlikely(k->user || l->n >= KBI_STACK_CACHE)) {
		kbi_stack_put_slow(kbi_stack_slot_of(s), k);
		return;
	}
	k->trimmed = 0;
	k->next = l->free;
	l->free = k;
	l->n++;
}

static inline int kbi_stack_reserve(struct kbi_stack_slot *s, int class)
{
	if (kbi_unlikely(s->list[class].credit == 0))
		return kbi_stack_reserve_slow(kbi_stack_slot_of(s), class);
	s->list[class].credit--;
	return 0;
}

/* Lets the slot make one more promise. */
static inline void kbi_stack_unreserve(struct kbi_stack_slot *s, int class)
{
	if (kbi_unlikely(s->list[class].credit >= KBI_STACK_CACHE))
		kbi_stack_unreserve_slow(kbi_stack_slot_of(s), class);
	else
		s->list[class].credit++;
}

/* Takes the slot's hottest block for a thread that was promised a control block. NULL: see
 * kbi_stack_redeem_slow. */
static inline struct kbi_stack *kbi_stack_redeem(struct kbi_stack_slot *s, int class)
{
	struct kbi_stack_list *l = &s->list[class];
	struct kbi_stack *k = l->free;

	if (kbi_unlikely(!k))
		return kbi_stack_redeem_slow(kbi_stack_slot_of(s), class);
	l->free = k->next;
	l->n--;
	/* the common block that backs the promise stays where it is */
	kbi_stack_unreserve(s, class);
	return k;
}

/* Puts the stack of a thread that has ended, and takes back the promise of its address space. */
static inline void kbi_stack_put_promised(struct kbi_stack_slot *s, struct kbi_stack *k)
{
	if (!k->has_tcb)
		kbi_stack_unreserve(s, k->class);
	kbi_stack_put(s, k);
}

/* Returns whether a free stack, of the slot or of the common lists, was used since it was last
 * trimmed. Called by the slot's owner. */
bool kbi_stack_is_used(unsigned slot);
/* Gives the kernel the pages of a few of these stacks, except the first pages. Called by the slot's
 * owner. */
void kbi_stack_trim(unsigned slot);

/* Counts failures to find address space. After each, every slot's owner gives up the stacks that it
 * keeps, once. */
extern a32 kbi_stack_reclaim_wanted;
/* Moves all stacks and promises of the slot to the common lists. Called by the slot's owner, or by
 * a thread that keeps the owner from running; slot 0: by any thread. */
void kbi_stack_reclaim(unsigned slot);
static inline void kbi_stack_reclaim_if_wanted(unsigned slot)
{
	if (kbi_unlikely(a_load_rlx(&kbi_stack_reclaim_wanted) !=
			 a_load_rlx(&kbi_stack_slots[slot].reclaim_seen)))
		kbi_stack_reclaim(slot);
}

/* Returns whether the slot has been reclaimed since kbi_stack_reclaim_wanted had this value. */
static inline bool kbi_stack_is_reclaimed(unsigned slot, uint32_t request)
{
	/* acquire: pairs with the release in kbi_stack_reclaim; the stacks given up are visible */
	return (int32_t)(a_load_acq(&kbi_stack_slots[slot].reclaim_seen) - request) >= 0;
}

#endif
