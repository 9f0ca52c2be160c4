/* sched/rotator_paper.c - LB3 to the letter: thread by thread, one link, a uniform
 * capacity.
 *
 * At every switch VP i removes all threads from the Waiver Queue of its predecessor, fills its
 * Protect Queue up to the capacity and puts the rest into its own Waiver Queue. Threads that
 * overflow the Protect Queue on a push go there, too. VP i wakes its successor if that sleeps.
 * The tick does the same.
 *
 * Where the paper is silent:
 *   - The capacity counts the threads that stay ready once the next thread runs. That thread is
 *     still in the queue when core/vp polls, so a switch fills up to one more. Otherwise threads
 *     that yield for ever in full Protect Queues would starve the waived threads.
 *   - Automatic capacity: the fair share, sum of the published loads / VPs, looked up every
 *     RECKON polls. A fixed capacity is either too big to share a handful of threads or lets
 *     thousands rotate at each switch. If the capacity has shrunk, the excess of a Protect Queue
 *     overflows at the next poll.
 *   - Threads rotate for ever while all Protect Queues are full: that is the paper's design (and
 *     why rotator differs).
 *   - A ring with a single VP has no capacity: its threads would only go round.
 *   - At a tick while some VP is idle, all ready threads go: the running thread may keep the VP.
 *
 * Callers: core/vp through struct kbi_sched. Never blocks, never switches; no locks. */
#include <errno.h>

#include "sched/waiver.h"

enum {
	RECKON = 64,  /* polls between two looks at the fair share */
	CAPACITY = 2, /* the least automatic capacity */
	UNLIMITED = 1 << 30,
};

struct paper {
	struct kbi_waiver waiver; /* to the successor */
	/* owner only */
	uint32_t load KBI_ALIGNED(KBI_CACHE_LINE); /* as published */
	unsigned capacity;
	unsigned until_reckon;
	bool automatic; /* constant */
	bool said;      /* the successor knows of, or will see, all threads put so far */
};

static struct kbi_waiver *waiver_of(const struct kbi_sched_vp *v)
{
	struct paper *p = v->priv;

	return &p->waiver;
}

static struct kbi_sched_vp *successor_of_vp(const struct kbi_sched_vp *s)
{
	return &s->all[s->id + 1 == s->nvps ? 0 : s->id + 1];
}

static struct kbi_sched_vp *predecessor_of_vp(const struct kbi_sched_vp *s)
{
	return &s->all[s->id ? s->id - 1 : s->nvps - 1];
}

static void update_paper_capacity(const struct kbi_sched_vp *s, struct paper *p)
{
	unsigned sum = 0;

	if (!p->automatic || p->until_reckon--)
		return;
	p->until_reckon = RECKON;
	for (unsigned i = 0; i < s->nvps; i++)
		sum += a_load_rlx(&s->all[i].load);
	sum = (sum + s->nvps - 1) / s->nvps;
	p->capacity = sum > CAPACITY ? sum : CAPACITY;
}

/* Puts t into the own Waiver Queue. Returns false if it is full. */
static bool waive_task(struct kbi_sched_vp *s, struct paper *p, struct kbi_task *t)
{
	if (!kbi_waiver_put(&p->waiver, t, successor_of_vp(s)->id))
		return false;
	p->said = false;
	s->given++;
	return true;
}

/* Takes all threads out of the predecessor's Waiver Queue; keeps up to `room`, the rest goes on.
 * Returns how many were kept. */
static unsigned rotate_waived_tasks(struct kbi_sched_vp *s, struct paper *p, unsigned room)
{
	struct kbi_waiver *from = waiver_of(predecessor_of_vp(s));
	unsigned kept = 0;

	for (uint32_t n = kbi_waiver_count(from); n > 0; n--) {
		struct kbi_task *t = kbi_waiver_take(from);

		if (kept < room || !waive_task(s, p, t)) {
			kbi_sched_accept(s, t);
			kept++;
		}
	}
	s->taken += kept;
	return kept;
}

static void wake_successor(struct kbi_sched_vp *s, struct paper *p, struct kbi_sched_wake *wake)
{
	/* fence: the published tail before `idle` is read (kbi_sched_wake_add); pairs with the
	 * sleeper's */
	a_fence_sc();
	p->said = true;
	kbi_sched_wake_add(wake, successor_of_vp(s));
}

static unsigned paper_poll(struct kbi_sched_vp *s, enum kbi_sched_why why,
	struct kbi_sched_wake *wake)
{
	struct paper *p = s->priv;
	unsigned limit = p->capacity + (why == KBI_POLL_SWITCH), mine, in = 0;

	wake->n = 0;
	if (why != KBI_POLL_PUSH) {
		if (why == KBI_POLL_TICK && kbi_sched_idle_others(s))
			limit = 0;
		mine = s->pq.n - s->pq.bound;
		in = rotate_waived_tasks(s, p, mine < limit ? limit - mine : 0);
		if (s->pq.n - s->pq.bound > limit &&
		    kbi_waiver_spill(&p->waiver, s, limit, successor_of_vp(s)->id))
			p->said = false;
		kbi_sched_publish_load(s, &p->load,
				       s->pq.n + kbi_waiver_count(&p->waiver) + (why != KBI_POLL_IDLE));
		update_paper_capacity(s, p);
	}
	if (!p->said)
		wake_successor(s, p, wake);
	else if (in)
		a_fence_sc(); /* law 3; pairs with the slow path of kbi_wait_wake */
	/* some VP should watch over the task that waits here: the tick makes us waive it */
	if (why == KBI_POLL_PUSH && s->pq.n > s->pq.bound)
		kbi_sched_wake_any(wake, s, 1);
	return in;
}

static bool paper_arrived(const struct kbi_sched_vp *s)
{
	return kbi_waiver_count(waiver_of(predecessor_of_vp(s))) > 0;
}

static void paper_push(struct kbi_sched_vp *s, struct kbi_task *t, bool front)
{
	struct paper *p = s->priv;

	if (front)
		kbi_pq_prepend(&s->pq, t);
	else if (kbi_task_is(t, KBI_TASK_BOUND) || s->pq.n - s->pq.bound < p->capacity ||
		!waive_task(s, p, t))
		kbi_pq_append(&s->pq, t);
}

static struct kbi_task *paper_pop(struct kbi_sched_vp *s)
{
	return kbi_pq_pop(&s->pq);
}

static void paper_fini(struct kbi_sched_vp *s, unsigned n)
{
	kbi_sched_free(s[0].priv);
	for (unsigned i = 0; i < n; i++)
		s[i].priv = NULL;
}

static int paper_init(struct kbi_sched_vp *s, unsigned n, unsigned capacity, unsigned lock)
{
	struct paper *p = kbi_sched_alloc(n * sizeof(*p));

	(void)lock;
	if (!p)
		return ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		p[i].automatic = capacity == 0 && n > 1;
		p[i].capacity = n == 1 ? UNLIMITED : capacity ? capacity : CAPACITY;
		p[i].said = true;
		s[i].priv = &p[i];
	}
	return 0;
}

const struct kbi_sched kbi_sched_rotator_paper = {
	.name = "rotator-paper",
	.poll_every = 1,
	.private_ready = false,
	.init = paper_init,
	.fini = paper_fini,
	.push = paper_push,
	.pop = paper_pop,
	.take = kbi_waiver_not_waived,
	.poll = paper_poll,
	.arrived = paper_arrived,
};
