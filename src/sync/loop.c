/* sync/loop.c - loops and reductions in parallel: a range is halved until a piece is small
 * enough. The right half is a task; the halving thread does the left half itself. So the pieces
 * depend only on the range and the grain, and each wait is for the task that was made last.
 * Contract in kochab/task.h.
 * Callers: all rooms above. Calls group. May switch. */
#include <errno.h>
#include <string.h>

#include "core/boot.h"
#include "core/vp.h"
#include "sync/crew.h"
#include "sync/group.h"

enum { PIECES_A_VP = 8 };

/* Shared by all pieces of a loop. */
struct loop {
	int (*fn)(size_t from, size_t to, void *arg);
	kb_part_t add; /* in a reduction, instead of fn */
	kb_join_t join;
	void *arg;
	const void *neutral;
	size_t size, grain;
	a32 error; /* the first error; no piece begins after it */
};

/* On the stack of the halving thread. */
struct range {
	struct loop *loop;
	size_t from, to;
	void *part; /* the result of a reduction */
};

static void record_loop_error(struct loop *l, int e)
{
	uint32_t none = 0;

	/* relaxed: the ends of the tasks give the order */
	a_cas_rlx(&l->error, &none, (uint32_t)e);
}

KBI_SWITCHES static void do_range(struct loop *l, size_t from, size_t to, void *part);

KBI_SWITCHES static int range_task(void *range)
{
	struct range *r = range;

	do_range(r->loop, r->from, r->to, r->part);
	return 0;
}

KBI_SWITCHES static void do_piece(struct loop *l, size_t from, size_t to, void *part)
{
	int e;

	if (kbi_unlikely(a_load_rlx(&l->error)))
		return;
	e = part ? l->add(from, to, part, l->arg) : l->fn(from, to, l->arg);
	if (kbi_unlikely(e != 0))
		record_loop_error(l, e);
}

/* Does both halves: the half right of `middle` as a task, or afterwards if no task can be made. */
KBI_SWITCHES static void do_halves(struct loop *l, size_t from, size_t middle, size_t to,
	void *left, void *right)
{
	struct range r = { l, middle, to, right };
	kb_group_t g;
	bool given;

	kb_group_init(&g);
	given = !kb_group_run(&g, range_task, &r);
	do_range(l, from, middle, left);
	if (kbi_likely(given))
		kb_group_wait(&g);
	else
		range_task(&r);
}

/* Reduces both halves. Has room for the right half's part on the stack. */
KBI_SWITCHES static KBI_NOINLINE void reduce_halves(struct loop *l, size_t from, size_t middle,
	size_t to, void *part)
{
	uint64_t right[(l->size + 7) / 8];

	memcpy(right, l->neutral, l->size);
	do_halves(l, from, middle, to, part, right);
	if (kbi_likely(!a_load_rlx(&l->error)))
		l->join(part, right, l->arg);
}

KBI_SWITCHER static void do_range(struct loop *l, size_t from, size_t to, void *part)
{
	size_t middle;

	if (to - from <= l->grain) {
		do_piece(l, from, to, part);
		return;
	}
	middle = from + (to - from) / 2;
	if (part)
		reduce_halves(l, from, middle, to, part);
	else
		do_halves(l, from, middle, to, NULL, NULL);
}

static int prepare_loop(struct loop *l, size_t begin, size_t end)
{
	int e = kbi_crew_setup();

	if (!e && !l->grain) {
		l->grain = (end - begin) / ((size_t)PIECES_A_VP * kbi_vp_n);
		l->grain += !l->grain;
	}
	return e;
}

KBI_SWITCHER int kb_parallel_for(size_t begin, size_t end, size_t grain,
	int (*fn)(size_t, size_t, void *), void *arg)
{
	struct loop l = { .fn = fn, .arg = arg, .grain = grain };
	int e;

	if (!fn)
		return EINVAL;
	if (begin >= end)
		return 0;
	e = prepare_loop(&l, begin, end);
	if (e)
		return e;
	do_range(&l, begin, end, NULL);
	return (int)a_load_rlx(&l.error);
}

KBI_SWITCHER int
kb_reduce(size_t begin, size_t end, size_t grain, void *value, size_t size, kb_part_t add,
	kb_join_t join, void *arg)
{
	struct loop l = { .add = add, .join = join, .arg = arg, .size = size, .grain = grain };
	uint64_t neutral[KB_REDUCE_MAX / 8];
	int e;

	if (!size || size > KB_REDUCE_MAX || !add || !join)
		return EINVAL;
	if (begin >= end)
		return 0;
	e = prepare_loop(&l, begin, end);
	if (e)
		return e;
	memcpy(neutral, value, size);
	l.neutral = neutral;
	do_range(&l, begin, end, value);
	return (int)a_load_rlx(&l.error);
}
