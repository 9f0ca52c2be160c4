/* core/board.h - how a wake-up from elsewhere reaches the VP that owns the waiter.
 *
 * Two roads. From VP to VP: a mailbox, one per ordered pair, single producer, single consumer, no RMW; a slot
 * carries the task (or its cell) and an 8-byte message, so that a wake-up and its message are ONE cache line on the
 * move. From anybody else, and when a mailbox is full: the board, a byte per thread and summary
 * bytes over them (64 threads a byte, 4,096, 262,144), marked bottom-up with plain release stores, idempotent,
 * any number of writers, no RMW; scanned top-down, so that detection costs O(events), not O(waiters).
 * Only the keeper of the domain reads mail, clears summaries and claims waiters. Model: model/board.pml.
 * Callers: core/wait (post, mark), core/vp and core/agent (poll). */
#ifndef KBI_BOARD_H
#define KBI_BOARD_H

#include "core/task.h"

enum { KBI_MAIL_SLOTS = 64, KBI_MAIL_MAX_VPS = 128 };

/* word: task or cell address (64-byte aligned) | LAP | kind */
enum { KBI_MAIL_LAP = 1, KBI_MAIL_CELL = 2, KBI_MAIL_NEXT = 4, KBI_MAIL_BITS = 63 };

struct kbi_mail {
	aptr word;
	a64 value;
	struct kbi_task *task; /* written before word, read after it */
	uint64_t unused;       /* two to a line */
};

struct kbi_mailbox {
	struct kbi_mail slot[KBI_MAIL_SLOTS] KBI_ALIGNED(KBI_CACHE_LINE);
	/* consumer writes, producer reads when the box looks full */
	a32 head KBI_ALIGNED(KBI_CACHE_LINE);
	/* producer only */
	uint32_t tail KBI_ALIGNED(KBI_CACHE_LINE);
	uint32_t head_seen;
};

/* A VP's board: summaries over all threads' marks. */
struct kbi_board {
	a8 *sum1;            /* [threads / 64]; what is marked below is common to all boards */
	a8 *sum2;            /* [threads / 4096] */
	a8 *sum3;            /* [threads / 262144], at most 64: one line */
	struct kbi_mailbox *in; /* [number of VPs]: from each; NULL: too many VPs, the board serves alone */
	/* [a power of two >= VPs] the consumer's place in each: address of the next slot | lap bit that it has while
	 * it is empty. A monitor peeps. Where nobody can send, a slot that stays empty */
	aptr *in_next;
	/* constant: what a look between two threads picks from, if `peeks` */
	const aptr *peek;
	uint32_t peek_mask;
	/* what a look between two threads sees at once; 0: there is nothing to be looked at */
	union {
		struct {
			a32 marked;     /* something is marked */
			uint32_t peeks; /* constant; 1: there are mailboxes */
		};
		a64 look;
	} KBI_ALIGNED(KBI_CACHE_LINE);
};

/* 0 or ENOMEM: memory for boards over `threads` descriptors; the board of VP `self`. */
int kbi_board_setup(uint32_t threads);
int kbi_board_init(struct kbi_board *b, unsigned self, unsigned nvps, uint32_t threads);

/* Producer: VP `from`'s box of `b`. False: full, nothing was sent. */
bool kbi_mail_post(struct kbi_board *b, unsigned from, struct kbi_task *t, void *what, unsigned kind,
		   uint64_t value);

/* The next slot of a place is filled. */
static inline bool kbi_mail_filled(uintptr_t place)
{
	const struct kbi_mail *m = (const struct kbi_mail *)(place & ~(uintptr_t)KBI_MAIL_LAP);

	return ((uintptr_t)a_load_rlx(&m->word) ^ place) & KBI_MAIL_LAP;
}

/* Consumer: is there mail from `from`? */
static inline bool kbi_mail_waiting(const struct kbi_board *b, unsigned from)
{
	return kbi_mail_filled((uintptr_t)a_load_rlx(&b->in_next[from]));
}

/* Consumer, only if b->peeks: a look at one mailbox; numbers in a row go round all of them. */
static inline bool kbi_mail_peek(const struct kbi_board *b, uint32_t number)
{
	return kbi_mail_filled((uintptr_t)a_load_rlx(&b->peek[number & b->peek_mask]));
}

/* Any: is there mail from anybody? Approximate for others than the keeper. */
bool kbi_board_mail_any(const struct kbi_board *b, unsigned nvps);
/* Consumer: takes one; only after kbi_mail_waiting. The task it is for; what was sent in *what. */
struct kbi_task *kbi_mail_take(struct kbi_board *b, unsigned from, void **what, unsigned *kind, uint64_t *value);

/* Any context: marks the thread on the board. The caller fences afterwards and looks
 * whether the VP sleeps. */
void kbi_board_mark(struct kbi_board *b, uint32_t index);
/* Keeper: calls found(arg, index) for each marked thread. */
void kbi_board_scan(struct kbi_board *b, void (*found)(void *arg, uint32_t index), void *arg);

#endif
