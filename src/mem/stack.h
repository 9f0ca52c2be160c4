/* mem/stack.h - stacks: mapped sparse, pooled hot (last in, first out) per VP slot and class, with a guard page
 * below that costs no mapping of its own where the kernel can (MADV_GUARD_INSTALL).
 * A stack's record lies at its top, in the page its first frame uses. With a control block (own TLS), TLS and
 * TCB lie at the top too and stay with the slab for its life.
 * Slots: 0 is for callers that are no VP (under a lock), 1 + id for VP id (that VP only).
 * Callers: core. Calls os. Never switches. Inside np brackets. */
#ifndef KBI_STACK_H
#define KBI_STACK_H

#include <errno.h>

#include "mem/stack_make.h"

/* Memory for the pools of `slots` slots. ENOMEM. */
int kbi_stack_setup(unsigned slots);
/* The class of stacks of at least `size` bytes, with a control block or without; -1: more than any machine has. */
int kbi_stack_class(size_t size, bool tcb);
/* Usable bytes of a class's stacks. */
size_t kbi_stack_class_size(int class);
/* What a slot keeps of a class: one line has all that a thread's life touches. */
enum { KBI_STACK_CACHE = 256 /* a slot's list is cut above this */ };
struct kbi_stack_list {
	struct kbi_stack *free;
	uint32_t n;
	int32_t credit; /* promises to keep */
};
struct kbi_stack_slot {
	struct kbi_stack_list list[KBI_STACK_CLASSES];
	a32 hunger_seen; /* written by who surrenders the slot */
} KBI_ALIGNED(KBI_CACHE_LINE);
extern struct kbi_stack_slot *kbi_stack_slots;

/* A stack from the slot's pool; without control block a new stack, too. NULL: there is none. A control block belongs to
 * nobody until its self is set. */
struct kbi_stack *kbi_stack_get_slow(unsigned slot, int class);
void kbi_stack_put_slow(unsigned slot, struct kbi_stack *s);
/* Promise that a get of this class somewhere will find address space: maps it ahead; or a control block, which is there.
 * ENOMEM. The promise is taken back by unreserve when the thread has ended. A stack that kbi_stack_fresh made for a thread
 * needs none, and is put as if it had been promised. */
int kbi_stack_reserve_slow(unsigned slot, int class);
void kbi_stack_unreserve_slow(unsigned slot, int class);
/* Both, or a new stack with all that it needs: np is 0, or the caller is no thread. NULL: none. */
struct kbi_stack *kbi_stack_get_or_make(int class);

/* In the child of fork: if somebody was at what all share, who is not there any more, the child leaves that alone. */
void kbi_stack_after_fork(void);

/* The same in line, for a VP: on its own slot. */
static inline unsigned kbi_stack_slot_of(const struct kbi_stack_slot *s)
{
	return (unsigned)(s - kbi_stack_slots);
}

static inline struct kbi_stack *kbi_stack_get(struct kbi_stack_slot *s, int class)
{
	struct kbi_stack_list *l = &s->list[class];
	struct kbi_stack *k = l->free;

	if (kbi_unlikely(!k)) {
		int before = errno; /* it may have to be made: whoever lets a new thread run does not see that */

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

/* Of a thread that was promised one and got it: both at once. */
static inline void kbi_stack_put_promised(struct kbi_stack_slot *s, struct kbi_stack *k)
{
	if (kbi_unlikely(s->list[k->class].credit >= KBI_STACK_CACHE))
		kbi_stack_unreserve_slow(kbi_stack_slot_of(s), k->class);
	else
		s->list[k->class].credit++;
	kbi_stack_put(s, k);
}

/* Is there a free stack, of the slot's or of nobody's, that was used since kbi_stack_trim? The slot's owner. */
bool kbi_stack_is_used(unsigned slot);
/* Gives back the pages of some such stacks beyond the first ones. The slot's owner. */
void kbi_stack_trim(unsigned slot);

/* Somebody has found no address space: each slot's owner then gives up what it keeps for itself, once. */
extern a32 kbi_stack_hunger;
/* The slot's owner, or who holds off the owner; slot 0: anybody. All its stacks and promises become common. */
void kbi_stack_surrender(unsigned slot);
static inline void kbi_stack_surrender_if_asked(unsigned slot)
{
	if (kbi_unlikely(a_load_rlx(&kbi_stack_hunger) != a_load_rlx(&kbi_stack_slots[slot].hunger_seen)))
		kbi_stack_surrender(slot);
}

/* Has the slot been surrendered since the hunger had this value? */
static inline bool kbi_stack_has_surrendered(unsigned slot, uint32_t hunger)
{
	/* acquire: partner is the release in kbi_stack_surrender */
	return (int32_t)(a_load_acq(&kbi_stack_slots[slot].hunger_seen) - hunger) >= 0;
}

#endif
