/* libc/tcb_template.c - blocks as copies of the younger sentinel. Two sentinels are compared word
 * by word: a word that differs by their distance is a pointer into the block and moves with it; any
 * other difference must be known, or there is no template. A copy gets a vector of its own from the
 * loader and joins libc's list of threads between the two sentinels, a stretch that libc itself
 * never changes: libc adds at the head, and a block leaves the stretch before libc ends it.
 * Callers: tcb. list_lock guards the stretch; nothing is called under it. Runs on any stack. */
#include "libc/tcb_priv.h"

#include "libc/asked.h"
#include "libc/names.h"
#include "libc/real.h"
#include "os/lock.h"
#include "os/sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	MOVED_MAX = 256,
	SCRATCH = 64 << 10, /* stack of the block that is built to check the result */
};

struct node {
	struct node *next, *prev;
};

static struct template {
	void *(*allocate_tls)(void *tp);
	uint32_t *threads;        /* libc's count of its threads, or NULL */
	ptrdiff_t list;           /* the node of libc's list, from pthread_self() */
	ptrdiff_t low_at, size_at; /* libc's notes of the slab, from the thread pointer, or NONE */
	unsigned n_moved;
	int32_t moved[MOVED_MAX]; /* pointers into the block, from the thread pointer */
} tmpl;

static a32 list_lock;

static void lock_list(void)
{
	kbi_lock_take(&list_lock);
}

static void unlock_list(void)
{
	kbi_lock_leave(&list_lock);
}

static uint64_t *word_of_block(const struct kbi_tcb *t, ptrdiff_t at)
{
	return (uint64_t *)((char *)t->tp + at);
}

static struct node *node_of(const struct kbi_tcb *t)
{
	return (struct node *)(t->pthread + (uintptr_t)tmpl.list);
}

/* ---- learning -------------------------------------------------------------------------------- */

static const struct kbi_tcb *older_sentinel(void)
{
	return &kbi_tcb_sentinel[0].tcb;
}

static const struct kbi_tcb *younger_sentinel(void)
{
	return &kbi_tcb_sentinel[1].tcb;
}

/* Finds the list. Libc adds at the head: the younger's next is the older, if no thread was created
 * between. */
static bool find_list(void)
{
	size_t size = (size_t)((char *)younger_sentinel()->tp > (char *)younger_sentinel()->pthread
		? (char *)younger_sentinel()->tp - (char *)younger_sentinel()->pthread
		: (ptrdiff_t)kbi_tcb_layout.above);

	for (size_t o = 0; o + sizeof(struct node) <= size; o += sizeof(void *)) {
		struct node *old = (struct node *)(older_sentinel()->pthread + o);
		struct node *young = (struct node *)(younger_sentinel()->pthread + o);

		if (young->next != old || old->prev != young)
			continue;
		tmpl.list = (ptrdiff_t)o;
		return true;
	}
	return false;
}

static bool overlaps_field(ptrdiff_t at, const void *p, size_t size)
{
	ptrdiff_t from = (const char *)p - (char *)younger_sentinel()->tp;

	return at + (ptrdiff_t)sizeof(uint64_t) > from && at < from + (ptrdiff_t)size;
}

/* Returns true for words that kbi_tcb_template_make writes itself. */
static bool is_rewritten_word(ptrdiff_t at)
{
	const struct kbi_tcb *t = younger_sentinel();

	return at == KBI_TCB_DTV || overlaps_field(at, kbi_tcb_tid_word(t), sizeof(uint32_t)) ||
	       overlaps_field(at, node_of(t), sizeof(struct node)) || at == tmpl.low_at ||
	       at == tmpl.size_at || at == kbi_tcb_layout.self;
}

static bool points_into(const struct kbi_tcb *t, uint64_t v)
{
	uint64_t low = (uint64_t)(uintptr_t)t->slab_low;

	return v > low && v <= low + t->slab_size;
}

/* Learns the meaning of a word that differs. Returns false if it is not known. */
static bool learn_difference(ptrdiff_t at)
{
	const struct kbi_tcb *o = older_sentinel(), *y = younger_sentinel();
	uint64_t a = *word_of_block(o, at), b = *word_of_block(y, at);

	if (a == (uintptr_t)o->slab_low && b == (uintptr_t)y->slab_low) {
		tmpl.low_at = at;
		return true;
	}
	if (a == o->slab_size && b == y->slab_size) {
		tmpl.size_at = at;
		return true;
	}
	if (b - a == (uint64_t)((char *)y->tp - (char *)o->tp) && points_into(o, a)) {
		if (tmpl.n_moved == MOVED_MAX)
			return false;
		tmpl.moved[tmpl.n_moved++] = (int32_t)at;
		return true;
	}
	/* the start routine's argument; and in the frames, the guarded pointers of a jump buffer that
	 * only libc's own pthread_exit would use */
	return (a == (uintptr_t)o && b == (uintptr_t)y) || at < kbi_tcb_layout.tls_from;
}

static bool learn_words(ptrdiff_t *bad)
{
	tmpl.n_moved = 0;
	tmpl.low_at = tmpl.size_at = KBI_TCB_NONE;
	for (ptrdiff_t at = -(ptrdiff_t)kbi_tcb_layout.below;
		at < (ptrdiff_t)kbi_tcb_layout.above; at += 8) {
		if (*word_of_block(older_sentinel(), at) ==
			*word_of_block(younger_sentinel(), at) || is_rewritten_word(at))
			continue;
		*bad = at;
		if (!learn_difference(at))
			return false;
	}
	return true;
}

/* Builds a block and checks every word but the frames. *bad: the offset of the word looked at
 * last. */
static bool comes_out_right(ptrdiff_t *bad)
{
	size_t size = kbi_tcb_layout.below + kbi_tcb_layout.above + kbi_tcb_layout.align + SCRATCH;
	struct kbi_tcb *t = kbi_sys_map(sizeof(*t)); /* stays: it is on libc's list now */
	const struct kbi_tcb *y = younger_sentinel();

	*bad = 0;
	if (!t)
		return false;
	*t = (struct kbi_tcb){ .slab_size = size, .id = KBI_TCB_ID_LIMIT + 3 };
	t->slab_low = kbi_sys_map(size);
	if (!t->slab_low || kbi_tcb_template_make(t))
		return false;
	*kbi_tcb_tid_word(t) = kbi_tcb_own_tid(t);
	for (ptrdiff_t at = kbi_tcb_layout.tls_from; at < (ptrdiff_t)kbi_tcb_layout.above; at += 8) {
		uint64_t have = *word_of_block(t, at), want = *word_of_block(y, at);

		*bad = at;
		if (!is_rewritten_word(at) && have != want &&
			have - want != (uint64_t)((char *)t->tp - (char *)y->tp))
			return false;
	}
	return true;
}

/* Returns true if the count is plausible: libc has counted the process's first thread and the two
 * that made the sentinels, and has not noticed an end. */
static bool counts_threads(void)
{
	enum { LEAST = 3, MOST = 1 << 22 };
	uint32_t n = __atomic_load_n(tmpl.threads, __ATOMIC_RELAXED);

	return n >= LEAST && n <= MOST;
}

static void ask_count(void)
{
	const char *what = "count of threads", *how = "blocks are kept that libc could end";

	if (!tmpl.threads) {
		kbi_asked_lacks(what, "not shown: %s", how);
	} else if (counts_threads()) {
		kbi_asked_found(what, "as expected");
	} else {
		kbi_asked_missed(what, "not as expected: %s", how);
		tmpl.threads = NULL;
	}
}

static const char *learn_template(ptrdiff_t *bad)
{
	a_store_rlx(&list_lock, 0); /* in a child of fork another thread may have held it */
	if (!KBI_TCB_TLS_BELOW)
		return "templates are not made on this machine yet";
	if (!kbi_tcb_layout.image)
		return "the layout of static TLS is not known";
	tmpl.allocate_tls = (void *(*)(void *))(uintptr_t)kbi_names_look_up("_dl_allocate_tls");
	tmpl.threads = kbi_names_look_up("__nptl_nthreads");
	if (!tmpl.allocate_tls)
		return "the loader does not say how it makes a thread's vector";
	ask_count();
	if (!find_list())
		return "libc's list of threads was not found";
	if (!learn_words(bad))
		return "two new threads differ in an unknown word";
	if (!comes_out_right(bad))
		return "a copy did not come out like its model";
	return NULL;
}

bool kbi_tcb_template_learn(const char **why)
{
	static char text[128];
	ptrdiff_t bad = 0;
	const char *problem = learn_template(&bad);

	if (!problem)
		return true;
	snprintf(text, sizeof(text), bad ? "%s (at %+td)" : "%s", problem, bad);
	*why = text;
	return false;
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool place_copy(struct kbi_tcb *t)
{
	const struct kbi_tcb *y = younger_sentinel();
	uintptr_t end = (uintptr_t)t->slab_low + t->slab_size;
	uintptr_t low = ((uintptr_t)t->slab_low + 15) & ~(uintptr_t)15;
	uintptr_t tp, frames;

	if (t->slab_size < kbi_tcb_slab_min())
		return false;
	tp = end - kbi_tcb_layout.above;
	tp -= (tp - (uintptr_t)y->tp) & (kbi_tcb_layout.align - 1);
	frames = tp - kbi_tcb_layout.below;
	t->tp = (void *)tp;
	t->pthread = tp + (y->pthread - (uintptr_t)y->tp);
	t->frames.sp = (void *)frames;
	t->stack_low = (char *)low;
	t->stack_size = (frames & ~(uintptr_t)15) - low;
	t->copied = true;
	return true;
}

static void copy_span(struct kbi_tcb *t, ptrdiff_t from, size_t size)
{
	memcpy(word_of_block(t, from), word_of_block(younger_sentinel(), from), size);
}

/* Moves the pointers. Repeating it gives equal words: they are computed from the sentinel's. */
static void move_words(struct kbi_tcb *t)
{
	uint64_t delta = (uint64_t)((char *)t->tp - (char *)younger_sentinel()->tp);

	for (unsigned i = 0; i < tmpl.n_moved; i++)
		*word_of_block(t, tmpl.moved[i]) =
			*word_of_block(younger_sentinel(), tmpl.moved[i]) + delta;
}

static void copy_block(struct kbi_tcb *t)
{
	copy_span(t, -(ptrdiff_t)kbi_tcb_layout.below, kbi_tcb_layout.below + kbi_tcb_layout.above);
	/* clears the pattern, see tcb_reset */
	memset(word_of_block(t, kbi_tcb_layout.watch.from), 0, kbi_tcb_layout.watch.size);
	move_words(t);
	if (tmpl.low_at != KBI_TCB_NONE)
		*word_of_block(t, tmpl.low_at) = (uintptr_t)t->slab_low;
	if (tmpl.size_at != KBI_TCB_NONE)
		*word_of_block(t, tmpl.size_at) = t->slab_size;
	*kbi_tcb_tid_word(t) = kbi_tcb_own_tid(t);
}

/* Adds the block behind the younger sentinel. Libc walks the list forwards, under a lock of its own
 * that we cannot take: at every instant a walker sees either the stretch before or the stretch
 * after. */
static void link_block(struct kbi_tcb *t)
{
	struct node *me = node_of(t), *head = node_of(younger_sentinel());

	lock_list();
	me->next = head->next;
	me->prev = head;
	head->next->prev = me;
	/* after me->next; partner: libc's walkers */
	__atomic_store_n(&head->next, me, __ATOMIC_RELEASE);
	unlock_list();
}

/* Takes and releases libc's list lock: when it returns, each current walker has left the list. A
 * thread with a stack larger than any machine's is searched in libc's cache under the lock, and
 * then refused. */
static void wait_for_walkers(void)
{
	pthread_attr_t attr;
	pthread_t never;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)1 << 60);
	kbi_real.pthread_create(&never, &attr, (void *(*)(void *))(uintptr_t)wait_for_walkers, NULL);
	pthread_attr_destroy(&attr);
}

/* Removes the block. Its own pointers stay until no walker can stand on it; then it is a list of
 * its own. */
static void unlink_block(struct kbi_tcb *t)
{
	struct node *me = node_of(t);

	lock_list();
	me->next->prev = me->prev;
	__atomic_store_n(&me->prev->next, me->next, __ATOMIC_RELEASE); /* partner: libc's walkers */
	unlock_list();
	wait_for_walkers();
	me->next = me->prev = me;
}

/* Makes a copy. The block is on the list before the loader fills in its TLS: a dlopen that gives a
 * module static TLS meanwhile comes, by the loader's lock, before (then the loader knows the
 * module) or after (then it finds the block on the list). The loader also writes libc's own TLS, as
 * it is before a thread starts: that is copied again. */
int kbi_tcb_template_make(struct kbi_tcb *t)
{
	if (!place_copy(t))
		return EINVAL;
	copy_block(t);
	link_block(t);
	if (!tmpl.allocate_tls(t->tp)) {
		unlink_block(t);
		return ENOMEM;
	}
	for (unsigned i = 0; i < kbi_tcb_layout.keep.n; i++)
		copy_span(t, kbi_tcb_layout.keep.at[i].from, kbi_tcb_layout.keep.at[i].size);
	move_words(t);
	return 0;
}

/* Returns true if copies can be ended: the return addresses in the frames can be moved on this
 * machine, since they are not signed by the stack pointer. */
bool kbi_tcb_template_can_end(void)
{
	return KBI_TCB_TLS_BELOW && tmpl.threads;
}

void kbi_tcb_template_part(struct kbi_tcb *t)
{
	unlink_block(t);
	/* libc subtracts 1 at the thread's end */
	__atomic_fetch_add(tmpl.threads, 1, __ATOMIC_RELAXED);
}

void kbi_tcb_template_rejoin(struct kbi_tcb *t)
{
	__atomic_fetch_sub(tmpl.threads, 1, __ATOMIC_RELAXED);
	link_block(t);
}
