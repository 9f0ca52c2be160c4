/* sched/board.h - how a wake-up from elsewhere reaches the VP that owns the waiter.
 *
 * From VP to VP: a mailbox, one per ordered pair, with a single producer and a single consumer,
 * without read-modify-write. A slot carries the task (or its cell) and an 8-byte message, so
 * that a wake-up and its message move ONE cache line. From any kernel thread that is no VP, and
 * when a mailbox is full: the board, a byte per thread and summary bytes over them (64, 4,096,
 * 262,144 threads a byte). A writer marks bottom-up with plain release stores; marks are
 * idempotent, and any number of writers may mark without read-modify-write. The keeper scans
 * top-down, so that detection costs O(events), not O(waiters).
 * Only the keeper of the domain reads mail, clears summaries and claims waiters. Model:
 * model/board.pml.
 * Callers: core/domain (post, mark, take, scan), core/vp and core/agent (looks). Never switches. */
#ifndef KBI_BOARD_H
#define KBI_BOARD_H

#include "sched/task.h"

enum { KBI_MAIL_SLOTS = 64, KBI_MAIL_MAX_VPS = 128 };

/* word: address of a task or cell (64-byte aligned) | LAP | kind */
enum { KBI_MAIL_LAP = 1, KBI_MAIL_CELL = 2, KBI_MAIL_NEXT = 4, KBI_MAIL_BITS = 63 };

struct kbi_mail {
	aptr word;
	a64 value;
	struct kbi_task *task; /* written before word, read after it */
	uint64_t unused;       /* padding: two slots a cache line */
};

struct kbi_mailbox {
	struct kbi_mail slot[KBI_MAIL_SLOTS] KBI_ALIGNED(KBI_CACHE_LINE);
	/* written by the consumer; the producer reads it when the box looks full */
	a32 head KBI_ALIGNED(KBI_CACHE_LINE);
	/* producer only */
	uint32_t tail KBI_ALIGNED(KBI_CACHE_LINE);
	uint32_t head_seen;
};

/* A VP's board: summaries over the marks of all threads. */
struct kbi_board {
	a8 *sum1;            /* [threads / 64]; the marks below are common to all boards */
	a8 *sum2;            /* [threads / 4096] */
	a8 *sum3;            /* [threads / 262144], at most 64: one line */
	/* [number of VPs]: a box for each sender; NULL: there are too many VPs, only the board is
	 * used */
	struct kbi_mailbox *in;
	/* [a power of two >= VPs] The consumer's place in each box: the address of the next slot |
	 * the lap bit that this slot has while it is empty. A monitor peeps. The place of a sender
	 * that cannot exist is a slot that stays empty. */
	aptr *in_next;
	/* constant: the places that a look between two threads chooses from, if `peeks` */
	const aptr *peek;
	uint32_t peek_mask;
	/* a look between two threads loads this word; 0: nothing to look at */
	union {
		struct {
			a32 marked;     /* 1: something is marked on the board */
			uint32_t peeks; /* constant; 1: there are mailboxes */
		};
		a64 look;
	} KBI_ALIGNED(KBI_CACHE_LINE);
};

/* kbi_board_setup reserves memory for boards over `threads` descriptors; kbi_board_init makes
 * the board of VP `self`. Both return 0 or ENOMEM. */
int kbi_board_setup(uint32_t threads);
int kbi_board_init(struct kbi_board *b, unsigned self, unsigned nvps, uint32_t threads);

/* Producer: posts a message to the box that `b` has for VP `from`. Returns false if the box is
 * full; then nothing was sent. */
bool kbi_mail_post(struct kbi_board *b, unsigned from, struct kbi_task *t, void *what,
	unsigned kind, uint64_t value);

/* Returns true if the next slot of a place is filled. */
static inline bool kbi_mail_filled(uintptr_t place)
{
	const struct kbi_mail *m = (const struct kbi_mail *)(place & ~(uintptr_t)KBI_MAIL_LAP);

	return ((uintptr_t)a_load_rlx(&m->word) ^ place) & KBI_MAIL_LAP;
}

/* Consumer: returns true if there is mail from `from`. */
static inline bool kbi_mail_waiting(const struct kbi_board *b, unsigned from)
{
	return kbi_mail_filled((uintptr_t)a_load_rlx(&b->in_next[from]));
}

/* Consumer, only if b->peeks: looks at one mailbox; consecutive numbers go round all of them. */
static inline bool kbi_mail_peek(const struct kbi_board *b, uint32_t number)
{
	return kbi_mail_filled((uintptr_t)a_load_rlx(&b->peek[number & b->peek_mask]));
}

/* Any VP: returns true if there is mail from any VP. Exact for the keeper, approximate for any
 * other caller. */
bool kbi_board_mail_any(const struct kbi_board *b, unsigned nvps);
/* Consumer, only after kbi_mail_waiting returned true: takes a message. Returns the task that it
 * is for; *what, *kind and *value are as they were sent. */
struct kbi_task *kbi_mail_take(struct kbi_board *b, unsigned from, void **what, unsigned *kind,
	uint64_t *value);

/* Any context: marks the thread on the board. The caller then fences and looks whether the VP
 * sleeps. */
void kbi_board_mark(struct kbi_board *b, uint32_t index);
/* Keeper: calls found(arg, index) for each marked thread. */
void kbi_board_scan(struct kbi_board *b, void (*found)(void *arg, uint32_t index), void *arg);

#endif
