/* space/note.h - the waiting primitive of spaces: a word whose change a thread waits for, and
 * beside it `how`, which says that a thread waits (layout.h). The waker changes the word, fences,
 * and does what `how` says, mostly nothing:
 *  - a lightweight thread has its VP poll the word (core/domain's watches). Only if that VP sleeps,
 *    the bell of its process is rung, where a kernel thread sleeps in a futex; that thread wakes
 *    the VP;
 *  - where many threads wait on a VP, it polls a board (base/marks.h) instead, on which the waker
 *    marks the waiter: so a look costs in proportion to events and not to waiters; a message then
 *    moves two more lines;
 *  - a kernel thread polls by itself for a while, then sleeps in the futex on `how`.
 *
 * No wake-up is lost. Waiter: how, fence, look at the word; a VP: asleep, fence, look at its
 * watches. Waker: word, fence, how, asleep. One of the two sees the other's step. A waiter stands
 * in its place on the board before it looks at the word, and its VP, which empties the board, does
 * so only between two threads. Models: model/space.pml, model/marks.pml.
 * Callers: cond, event, member, queue, recover, select, space, thing. Calls core, file. */
#ifndef KBI_SPACE_NOTE_H
#define KBI_SPACE_NOTE_H

#include "sched/task.h"
#include "space/layout.h"

enum { KBI_SPACE_NOTE_AT_ONCE = 8 }; /* spaces to which a process may be attached */

/* Takes over the boards that the entry of this process has from an earlier process,
 * as far as they are sound. */
void kbi_space_note_reset(struct kb_space *s);
/* Registers a space to which this process attaches; false: too many. Removes it again. */
bool kbi_space_note_enter(struct kb_space *s);
void kbi_space_note_leave(struct kb_space *s);
/* Returns whether a lightweight thread of this process waits in the space. */
bool kbi_space_note_any(const struct kb_space *s);
/* Returns the space with number i to which this process is attached; NULL: there is none. */
struct kb_space *kbi_space_note_space(unsigned i);

/* Waits until *word is not `old`. Returns 0 or ETIMEDOUT; never spuriously. No other
 * thread waits for this word. */
KBI_SWITCHES int kbi_space_note_wait(struct kb_space *s, a64 *word, a32 *how, uint64_t old,
	uint64_t deadline);
/* Wakes the waiter that `how` names; h is the value that was read. */
void kbi_space_note_wake(struct kb_space *s, a32 *how, uint32_t h);
/* Tells again after a waker's process has died: a waker may have died after
 * it announced the wake-up. */
void kbi_space_note_tell_again(struct kb_space *s, a32 *how);
/* Rings the bell of a process. */
void kbi_space_note_ring(struct kbi_space_proc *p);
/* Wakes the VPs of this process that watch words in their sleep. */
void kbi_space_note_rouse(void);

#define KBI_SPACE_HOW(kind, slot, number) \
	((uint32_t)(kind) << 28 | (uint32_t)(slot) << 20 | (uint32_t)(number))

/* Tells the waiter, after a read-modify-write has changed the word. */
static inline void kbi_space_note_tell(struct kb_space *s, a32 *how)
{
	uint32_t h;

	/* sc: pairs with the fence in publish_waiter_how (note.c), and with that of a VP in
	 * core/agent.c */
	a_fence_after_rmw();
	h = a_load_rlx(how);
	if (h >> 28 == KBI_SPACE_NOBODY || h >> 28 == KBI_SPACE_SELF)
		return;
	if (kbi_likely(h >> 28 == KBI_SPACE_WATCHED) &&
	    kbi_likely(!a_load_rlx(&kbi_space_proc(s, h >> 20 & 63)->asleep[h % KBI_SPACE_VPS])))
		return;
	kbi_space_note_wake(s, how, h);
}

#endif
