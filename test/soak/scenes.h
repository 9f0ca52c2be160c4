/* scenes.h - the scenes of a soak: small plays with threads of every kind that end by themselves,
 * and whose sums must come out right. Callers: the directors of mix.c; play(rand) runs a round. */
#ifndef KB_SOAK_SCENES_H
#define KB_SOAK_SCENES_H

#include "cast.h"

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define ADD(x, n) __atomic_add_fetch(&(x), (n), __ATOMIC_ACQ_REL)

static inline unsigned some(uint64_t *rand, unsigned least, unsigned most)
{
	return least + (unsigned)cast_rand(rand, most - least + 1);
}

static inline uint64_t soon(uint64_t *rand, uint64_t within)
{
	return kb_now() + cast_rand(rand, within);
}

/* ---- tokens: timed waits for a semaphore race its posts; no token is lost or made ------------ */
struct tokens {
	kb_sem_t sem;
	unsigned n, inside, turns;
};

static void tokens_act(struct actor *a)
{
	struct tokens *s = a->scene;

	for (unsigned i = 0; i < s->turns; i++) {
		if (kb_sem_timedwait(&s->sem, soon(&a->rand, 300 * US)) == 0) {
			CHECK(ADD(s->inside, 1) <= s->n);
			cast_pause(a);
			ADD(s->inside, -1u);
			CHECK_EQ(kb_sem_post(&s->sem), 0);
		}
		cast_pause(a);
	}
}

static void tokens(uint64_t *rand)
{
	struct tokens s = { .n = some(rand, 1, 4), .turns = some(rand, 10, 200) };

	kb_sem_init(&s.sem, s.n);
	cast_play(some(rand, 2, MAX_ACTORS), tokens_act, &s, rand);
	CHECK_EQ(kb_sem_value(&s.sem), s.n);
}

/* ---- till: a counter under a mutex, locked in all ways --------------------------------------- */
struct till {
	kb_mutex_t mutex;
	unsigned turns, counter, expected;
};

static void till_act(struct actor *a)
{
	struct till *s = a->scene;

	for (unsigned i = 0; i < s->turns; i++) {
		unsigned how = some(&a->rand, 0, 3);
		int e = how == 0   ? kb_mutex_trylock(&s->mutex)
			: how == 1 ? kb_mutex_timedlock(&s->mutex, soon(&a->rand, 200 * US))
				   : kb_mutex_lock(&s->mutex);

		if (e == 0) {
			unsigned c = s->counter;

			cast_pause(a);
			s->counter = c + 1;
			CHECK_EQ(kb_mutex_unlock(&s->mutex), 0);
			ADD(s->expected, 1);
		} else {
			CHECK_EQ(e, how == 0 ? EBUSY : ETIMEDOUT);
		}
	}
}

static void till(uint64_t *rand)
{
	struct till s = { .turns = some(rand, 10, 300) };

	kb_mutex_init(&s.mutex, (enum kb_mutex_kind)cast_rand(rand, 3));
	cast_play(some(rand, 2, MAX_ACTORS), till_act, &s, rand);
	CHECK_EQ(s.counter, s.expected);
	CHECK_EQ(kb_mutex_destroy(&s.mutex), 0);
}

/* ---- shop: a bounded buffer with condition variables; half wait with deadlines --------------- */
struct shop {
	kb_mutex_t mutex;
	kb_cond_t more, less;
	unsigned room, filled, pairs, turns;
	uint64_t in, out;
};

static void shop_wait(struct shop *s, kb_cond_t *c, uint64_t *rand)
{
	if (cast_rand(rand, 2))
		kb_cond_wait(c, &s->mutex);
	else
		kb_cond_timedwait(c, &s->mutex, soon(rand, 500 * US));
}

static void shop_move(struct actor *a, bool sell)
{
	struct shop *s = a->scene;

	kb_mutex_lock(&s->mutex);
	while (s->filled == (sell ? 0 : s->room))
		shop_wait(s, sell ? &s->more : &s->less, &a->rand);
	s->filled += sell ? -1u : 1u;
	*(sell ? &s->out : &s->in) += 1;
	if (cast_rand(&a->rand, 8))
		kb_cond_signal(sell ? &s->less : &s->more);
	else
		kb_cond_broadcast(sell ? &s->less : &s->more);
	kb_mutex_unlock(&s->mutex);
}

static void shop_act(struct actor *a)
{
	struct shop *s = a->scene;

	for (unsigned i = 0; i < s->turns; i++) {
		shop_move(a, a->number % 2);
		cast_pause(a);
	}
}

static void shop(uint64_t *rand)
{
	struct shop s = { .room = some(rand, 1, 5), .pairs = some(rand, 1, MAX_ACTORS / 2), .turns = some(rand, 10, 200) };

	kb_mutex_init(&s.mutex, KB_MUTEX_NORMAL);
	kb_cond_init(&s.more);
	kb_cond_init(&s.less);
	cast_play(2 * s.pairs, shop_act, &s, rand);
	CHECK_EQ(s.in, (uint64_t)s.pairs * s.turns);
	CHECK_EQ(s.in, s.out);
	CHECK_EQ(s.filled, 0);
}

/* ---- ring: a message goes round by events; some wait with deadlines that race it ------------- */
struct ring {
	kb_event_t event[MAX_ACTORS];
	kb_barrier_t ready;
	unsigned n, laps;
};

static uint64_t ring_take(kb_event_t *e, uint64_t *rand)
{
	uint64_t value;

	if (cast_rand(rand, 2)) {
		CHECK_EQ(kb_event_wait(e, &value), 0);
		return value;
	}
	for (;;) {
		int r = kb_event_timedwait(e, &value, soon(rand, 100 * US));

		if (r == 0)
			return value;
		CHECK_EQ(r, ETIMEDOUT);
	}
}

static void ring_act(struct actor *a)
{
	struct ring *s = a->scene;
	kb_event_t *next = &s->event[(a->number + 1) % s->n];

	kb_event_init(&s->event[a->number], NULL);
	kb_barrier_wait(&s->ready);
	if (a->number == 0)
		kb_event_notify(next, 1);
	for (unsigned lap = 0; lap < s->laps; lap++) {
		uint64_t value = ring_take(&s->event[a->number], &a->rand);

		CHECK_EQ(value, (uint64_t)lap * s->n + (a->number ? a->number : s->n));
		if (lap % 8 == 0)
			cast_pause(a);
		if (a->number || lap + 1 < s->laps)
			kb_event_notify(next, value + 1);
	}
	/* nobody notifies an event whose owner has gone */
	kb_barrier_wait(&s->ready);
}

static void ring(uint64_t *rand)
{
	struct ring s = { .n = some(rand, 2, MAX_ACTORS), .laps = some(rand, 5, 100) };

	kb_barrier_init(&s.ready, s.n);
	cast_play(s.n, ring_act, &s, rand);
}

/* ---- post: channels of any capacity, receivers that select ----------------------------------- */
struct post {
	kb_chan_t *chan[2];
	unsigned senders, turns, sending;
	uint64_t in, out;
};

static void post_send(struct actor *a, struct post *s)
{
	for (unsigned i = 0; i < s->turns; i++) {
		uint64_t v = some(&a->rand, 1, 1000);
		kb_chan_t *c = s->chan[cast_rand(&a->rand, 2)];
		int e = EAGAIN;

		while (e == EAGAIN || e == ETIMEDOUT)
			e = cast_rand(&a->rand, 2) ? kb_chan_send(c, &v) : kb_chan_timedsend(c, &v, soon(&a->rand, 200 * US));
		CHECK_EQ(e, 0);
		ADD(s->in, v);
		cast_pause(a);
	}
	if (ADD(s->sending, -1u) == 0) {
		CHECK_EQ(kb_chan_close(s->chan[0]), 0);
		CHECK_EQ(kb_chan_close(s->chan[1]), 0);
	}
}

static void post_receive(struct actor *a, struct post *s)
{
	uint64_t v[2];
	bool closed[2] = { false, false };

	while (!closed[0] || !closed[1]) {
		kb_select_case_t c[2];
		size_t n = 0, chosen;
		int e;

		for (unsigned i = 0; i < 2; i++)
			if (!closed[i])
				c[n++] = (kb_select_case_t){ .op = KB_SELECT_RECV, .chan = s->chan[i], .element = &v[i] };
		e = kb_select(c, n, cast_rand(&a->rand, 2) ? KB_FOREVER : soon(&a->rand, 200 * US), &chosen);
		if (e == ETIMEDOUT)
			continue;
		CHECK_EQ(e, 0);
		if (c[chosen].error) {
			CHECK_EQ(c[chosen].error, EPIPE);
			closed[c[chosen].chan == s->chan[1]] = true;
			continue;
		}
		ADD(s->out, *(uint64_t *)c[chosen].element);
		cast_pause(a);
	}
}

static void post_act(struct actor *a)
{
	struct post *s = a->scene;

	if (a->number < s->senders)
		post_send(a, s);
	else
		post_receive(a, s);
}

static void post(uint64_t *rand)
{
	struct post s = { .senders = some(rand, 1, MAX_ACTORS / 2), .turns = some(rand, 5, 100) };

	s.sending = s.senders;
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(kb_chan_create(&s.chan[i], sizeof(uint64_t), cast_rand(rand, 4)), 0);
	cast_play(s.senders + some(rand, 1, MAX_ACTORS / 2), post_act, &s, rand);
	CHECK_EQ(s.in, s.out);
	kb_chan_destroy(s.chan[0]);
	kb_chan_destroy(s.chan[1]);
}

/* ---- parade: barrier rounds ------------------------------------------------------------------ */
struct parade {
	kb_barrier_t barrier;
	unsigned n, rounds, serial, arrived;
};

static void parade_act(struct actor *a)
{
	struct parade *s = a->scene;

	for (unsigned r = 0; r < s->rounds; r++) {
		int e;

		ADD(s->arrived, 1);
		e = kb_barrier_wait(&s->barrier);
		CHECK(e == 0 || e == KB_BARRIER_SERIAL);
		CHECK(GET(s->arrived) >= (r + 1) * s->n);
		if (e)
			ADD(s->serial, 1);
		cast_pause(a);
	}
}

static void parade(uint64_t *rand)
{
	struct parade s = { .n = some(rand, 2, MAX_ACTORS), .rounds = some(rand, 5, 60) };

	kb_barrier_init(&s.barrier, s.n);
	cast_play(s.n, parade_act, &s, rand);
	CHECK_EQ(s.serial, s.rounds);
}

/* ---- library: readers and writers ------------------------------------------------------------ */
struct library {
	kb_rwlock_t lock;
	unsigned turns;
	uint64_t a, b;
};

static void library_act(struct actor *a)
{
	struct library *s = a->scene;

	for (unsigned i = 0; i < s->turns; i++) {
		bool writes = cast_rand(&a->rand, 4) == 0, timed = cast_rand(&a->rand, 2);
		uint64_t until = timed ? soon(&a->rand, 300 * US) : KB_FOREVER;
		int e = writes ? kb_rwlock_timedwrlock(&s->lock, until) : kb_rwlock_timedrdlock(&s->lock, until);

		if (e) {
			CHECK(timed && e == ETIMEDOUT);
			continue;
		}
		CHECK_EQ(s->a, s->b);
		if (writes)
			s->a++;
		cast_pause(a);
		if (writes)
			s->b++;
		CHECK_EQ(s->a, s->b);
		CHECK_EQ(kb_rwlock_unlock(&s->lock), 0);
	}
}

static void library(uint64_t *rand)
{
	struct library s = { .turns = some(rand, 5, 100) };

	kb_rwlock_init(&s.lock, (enum kb_rwlock_kind)cast_rand(rand, 2));
	cast_play(some(rand, 2, MAX_ACTORS), library_act, &s, rand);
	CHECK_EQ(kb_rwlock_destroy(&s.lock), 0);
}

/* ---- family: threads that create threads and join them; some are detached -------------------- */
struct family {
	kb_sem_t gone;
	unsigned orphans;
};

struct child {
	struct family *family;
	unsigned depth;
	uint64_t rand;
};

static void *orphan(void *arg)
{
	struct family *f = arg;

	kb_yield();
	kb_sem_post(&f->gone);
	return NULL;
}

static void *child(void *arg)
{
	struct child *c = arg;
	struct child sub[4];
	kb_thread_t t[4];
	unsigned n = c->depth ? some(&c->rand, 0, 4) : 0;
	uintptr_t sum = 1;

	for (unsigned i = 0; i < n; i++) {
		sub[i] = (struct child){ c->family, c->depth - 1, test_rand(&c->rand) | 1 };
		CHECK_EQ(kb_thread_create(&t[i], NULL, child, &sub[i]), 0);
	}
	if (cast_rand(&c->rand, 4) == 0) {
		kb_thread_t o;

		CHECK_EQ(kb_thread_create(&o, NULL, orphan, c->family), 0);
		CHECK_EQ(kb_thread_detach(o), 0);
		ADD(c->family->orphans, 1);
	}
	for (unsigned i = n; i-- > 0;) {
		void *r;

		if (cast_rand(&c->rand, 8) == 0)
			kb_yield();
		CHECK_EQ(kb_thread_join(t[i], &r), 0);
		sum += (uintptr_t)r;
	}
	return (void *)sum;
}

static void family_act(struct actor *a)
{
	struct child c = { a->scene, 5, a->rand };

	CHECK((uintptr_t)child(&c) >= 1);
}

static void family(uint64_t *rand)
{
	struct family f = { .orphans = 0 };

	kb_sem_init(&f.gone, 0);
	cast_play(some(rand, 1, 6), family_act, &f, rand);
	for (unsigned i = 0; i < f.orphans; i++)
		CHECK_EQ(kb_sem_wait(&f.gone), 0);
}

/* ---- night: sleeps; nobody wakes early ------------------------------------------------------- */
static void night_act(struct actor *a)
{
	for (unsigned i = 0; i < 20; i++) {
		uint64_t until = soon(&a->rand, 2 * MS);

		kb_sleep_until(until);
		CHECK(kb_now() >= until);
	}
}

static void night(uint64_t *rand)
{
	cast_play(some(rand, 1, MAX_ACTORS), night_act, NULL, rand);
}

/* ---- watchers: a word that changes without a wake-up ----------------------------------------- */
struct watchers {
	uint32_t word;
	unsigned n, seen, steps;
};

static void watchers_act(struct actor *a)
{
	struct watchers *s = a->scene;
	uint32_t at = 0;

	if (a->number == 0) {
		for (unsigned i = 1; i <= s->steps; i++) {
			while (GET(s->seen) < (i - 1) * (s->n - 1))
				kb_sleep(20 * US);
			__atomic_store_n(&s->word, i, __ATOMIC_RELEASE);
			cast_pause(a);
		}
		return;
	}
	while (at < s->steps) {
		uint64_t until = cast_rand(&a->rand, 2) ? KB_FOREVER : soon(&a->rand, 200 * US);
		int e = kb_watch32(&s->word, at, until);

		CHECK(e == 0 || (until != KB_FOREVER && e == ETIMEDOUT));
		if (e)
			continue;
		CHECK_EQ(GET(s->word), at + 1);
		at++;
		ADD(s->seen, 1);
		cast_check(a);
	}
}

static void watchers(uint64_t *rand)
{
	struct watchers s = { .n = some(rand, 2, 8), .steps = some(rand, 2, 30) };

	cast_play(s.n, watchers_act, &s, rand);
}

/* ---- hogs: compute without a call, while others need the processors -------------------------- */
static void hogs_act(struct actor *a)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t until = kb_now() + cast_rand(&a->rand, 15 * MS);

		if (a->number % 3)
			kb_sleep(cast_rand(&a->rand, 3 * MS));
		else
			while (test_now_ns() < until)
				;
		cast_check(a);
	}
}

static void hogs(uint64_t *rand)
{
	cast_play(some(rand, 1, 8), hogs_act, NULL, rand);
}

struct scene {
	const char *name;
	void (*play)(uint64_t *rand);
	unsigned weight;
	uint64_t rounds;
};

static struct scene scenes[] = {
	{ "tokens", tokens, 3, 0 },   { "till", till, 3, 0 },       { "shop", shop, 3, 0 },
	{ "ring", ring, 3, 0 },	      { "post", post, 3, 0 },       { "parade", parade, 3, 0 },
	{ "library", library, 3, 0 }, { "family", family, 3, 0 },   { "night", night, 1, 0 },
	{ "watchers", watchers, 2, 0 }, { "hogs", hogs, 1, 0 },
};
enum { SCENES = sizeof scenes / sizeof scenes[0], SCENE_WEIGHTS = 28 };

#endif
