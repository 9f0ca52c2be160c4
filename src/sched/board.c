/* sched/board.c - mailboxes and boards. Contract in board.h, model in model/board.pml. Runs on
 * any stack inside np brackets; no locks; never switches; allocates memory at setup only. */
#include "sched/board.h"

#include <errno.h>

#include "os/sys.h"

static a8 *marks; /* of all threads, by index; set by wakers, cleared by the VP that scans */

static size_t level_bytes(uint32_t threads, unsigned shift)
{
	return ((size_t)threads >> shift) + 1;
}

int kbi_board_setup(uint32_t threads)
{
	marks = kbi_sys_map_table(threads);
	return marks ? 0 : ENOMEM;
}

/* Stays empty: the place of a sender that does not exist. */
static struct kbi_mail no_mail KBI_ALIGNED(KBI_CACHE_LINE);

static int mail_init(struct kbi_board *b, unsigned self, unsigned nvps)
{
	unsigned n = 1;

	while (n < nvps)
		n *= 2;
	b->in = kbi_sys_map(nvps * sizeof *b->in);
	b->in_next = kbi_sys_map(n * sizeof *b->in_next);
	if (!b->in || !b->in_next)
		return ENOMEM;
	for (unsigned i = 0; i < n; i++)
		/* a zeroed slot is empty: its lap bit belongs to the lap before the first */
		a_store_rlx(&b->in_next[i], i < nvps && i != self ? &b->in[i].slot[0] : &no_mail);
	/* with two VPs only the mailbox of the second VP needs a look */
	b->peek = nvps == 2 ? &b->in_next[!self] : b->in_next;
	b->peek_mask = nvps == 2 ? 0 : n - 1;
	b->peeks = 1;
	return 0;
}

int kbi_board_init(struct kbi_board *b, unsigned self, unsigned nvps, uint32_t threads)
{
	b->sum1 = kbi_sys_map(level_bytes(threads, 6));
	b->sum2 = kbi_sys_map(level_bytes(threads, 12) + 128);
	if (!b->sum1 || !b->sum2)
		return ENOMEM;
	b->sum3 = b->sum2 + (level_bytes(threads, 12) + 63) / 64 * 64;
	return nvps < 2 || nvps > KBI_MAIL_MAX_VPS ? 0 : mail_init(b, self, nvps);
}

bool kbi_mail_post(struct kbi_board *b, unsigned from, struct kbi_task *task, void *what,
	unsigned kind, uint64_t value)
{
	struct kbi_mailbox *box;
	struct kbi_mail *m;
	uint32_t t;
	uintptr_t lap;

	if (kbi_unlikely(!b->in))
		return false;
	box = &b->in[from];
	t = box->tail;
	if (kbi_unlikely(t - box->head_seen >= KBI_MAIL_SLOTS)) {
		/* acquire: pairs with the release in kbi_mail_take; the consumer has read the slot */
		box->head_seen = a_load_acq(&box->head);
		if (t - box->head_seen >= KBI_MAIL_SLOTS)
			return false;
	}
	m = &box->slot[t % KBI_MAIL_SLOTS];
	lap = (t / KBI_MAIL_SLOTS & 1) ^ 1;
	a_store_rlx(&m->value, value);
	m->task = task;
	/* release: pairs with the acquire in kbi_mail_take; publishes the value and the contents of
	 * the task or event */
	a_store_rel(&m->word, (void *)((uintptr_t)what | kind | lap));
	box->tail = t + 1;
	return true;
}

bool kbi_board_mail_any(const struct kbi_board *b, unsigned nvps)
{
	for (unsigned from = 0; b->in && from < nvps; from++)
		if (kbi_mail_waiting(b, from))
			return true;
	return false;
}

struct kbi_task *kbi_mail_take(struct kbi_board *b, unsigned from, void **what, unsigned *kind,
	uint64_t *value)
{
	struct kbi_task *task;
	uintptr_t place = (uintptr_t)a_load_rlx(&b->in_next[from]);
	struct kbi_mailbox *box = &b->in[from];
	struct kbi_mail *m = (struct kbi_mail *)(place & ~(uintptr_t)KBI_MAIL_LAP);
	/* acquire: pairs with the release in kbi_mail_post */
	uintptr_t w = (uintptr_t)a_load_acq(&m->word);

	*kind = w & KBI_MAIL_BITS & ~(unsigned)KBI_MAIL_LAP;
	*value = a_load_rlx(&m->value);
	task = m->task;
	place += sizeof *m;
	if (m == &box->slot[KBI_MAIL_SLOTS - 1])
		place = (uintptr_t)box->slot | (~place & KBI_MAIL_LAP);
	a_store_rlx(&b->in_next[from], (void *)place);
	/* release: pairs with the acquire in kbi_mail_post: the slot has been read */
	a_store_rel(&box->head, a_load_rlx(&box->head) + 1);
	*what = (void *)(w & ~(uintptr_t)KBI_MAIL_BITS);
	return task;
}

/* Marks bottom-up, each level by a release store: a VP that sees a summary (acquire in clear_mark)
 * sees the levels below it. It never tests before it sets: a set summary may be about to be
 * cleared. */
void kbi_board_mark(struct kbi_board *b, uint32_t index)
{
	a_store_rel(&marks[index], 1);
	a_store_rel(&b->sum1[index >> 6], 1);
	a_store_rel(&b->sum2[index >> 12], 1);
	a_store_rel(&b->sum3[index >> 18], 1);
	a_store_rel(&b->marked, 1);
}

/* Clears a mark or summary byte if it is set; returns whether it was. Acquire: pairs with the
 * releases in kbi_board_mark. The exchange is also the full fence between the clear and the scan
 * of the level below: a mark that comes after that scan sets the summary again. */
static bool clear_mark(a8 *s)
{
	return a_load_rlx(s) && a_xchg_acqrel(s, 0);
}

static void scan_threads(struct kbi_board *b, uint32_t g, void (*found)(void *, uint32_t),
	void *arg)
{
	if (!clear_mark(&b->sum1[g]))
		return;
	for (uint32_t i = g << 6; i < (g + 1) << 6; i++)
		if (clear_mark(&marks[i]))
			found(arg, i);
}

void kbi_board_scan(struct kbi_board *b, void (*found)(void *arg, uint32_t index), void *arg)
{
	/* acquire: pairs with the release of `marked` in kbi_board_mark and kbi_vp_send */
	if (!a_xchg_acqrel(&b->marked, 0))
		return;
	for (uint32_t k = 0; k < 64; k++) {
		if (!clear_mark(&b->sum3[k]))
			continue;
		for (uint32_t j = k << 6; j < (k + 1) << 6; j++) {
			if (!clear_mark(&b->sum2[j]))
				continue;
			for (uint32_t g = j << 6; g < (j + 1) << 6; g++)
				scan_threads(b, g, found, arg);
		}
	}
}
