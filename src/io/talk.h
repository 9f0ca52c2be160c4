/* io/talk.h - a conversation: the answer comes when the partner thread has had its turn, and a
 * receive before that is a system call in vain. After some receives in a row that found nothing at
 * first, the next receive lets other threads run before its first try. Such a receive would not
 * notice that the answer is there already, and would still wait for the turns of all threads; so at
 * times it tries at once, and data found then end the conversation.
 * Callers: ready, call, posix. Calls engine, hold. */
#ifndef KBI_TALK_H
#define KBI_TALK_H

#include "base/atom.h"

struct kbi_hold;
struct kbi_task;

/* A word, 0 at first: the partner (28 bits of a key, of the thread or of the number, whichever the
 * word does not belong to), and how many receives in a row have confirmed it. Several threads may
 * change the word: then a guess is lost. */
enum { KBI_TALK_COUNT = 15, KBI_TALK_SURE = 3, KBI_TALK_TRY = 8 };

static inline bool kbi_talk_is_of(uint32_t word, uint32_t key)
{
	return word / (KBI_TALK_COUNT + 1) == (key & UINT32_MAX / (KBI_TALK_COUNT + 1));
}

/* Returns whether the next receive should let other threads run first; counts it. */
static inline bool kbi_talk_is_on(a32 *talk, uint32_t key)
{
	uint32_t word = a_load_rlx(talk), n = word & KBI_TALK_COUNT;

	if (kbi_likely(n < KBI_TALK_SURE) || !kbi_talk_is_of(word, key))
		return false;
	a_store_rlx(talk, n < KBI_TALK_TRY ? word + 1 : word - n + KBI_TALK_SURE - 1);
	return n < KBI_TALK_TRY;
}

/* Notes that a receive found nothing at first. */
static inline void kbi_talk_goes_on(a32 *talk, uint32_t key)
{
	uint32_t word = a_load_rlx(talk), n = word & KBI_TALK_COUNT;

	if (kbi_unlikely(!kbi_talk_is_of(word, key)))
		a_store_rlx(talk, key * (KBI_TALK_COUNT + 1) + 1);
	else if (n != KBI_TALK_SURE)
		a_store_rlx(talk, word - n + (n < KBI_TALK_SURE ? n + 1 : KBI_TALK_SURE));
}

/* Notes that a receive found data at once, or that other threads take long. */
static inline void kbi_talk_is_over(a32 *talk, uint32_t key)
{
	uint32_t word = a_load_rlx(talk);

	if (kbi_unlikely((word & KBI_TALK_COUNT) && kbi_talk_is_of(word, key)))
		a_store_rlx(talk, 0);
}

/* Asks the kernel for events, unless another VP does: then a thread that will answer is ready. */
void kbi_talk_ask(struct kbi_task *self);
/* Lets other threads run, whose turn may bring the missing data. asks: polls the kernel
 * before; polls in any case where no other thread is ready. self: the caller, on a VP.
 * True: other threads have run. */
KBI_SWITCHES bool kbi_talk_others_run(struct kbi_task *self, bool asks);
/* As kbi_talk_others_run for a call that has begun; asks at times. False:
 * no other thread has run. */
KBI_SWITCHES bool kbi_talk_begin(const struct kbi_hold *h);
/* Notes that the data had come by then. If that goes on, the engine forgets the number, whose
 * arming costs the sender time. */
void kbi_talk_spared(const struct kbi_hold *h);
/* Returns a number that changes when a thread of this VP has computed to the end of its turn, or
 * when the caller is on a different VP. */
uint32_t kbi_talk_ticks(void);

#endif
