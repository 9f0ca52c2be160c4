/* space/note.h - the one waiting primitive of spaces: a word that somebody waits to see changed, and beside it `how` that
 * one waits (layout.h). The waker changes the word, fences, and does what `how` says, mostly nothing:
 *  - a lightweight thread has its VP poll the word (core/domain's watches); only if that VP sleeps the bell of its
 *    process is rung, where a kernel thread sleeps in a futex, which wakes the VP;
 *  - where many wait on a VP it polls a board (base/marks.h) instead, on which the waker marks the waiter, so that a
 *    look costs what has happened and not who waits; a message is two more lines on the move then;
 *  - a kernel thread polls by itself for a while, then sleeps in the futex on `how`.
 * No wake-up is lost. Waiter: how, fence, look at the word; a VP: asleep, fence, look at its watches. Waker: word, fence,
 * how, asleep. One of the two sees the other. A waiter stands in its place on the board before it looks at the word, and
 * its VP, which empties the board, does so only between two threads. Models: model/space.pml, model/marks.pml.
 * Callers: queue, event, recover, space. Calls core, file. */
#ifndef KBI_SPACE_NOTE_H
#define KBI_SPACE_NOTE_H

#include "core/task.h"
#include "space/layout.h"

enum { KBI_SPACE_NOTE_AT_ONCE = 8 }; /* spaces that a process may be attached to */

/* Boards that the entry of this process has from before are used again, as far as they are sound. */
void kbi_space_note_reset(struct kb_space *s);
/* This process attaches, leaves. False: too many. */
bool kbi_space_note_enter(struct kb_space *s);
void kbi_space_note_leave(struct kb_space *s);
/* A lightweight thread of this process waits for something there. */
bool kbi_space_note_any(const struct kb_space *s);
/* The NULL-free i-th of the spaces that this process is attached to; NULL: none there. */
struct kb_space *kbi_space_note_space(unsigned i);

/* Waits until *word is not `old`. 0, ETIMEDOUT; spurious never. The caller alone waits for this word. */
KBI_SWITCHES int kbi_space_note_wait(struct kb_space *s, a64 *word, a32 *how, uint64_t old, uint64_t deadline);
/* The waiter that `how`, which was h, tells of is woken. */
void kbi_space_note_wake(struct kb_space *s, a32 *how, uint32_t h);
/* The same for whoever cleans up after a waker: who has said that it wakes the waiter may have died before it did. */
void kbi_space_note_tell_again(struct kb_space *s, a32 *how);
/* Rings the bell of a process. */
void kbi_space_note_ring(struct kbi_space_proc *p);
/* Wakes the VPs of this process that watch words in their sleep. */
void kbi_space_note_rouse(void);

#define KBI_SPACE_HOW(kind, slot, number) ((uint32_t)(kind) << 28 | (uint32_t)(slot) << 20 | (uint32_t)(number))

/* After the word has been changed by a read-modify-write. */
static inline void kbi_space_note_tell(struct kb_space *s, a32 *how)
{
	uint32_t h;

	a_fence_after_rmw(); /* partner: the waiter's, and that of a VP in agent.c */
	h = a_load_rlx(how);
	if (h >> 28 == KBI_SPACE_NOBODY || h >> 28 == KBI_SPACE_SELF)
		return;
	if (kbi_likely(h >> 28 == KBI_SPACE_WATCHED) &&
	    kbi_likely(!a_load_rlx(&kbi_space_proc(s, h >> 20 & 63)->asleep[h % KBI_SPACE_VPS])))
		return;
	kbi_space_note_wake(s, how, h);
}

#endif
