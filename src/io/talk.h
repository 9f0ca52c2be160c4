/* io/talk.h - a conversation: the answer comes when the other thread has had its turn, and a receive before that is a
 * system call in vain. After some receives in a row that found nothing at first the next lets others run before its first
 * try. It would not see what is there already, and wait for all the turns of others all the same, so now and then it tries
 * at once, and something found ends the conversation. Callers: ready, call, posix. Calls engine, hold. */
#ifndef KBI_TALK_H
#define KBI_TALK_H

#include "base/atom.h"

struct kbi_hold;
struct kbi_task;

/* A word, 0 at first: what talks (28 bits of a key, the thread's or the number's, whichever the word is not of), and how
 * many receives in a row have confirmed it. Several threads may change one: a guess gets lost then. */
enum { KBI_TALK_COUNT = 15, KBI_TALK_SURE = 3, KBI_TALK_TRY = 8 };

static inline bool kbi_talk_is_of(uint32_t word, uint32_t key)
{
	return word / (KBI_TALK_COUNT + 1) == (key & UINT32_MAX / (KBI_TALK_COUNT + 1));
}

/* The next receive: others run first. */
static inline bool kbi_talk_is_on(a32 *talk, uint32_t key)
{
	uint32_t word = a_load_rlx(talk), n = word & KBI_TALK_COUNT;

	if (kbi_likely(n < KBI_TALK_SURE) || !kbi_talk_is_of(word, key))
		return false;
	a_store_rlx(talk, n < KBI_TALK_TRY ? word + 1 : word - n + KBI_TALK_SURE - 1);
	return n < KBI_TALK_TRY;
}

/* Nothing was there at first. */
static inline void kbi_talk_goes_on(a32 *talk, uint32_t key)
{
	uint32_t word = a_load_rlx(talk), n = word & KBI_TALK_COUNT;

	if (kbi_unlikely(!kbi_talk_is_of(word, key)))
		a_store_rlx(talk, key * (KBI_TALK_COUNT + 1) + 1);
	else if (n != KBI_TALK_SURE)
		a_store_rlx(talk, word - n + (n < KBI_TALK_SURE ? n + 1 : KBI_TALK_SURE));
}

/* Something was, or others take long. */
static inline void kbi_talk_is_over(a32 *talk, uint32_t key)
{
	uint32_t word = a_load_rlx(talk);

	if (kbi_unlikely((word & KBI_TALK_COUNT) && kbi_talk_is_of(word, key)))
		a_store_rlx(talk, 0);
}

/* Asks the kernel for events, if nobody else does: who will answer is ready then. */
void kbi_talk_ask(struct kbi_task *self);
/* Somebody else's turn may bring what is missing. asks: as above, before that; in any case where nobody else is ready.
 * self: the caller, on a VP. True: others have run. */
KBI_SWITCHES bool kbi_talk_others_run(struct kbi_task *self, bool asks);
/* The same for a call that has begun, and asks now and then. False: nobody has run. */
KBI_SWITCHES bool kbi_talk_begin(const struct kbi_hold *h);
/* What was waited for had come by then. If that goes on the engine forgets the number, which costs who sends. */
void kbi_talk_spared(const struct kbi_hold *h);
/* It has changed: a thread of this VP has computed to the end of its turn, or the caller is on another VP. */
uint32_t kbi_talk_ticks(void);

#endif
