/* sched/rotator.c - the default scheduler: Lesser Bear's rotator (LB3) at scale.
 *
 * Each VP gives surplus to its ring successor and, by links of the same kind (sched/link),
 * to VPs further on. No lock, no read-modify-write anywhere. Tasks move in packets. A packet
 * beyond what a VP keeps goes on unopened (its tasks then still name the VP that the packet was
 * first meant for). A packet that the VP keeps stays unopened, too, until its turn is near,
 * because opening a packet fetches each task's line from a remote processor. A poll opens as
 * many tasks as have had turns since the last poll, and fills the Protect Queue up until the
 * next.
 *
 * Which VP gives: a VP whose load is above the fair share (sum of the loads, including the tasks
 * in the links / VPs that take part; an idle VP takes part, a VP held by a hog does not, unless
 * a quantum ends that). Each lack is served by the nearest VP before it in the ring that has a
 * surplus; with many VPs and only one busy the links make that a binomial tree. While no VP is
 * idle, loads within an eighth of the share (at most a packet) around it are left alone, and a
 * VP gives only down to the share, so equal loads are at rest. A VP looks around at once when
 * some VP is idle or its own load has doubled; otherwise after a pause that doubles as long as
 * there was nothing to do. It gives the oldest work, except the thread that will run next; while
 * the newest threads have not begun, it gives these.
 *
 * Not taken: a token that lets one VP balance at a time (stops at a hog or a sleeper); asking
 * for work at each look (an idle VP would write to lines of busy VPs: core/agent asks now and
 * then, which serves threads that compute); links from each to each for many VPs (n^2 rings, n
 * lines to poll).
 *
 * Callers: core/vp through struct kbi_sched. Runs on any stack, never blocks, never switches. */
#include <errno.h>

#include "base/option.h"
#include "sched/link.h"
#include "sched/packet.h"

enum {
	OPEN_LEAST = 64, /* tasks in packets that a poll opens: poll_every */
	STOCK = 128, /* and more, up to this many ready tasks: more than can end until the next poll */
	OPEN_ALL = 512,  /* at a tick: bounds its length */
	/* this much surplus wakes a sleeper at once, less must last two looks: waking a VP costs as
	 * much as running some dozen short threads */
	RIPE = 32,
	PAUSE_MIN = 4,   /* polls between two looks around while nobody is idle */
	PAUSE_MAX = 64,
	GATHER = 8,      /* a push looks again when the queue has grown by this part */
	REST = 3,        /* polls to let pass after a look that found no way to idle VPs */
	/* with a quantum: after this many ticks the running thread counts as one that cannot be
	 * switched away */
	HELD_MAX = 4,
	NOT_WILLING = UINT32_MAX,
};

_Static_assert((int)KBI_LINKS <= (int)KBI_SCHED_WAKES, "each receiver can be woken");

struct rotator {
	struct kbi_links links;
	/* owner only */
	uint32_t load KBI_ALIGNED(KBI_CACHE_LINE); /* as published */
	unsigned quiet, pause;          /* polls until the next look, and the length of that pause */
	unsigned settled;               /* load after the last look */
	unsigned rest;                  /* polls until the next look for idle VPs */
	unsigned ripening;              /* 1: the last look gave nothing */
	unsigned held;                  /* ticks in a row that found the same thread */
	unsigned enough;                /* ready tasks below which a push does not look */
	uint32_t sent;                  /* tasks ever sent to this VP by the time of the last look */
	const struct kbi_task *first;   /* head of the Protect Queue after the last tick */
	uint32_t *seen;                 /* [VPs] loads seen at this look, by distance */
};

/* The work of one poll. */
struct round {
	struct kbi_sched_vp *s;
	struct rotator *r;
	bool sleepers;            /* true: sleepers may be woken */
	enum kbi_sched_why why;
	bool all; /* the running thread keeps the VP: all tasks go, not just the surplus */
	unsigned share, one_more; /* fair share; VPs below this id have one more */
	unsigned surplus;
	unsigned want[KBI_LINKS]; /* tasks to give on each link */
	unsigned gone;            /* tasks given and passed on */
	unsigned used;            /* links published on: a bit for each */
};

/* Returns true if the running thread goes on after this poll. */
static bool at_tick(enum kbi_sched_why why)
{
	return why == KBI_POLL_TICK || why == KBI_POLL_ASKED;
}

static bool at_push(enum kbi_sched_why why)
{
	return why == KBI_POLL_PUSH || why == KBI_POLL_BURST;
}

/* Returns true if some VP has less than its share, whether it is idle already or not. */
static bool is_work_wanted(enum kbi_sched_why why)
{
	return why == KBI_POLL_WANTED || why == KBI_POLL_BURST;
}

static struct kbi_links *links_of(const struct kbi_sched_vp *v)
{
	struct rotator *r = v->priv;

	return &r->links;
}

/* Returns the VP d places on. */
static struct kbi_sched_vp *vp_ahead(const struct kbi_sched_vp *s, unsigned d)
{
	unsigned i = s->id + d;

	return &s->all[i >= s->nvps ? i - s->nvps : i];
}

/* Returns the VP that link k leads to. */
static struct kbi_sched_vp *vp_of_link(const struct round *a, unsigned k)
{
	return vp_ahead(a->s, a->r->links.distance[k]);
}

static uint32_t room_of_link(const struct round *a, unsigned k)
{
	return kbi_link_room(&a->r->links, links_of(vp_of_link(a, k)), k);
}

/* Returns how many packets link k takes for `amount` fresh tasks. A link that is not empty gets
 * at least as many tasks as wait in it; otherwise a receiver that does not run just now would
 * get each pushed task in a packet of its own. */
static uint32_t slots_for(const struct round *a, unsigned k, unsigned amount)
{
	uint32_t n = amount ? room_of_link(a, k) : 0;

	if (n == KBI_LINK_SLOTS || amount >= KBI_PACKET_MAX || a->all)
		return n;
	return n && amount >= kbi_link_coming(links_of(vp_of_link(a, k))) ? 1 : 0;
}

/* ---- which VPs lack tasks -------------------------------------------------------------------- */

/* Computes the fair share; the loads of the remaining VPs go to `seen`. */
static void survey_loads(struct round *a, unsigned mine)
{
	const struct kbi_sched_vp *s = a->s;
	unsigned sum = mine, n = !a->all;

	for (unsigned d = 1; d < s->nvps; d++) {
		const struct kbi_sched_vp *v = vp_ahead(s, d);

		a->r->seen[d] = NOT_WILLING;
		if (a_load_rlx(&v->hog))
			continue;
		a->r->seen[d] = a_load_rlx(&v->load) + kbi_link_coming(links_of(v));
		sum += a->r->seen[d];
		n++;
	}
	if (!n)
		return;
	a->share = sum / n + (a->all && sum % n);
	a->one_more = a->all ? 0 : sum % n;
}

/* Returns v's share. The remainder goes to the first VPs; otherwise it would all be missing at
 * the last VP. */
static unsigned share_of_vp(const struct round *a, const struct kbi_sched_vp *v)
{
	return a->share + (v->id < a->one_more);
}

/* Plans how many tasks this VP gives on each link; O(VPs). Clockwise, each lack is served by the
 * nearest VP before it that has a surplus, as brackets match. So all VPs that look at the same
 * loads come to the same plan, and no VP is served twice. Tasks on their way to a VP further on
 * count for the VP where they have arrived. `mine` excludes the running thread if all tasks go. */
static void plan_all_links(struct round *a, unsigned mine)
{
	const struct kbi_links *l = &a->r->links;
	unsigned keep, slack, left, nearer = 0, part;
	bool urgent = a->all || is_work_wanted(a->why);

	survey_loads(a, mine);
	keep = a->all ? 0 : share_of_vp(a, a->s);
	slack = a->share / 8 + 1 < KBI_PACKET_MAX ? a->share / 8 + 1 : KBI_PACKET_MAX;
	a->surplus = left = mine > keep ? mine - keep : 0;
	for (unsigned d = 1, k = 0; d < a->s->nvps && left; d++) {
		unsigned load = a->r->seen[d], share = share_of_vp(a, vp_ahead(a->s, d));
		unsigned lacks = share > load ? share - load : 0;

		k += k + 1 < l->n && l->distance[k + 1] == d;
		if (load == NOT_WILLING)
			continue;
		nearer += load > share ? load - share : 0;
		part = lacks < nearer ? lacks : nearer;
		nearer -= part;
		part = lacks - part < left ? lacks - part : left;
		left -= part;
		a->want[k] += part;
		urgent |= part && (lacks > slack || kbi_sched_idles(vp_ahead(a->s, d)));
	}
	if (!urgent && a->surplus <= slack)
		a->surplus = 0;
}

static bool no_vp_polls(const struct kbi_sched_vp *s)
{
	for (unsigned d = 1; d < s->nvps; d++)
		if (a_load_rlx(&vp_ahead(s, d)->idle) == KBI_IDLE_POLLING)
			return false;
	return true;
}

/* Plans at a push; O(links). It gives only to VPs that poll, one hop away; to sleepers if no VP
 * polls (core/vp then pushes seldom). The number of idle VPs behind a link is guessed from the
 * number of all idle VPs. */
static void plan_near_links(struct round *a, unsigned mine)
{
	const struct kbi_links *l = &a->r->links;
	unsigned idle = kbi_sched_idle_others(a->s), heads = 1, span, behind;

	for (unsigned k = 0; k < l->n; k++) {
		if (!kbi_sched_idles(vp_of_link(a, k)))
			continue;
		span = (k + 1 < l->n ? l->distance[k + 1] : a->s->nvps) - l->distance[k];
		behind = idle * span / (a->s->nvps - 1);
		a->want[k] = behind ? behind : 1;
		heads += a->want[k];
	}
	a->sleepers = a->sleepers || no_vp_polls(a->s);
	a->surplus = mine - mine / heads;
	for (unsigned k = 0; k < l->n; k++) {
		unsigned want = (a->want[k] * mine + heads - 1) / heads,
			coming = kbi_link_coming(links_of(vp_of_link(a, k)));

		a->want[k] = want > coming ? want - coming : 0;
	}
}

/* Moves the work meant for a sleeper to a VP that polls, which will wake the sleeper in our
 * stead. If no VP polls, the sleeper is woken, if this is allowed. */
static void spare_sleepers(struct round *a)
{
	unsigned states[KBI_LINKS], polling = KBI_LINKS;

	for (unsigned k = 0; k < a->r->links.n; k++) {
		states[k] = a_load_rlx(&vp_of_link(a, k)->idle);
		if (states[k] == KBI_IDLE_POLLING && room_of_link(a, k))
			polling = k;
	}
	for (unsigned k = 0; k < a->r->links.n; k++) {
		if (!a->want[k] || states[k] != KBI_IDLE_SLEEPING)
			continue;
		if (polling < KBI_LINKS)
			a->want[polling] += a->want[k];
		else if (a->sleepers)
			continue;
		a->want[k] = 0;
	}
}

/* ---- giving ---------------------------------------------------------------------------------- */

/* Returns how many tasks go on link k. */
static unsigned amount_for_link(const struct round *a, unsigned k)
{
	return a->want[k] < a->surplus ? a->want[k] : a->surplus;
}

static void put_packet(struct round *a, unsigned k, struct kbi_packet p)
{
	kbi_link_put(&a->r->links, links_of(vp_of_link(a, k)), k, p);
	a->s->given += p.n;
	a->gone += p.n;
	a->surplus -= p.n < a->surplus ? p.n : a->surplus;
	a->want[k] -= p.n < a->want[k] ? p.n : a->want[k];
}

static void publish_link(struct round *a, unsigned k)
{
	kbi_link_publish(&a->r->links, links_of(vp_of_link(a, k)), k);
	a->used |= 1u << k;
}

/* Gives tasks from the Protect Queue, farthest link first. */
static void give_ready(struct round *a, struct kbi_task *at)
{
	for (unsigned k = a->r->links.n; k-- > 0 && at;) {
		unsigned amount = amount_for_link(a, k), slots = 0, free = slots_for(a, k, amount);
		struct kbi_packet p;

		for (; amount && slots < free; slots++, amount -= p.n) {
			unsigned n = amount < KBI_PACKET_MAX ? amount : KBI_PACKET_MAX;

			p = kbi_packet_cut_newest(a->s, &at, n, vp_of_link(a, k)->id);
			if (!p.n)
				p = kbi_packet_cut(a->s, &at, n, vp_of_link(a, k)->id);
			if (!p.n)
				break;
			put_packet(a, k, p);
		}
		if (slots)
			publish_link(a, k);
	}
}

/* Passes on, unopened, the inbound packets that are more than this VP keeps. A packet that is
 * larger than the lack stays: it will be opened here. */
static void pass_packets_on(struct round *a)
{
	struct kbi_packet p;

	for (unsigned k = a->r->links.n; k-- > 0;) {
		unsigned amount = amount_for_link(a, k), slots = 0,
			free = amount ? room_of_link(a, k) : 0;

		for (; slots < free && kbi_link_take(&a->r->links, amount, &p); slots++) {
			put_packet(a, k, p);
			amount -= p.n;
		}
		if (slots)
			publish_link(a, k);
	}
}

/* Opens packets with at least `least` tasks, or more up to the stock of ready tasks, as far as
 * there are any. Returns how many tasks. */
static unsigned open_inbound(struct kbi_sched_vp *s, struct kbi_links *l, unsigned least)
{
	struct kbi_packet p;
	unsigned n = 0;

	for (; (n < least || s->pq.n < STOCK) && kbi_link_take(l, UINT32_MAX, &p); n += p.n)
		kbi_packet_open(s, p);
	kbi_link_release(l);
	return n;
}

/* ---- poll ------------------------------------------------------------------------------------ */

/* Returns the first task of the Protect Queue to give: behind the thread that will run next,
 * unless the running thread keeps that from running. */
static struct kbi_task *first_to_give(const struct kbi_sched_vp *s, enum kbi_sched_why why)
{
	struct kbi_task *t = s->pq.head;

	if (s->pq.n == s->pq.bound)
		return NULL;
	return at_tick(why) || !t ? t : t->next;
}

/* Returns true if it is time to look around. */
static bool is_look_due(const struct kbi_sched_vp *s, struct rotator *r, enum kbi_sched_why why,
	unsigned inbound)
{
	if (!inbound && !first_to_give(s, why))
		return false;
	if (at_tick(why) || at_push(why) || why == KBI_POLL_WANTED)
		return true;
	if (inbound && kbi_link_sent(&r->links) - r->sent > KBI_PACKET_MAX)
		return true;
	if (s->pq.n >= 2 * r->settled + KBI_PACKET_MAX)
		return true;
	if (kbi_sched_idle_others(s))
		return !r->rest || !r->rest--;
	if (why == KBI_POLL_IDLE || r->quiet--)
		return false;
	r->quiet = r->pause;
	return true;
}

/* Returns true if this poll may wake sleepers. A small surplus may be gone before they are
 * awake. */
static bool may_wake_sleepers(const struct rotator *r, enum kbi_sched_why why, unsigned mine)
{
	return at_tick(why) || mine > RIPE || (!at_push(why) && r->ripening);
}

static void set_look_pause(const struct kbi_sched_vp *s, struct rotator *r, enum kbi_sched_why why,
	bool moved)
{
	unsigned p = moved ? PAUSE_MIN : r->pause * 2;

	if (at_push(why)) {
		/* the next push that looks: the cost of a look is spread over the tasks that gather */
		r->enough = s->pq.n + s->pq.n / GATHER + 1;
		return;
	}
	r->pause = p < PAUSE_MAX ? p : PAUSE_MAX;
	r->rest = moved ? 0 : REST + s->nvps / 16;
	r->ripening = !moved;
}

/* Returns true if one thread has run since the last tick. If no thread was behind it, this
 * cannot be known: the last answer stays. */
static bool is_vp_hogged(const struct kbi_sched_vp *s, struct rotator *r)
{
	bool same = r->first ? kbi_sched_hogged(s, r->first) : a_load_rlx(&s->hog);

	if (!kbi_options.quantum)
		return same;
	r->held = same ? r->held + 1 : 0;
	return r->held >= HELD_MAX;
}

/* Publishes whether a hog holds the VP. With a quantum a VP always takes part: a thread that has
 * the VP alone is not asked to leave until threads wait for it. */
static void set_hog(struct kbi_sched_vp *s, bool hog)
{
	hog = hog && !kbi_options.quantum;
	if (a_load_rlx(&s->hog) != hog)
		a_store_rlx(&s->hog, hog);
}

static void plan_gifts(struct round *a, enum kbi_sched_why why, unsigned mine)
{
	a->sleepers = may_wake_sleepers(a->r, why, mine);
	if (why == KBI_POLL_PUSH)
		plan_near_links(a, mine);
	else
		plan_all_links(a, a->all ? mine - 1 : mine);
	if (a->s->limited && kbi_sched_idle_others(a->s) && a->surplus > a->s->most)
		a->surplus = a->s->most;
	spare_sleepers(a);
	/* publishes at once the load that is left when all is given, so that the receivers reckon
	 * with it */
	if (a->surplus)
		kbi_sched_publish_load(a->s, &a->r->load, mine - a->surplus);
}

static void wake_receivers(struct round *a, struct kbi_sched_wake *wake)
{
	for (unsigned k = 0; k < a->r->links.n; k++)
		if (a->used >> k & 1)
			kbi_sched_wake_add(wake, vp_of_link(a, k));
}

/* The slow part of a poll: tasks have come in, or it is time to look around. */
static unsigned exchange_packets(struct round *a, enum kbi_sched_why why, bool look_around,
	unsigned mine, unsigned inbound, struct kbi_sched_wake *wake)
{
	unsigned in = 0;

	if (look_around) {
		a->r->sent = kbi_link_sent(&a->r->links);
		plan_gifts(a, why, mine);
	}
	if (inbound && !at_push(why)) {
		if (a->surplus)
			pass_packets_on(a);
		in = open_inbound(a->s, &a->r->links, at_tick(why) ? OPEN_ALL : OPEN_LEAST);
	}
	if (a->surplus)
		give_ready(a, first_to_give(a->s, why));
	if (look_around) {
		kbi_sched_publish_load(a->s, &a->r->load, mine - a->gone);
		a->r->settled = a->surplus ? 0 : mine - a->gone;
		set_look_pause(a->s, a->r, why, a->used);
	}
	if (!a->used && !in)
		return 0;
	/* One fence for both: law 3, the new READY states before a task that was taken runs (pairs
	 * with the slow path of kbi_wait_wake); and the published tails before `idle` is read
	 * (kbi_sched_wake_add). */
	a_fence_sc();
	wake_receivers(a, wake);
	return in;
}

static KBI_NOINLINE unsigned poll_links(struct kbi_sched_vp *s, enum kbi_sched_why why,
	struct kbi_sched_wake *wake)
{
	struct rotator *r = s->priv;
	bool push = at_push(why), tick = why == KBI_POLL_TICK, hog = tick && is_vp_hogged(s, r),
		look_around;
	unsigned inbound, mine;

	inbound = kbi_link_arrived(&r->links) ? kbi_link_count(&r->links) : 0;
	mine = s->pq.n + inbound + (why != KBI_POLL_IDLE);
	kbi_sched_publish_load(s, &r->load, mine);
	if (!push) {
		r->enough = 0;
		set_hog(s, hog);
	}
	look_around = is_look_due(s, r, why, inbound);
	if (!inbound && !look_around)
		return 0;
	struct round a = { .s = s, .r = r, .why = why,
			   .all = hog || (tick && kbi_sched_idle_others(s)) };
	return exchange_packets(&a, why, look_around, mine, inbound, wake);
}

/* Returns true if there is nothing to take and nothing to give, as at the last poll: a few loads
 * that hit the nearest cache. */
static inline bool is_poll_needless(const struct kbi_sched_vp *s, const struct rotator *r,
	enum kbi_sched_why why)
{
	if (why == KBI_POLL_PUSH)
		return s->pq.n < 2 || s->pq.n < r->enough;
	return !at_tick(why) && !is_work_wanted(why) && s->pq.n < 2 &&
		s->pq.n + (why == KBI_POLL_SWITCH) == r->load && !r->enough &&
	       !kbi_link_arrived(&r->links) && !a_load_rlx(&s->hog);
}

static unsigned rotator_poll(struct kbi_sched_vp *s, enum kbi_sched_why why,
	struct kbi_sched_wake *wake)
{
	struct rotator *r = s->priv;
	unsigned in;

	wake->n = 0;
	if (kbi_likely(is_poll_needless(s, r, why)))
		return 0;
	in = poll_links(s, why, wake);
	if (why == KBI_POLL_TICK)
		r->first = s->pq.head;
	return in;
}

static void rotator_gather(struct kbi_sched_vp *s, unsigned most)
{
	if (open_inbound(s, links_of(s), most))
		a_fence_sc(); /* law 3; pairs with the slow path of kbi_wait_wake */
}

static unsigned rotator_outside(const struct kbi_sched_vp *s)
{
	return kbi_link_waiting(links_of(s));
}

static bool rotator_arrived(const struct kbi_sched_vp *s)
{
	return kbi_link_untaken(links_of(s));
}

static void rotator_fini(struct kbi_sched_vp *s, unsigned n)
{
	kbi_sched_free(s[0].priv);
	for (unsigned i = 0; i < n; i++)
		s[i].priv = NULL;
}

static int rotator_init(struct kbi_sched_vp *s, unsigned n, unsigned capacity, unsigned lock)
{
	struct rotator *r = kbi_sched_alloc(n * (sizeof(*r) + n * sizeof(*r->seen)));
	uint32_t *seen = (uint32_t *)(r + n);

	(void)capacity;
	(void)lock;
	if (!r)
		return ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		kbi_link_init(&r[i].links, n);
		r[i].pause = PAUSE_MIN;
		r[i].seen = seen + i * n;
		s[i].priv = &r[i];
	}
	return 0;
}

const struct kbi_sched kbi_sched_rotator = {
	.name = "rotator",
	.poll_every = 64,
	.private_ready = true,
	.init = rotator_init,
	.fini = rotator_fini,
	.poll = rotator_poll,
	.gather = rotator_gather,
	.outside = rotator_outside,
	.arrived = rotator_arrived,
};
