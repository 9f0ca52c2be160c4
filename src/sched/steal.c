/* sched/steal.c - work stealing, for comparison. Each VP keeps its ready tasks in an array
 * from which idle VPs take half, beginning at a random victim. The array is base/deque, which
 * says why the owner takes from the thieves' end: threads that yield must go behind the rest.
 *
 * A VP with three threads that yield for ever would never be a thief again, while a second VP
 * may have thousands. So a busy VP, too, looks at one random victim now and then, and takes half
 * of the victim's excess.
 *
 * The Protect Queue holds tasks that thieves must not or need not have: bound tasks, tasks
 * pushed to run next, and tasks that a full array refused. It and the array have turns by their
 * lengths, so that neither starves. When some VP is idle, all tasks of the Protect Queue that
 * are not bound go into the array, except the task that runs next.
 *
 * Callers: core/vp through struct kbi_sched. Never blocks, never switches; lock-free. */
#include <errno.h>

#include "base/deque.h"
#include "sched/sched_priv.h"

enum {
	STEAL_MAX = 1024, /* tasks at a time */
	/* and a sixteenth: a busy VP leaves this much more at a victim. It is chosen so that of some
	 * thousand threads each of up to 16 VPs comes to have nine tenths of its share */
	SLACK = 16,
};

struct steal {
	struct kbi_deque deque;
	/* owner only */
	uint64_t rand KBI_ALIGNED(KBI_CACHE_LINE); /* never 0 */
	uint32_t load;                             /* as published */
	const struct kbi_task *first;              /* head of the Protect Queue after the last tick */
	uint32_t free_turns; /* pops from the array until it is the Protect Queue's turn */
	bool refused; /* true: the array was full, and a task that it refused is not in it yet */
};

static struct kbi_deque *deque_of(const struct kbi_sched_vp *v)
{
	struct steal *p = v->priv;

	return &p->deque;
}

static unsigned random_below(struct steal *p, unsigned n)
{
	p->rand ^= p->rand << 13;
	p->rand ^= p->rand >> 7;
	p->rand ^= p->rand << 17;
	return (unsigned)((p->rand >> 32) * n >> 32);
}

/* Owner; may run in parallel with thieves. */
static void steal_push(struct kbi_sched_vp *s, struct kbi_task *t, bool front)
{
	struct steal *p = s->priv;

	if (front) {
		kbi_pq_prepend(&s->pq, t);
		p->free_turns = 0;
	} else if (kbi_task_is(t, KBI_TASK_BOUND)) {
		kbi_pq_append(&s->pq, t);
	} else if (!kbi_deque_put(&p->deque, t)) {
		kbi_pq_append(&s->pq, t);
		p->refused = true;
	}
}

/* Owner; may run in parallel with thieves. A task that it takes from its own array is READY(s)
 * already: the VP in the state word does not change, so law 3 asks for no fence. */
static struct kbi_task *steal_pop(struct kbi_sched_vp *s)
{
	struct steal *p = s->priv;
	struct kbi_task *t;

	if (s->pq.n && !p->free_turns) {
		p->free_turns = kbi_deque_count(&p->deque) / s->pq.n;
		return kbi_pq_pop(&s->pq);
	}
	p->free_turns -= p->free_turns > 0;
	t = kbi_deque_take(&p->deque);
	return t ? t : kbi_pq_pop(&s->pq);
}

/* Owner. Removes only a task that it finds without a search: an end of the Protect Queue or, in
 * the array, the task put in last. */
static bool steal_take(struct kbi_sched_vp *s, struct kbi_task *t)
{
	if (s->pq.head != t && s->pq.tail != t)
		return kbi_deque_take_back(deque_of(s), t);
	kbi_pq_remove(&s->pq, t);
	return true;
}

/* Thief with `mine` tasks: takes up to half of the excess of v's array into its own array, which
 * only the thief puts into. Returns how many. May run in parallel with v and further thieves. */
static unsigned steal_tasks(struct kbi_sched_vp *s, const struct kbi_sched_vp *v, uint32_t mine)
{
	struct kbi_deque *from = deque_of(v), *to = deque_of(s);
	uint32_t most = STEAL_MAX, b = a_load_rlx(&to->bottom), n;
	uint64_t top;

	/* a claim fails if a second thief or the owner was faster; then ask for less, to be quicker */
	for (;; most = n > 1 ? n / 2 : 1) {
		n = kbi_deque_look(from, &top);
		if (n <= mine)
			return 0;
		n = (n - mine + 1) / 2;
		n = n < most ? n : most;
		for (uint32_t i = 0; i < n; i++)
			a_store_rlx(&to->slot[(b + i) % KBI_DEQUE_SLOTS], kbi_deque_peek(from, top, i));
		if (kbi_deque_claim(from, top, n))
			break;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct kbi_task *t = a_load_rlx(&to->slot[(b + i) % KBI_DEQUE_SLOTS]);

		/* release: pairs with the acquire of any reader of the state word (core/wait, core/dump) */
		a_store_rel(&t->state, KBI_STATE(KBI_TASK_READY, s->id));
	}
	a_fence_sc(); /* law 3; pairs with the slow path of kbi_wait_wake */
	kbi_deque_publish(to, n);
	s->taken += n;
	return n;
}

/* Tries all victims, beginning at a random one. 0 means that each array was empty when looked at
 * (or ours has no room), which a VP about to sleep must know. */
static unsigned search_victims(struct kbi_sched_vp *s)
{
	unsigned start = s->nvps > 1 ? random_below(s->priv, s->nvps - 1) : 0;

	if (kbi_deque_room(deque_of(s)) < STEAL_MAX)
		return 0;
	for (unsigned i = 1; i < s->nvps; i++) {
		unsigned d = 1 + (start + i) % (s->nvps - 1);
		unsigned n = steal_tasks(s, &s->all[(s->id + d) % s->nvps], 0);

		if (n)
			return n;
	}
	return 0;
}

/* Between two threads: robs one random victim if it has so much more that threads that only
 * yield would have far fewer turns there than here. */
static unsigned even_out(struct kbi_sched_vp *s)
{
	struct steal *p = s->priv;
	unsigned mine = s->pq.n + kbi_deque_count(&p->deque);
	const struct kbi_sched_vp *v;

	if (s->nvps == 1 || kbi_deque_room(&p->deque) < STEAL_MAX)
		return 0;
	v = &s->all[(s->id + 1 + random_below(p, s->nvps - 1)) % s->nvps];
	return kbi_deque_count(deque_of(v)) > mine + mine / 16 + SLACK ? steal_tasks(s, v, mine)
		: 0;
}

/* Owner: moves all tasks that are not bound, except `keep`, from the Protect Queue into the
 * array, from the tail on. Returns false if the array is full. */
static bool expose_tasks(struct kbi_sched_vp *s, unsigned keep)
{
	struct kbi_task *t = s->pq.tail, *before;

	for (; t && s->pq.n - s->pq.bound > keep; t = before) {
		before = t->prev;
		if (kbi_task_is(t, KBI_TASK_BOUND))
			continue;
		if (!kbi_deque_room(deque_of(s)))
			return false;
		kbi_pq_remove(&s->pq, t);
		kbi_deque_put(deque_of(s), t);
		s->given++;
	}
	return true;
}

static unsigned steal_poll(struct kbi_sched_vp *s, enum kbi_sched_why why,
	struct kbi_sched_wake *wake)
{
	struct steal *p = s->priv;
	bool idle = kbi_sched_idle_others(s) > 0, hog = why == KBI_POLL_TICK &&
		kbi_sched_hogged(s, p->first);
	unsigned in = 0, n;

	wake->n = 0;
	if (why == KBI_POLL_IDLE)
		in = search_victims(s);
	else if (why == KBI_POLL_SWITCH)
		in = even_out(s);
	if (idle || hog || p->refused)
		p->refused = !expose_tasks(s, why == KBI_POLL_TICK ? 0 : 1);
	if (why == KBI_POLL_TICK)
		p->first = s->pq.head;
	n = kbi_deque_count(&p->deque);
	kbi_sched_publish_load(s, &p->load, s->pq.n + n + (why != KBI_POLL_IDLE));
	if (!idle || !n || (why == KBI_POLL_IDLE && n < 2))
		return in;
	/* fence: bottom before `idle` is read (kbi_sched_wake_add); pairs with the sleeper's */
	a_fence_sc();
	kbi_sched_wake_any(wake, s, why == KBI_POLL_TICK ? n : 1);
	return in;
}

/* Owner; may run in parallel with thieves. */
static void steal_gather(struct kbi_sched_vp *s, unsigned most)
{
	struct steal *p = s->priv;
	struct kbi_task *t;

	for (; most && (t = kbi_deque_take(&p->deque)); most--)
		kbi_pq_append(&s->pq, t);
	p->free_turns = 0;
}

static unsigned steal_outside(const struct kbi_sched_vp *s)
{
	return kbi_deque_count(deque_of(s));
}

static void steal_fini(struct kbi_sched_vp *s, unsigned n)
{
	kbi_sched_free(s[0].priv);
	for (unsigned i = 0; i < n; i++)
		s[i].priv = NULL;
}

static int steal_init(struct kbi_sched_vp *s, unsigned n, unsigned capacity, unsigned lock)
{
	struct steal *p = kbi_sched_alloc(n * sizeof(*p));

	(void)capacity;
	(void)lock;
	if (!p)
		return ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		p[i].rand = 0x9E3779B97F4A7C15u * (i + 1);
		s[i].priv = &p[i];
	}
	return 0;
}

const struct kbi_sched kbi_sched_steal = {
	.name = "steal",
	.poll_every = 64,
	.private_ready = false,
	.init = steal_init,
	.fini = steal_fini,
	.push = steal_push,
	.pop = steal_pop,
	.take = steal_take,
	.poll = steal_poll,
	.gather = steal_gather,
	.outside = steal_outside,
};
