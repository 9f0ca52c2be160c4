/* matrix: none
 * The rotator's gifts, their receivers, and the tasks that it leaves alone; a single thread plays
 * all VPs, so that each step is known. */
#include "base/option.h"
#include "harness.h"
#include "sched/link.h"

static struct vps v;
static struct job *jobs;
static unsigned used;

static void begin(unsigned n)
{
	vps_init(&v, &kbi_sched_rotator, n, 0, 0);
	jobs = jobs_new(20000);
	used = 0;
}

static void end(void)
{
	vps_fini(&v);
	free(jobs);
}

/* Puts n fresh tasks into VP i's queue; returns the first of them. */
static struct job *give(unsigned i, unsigned n)
{
	struct job *first = &jobs[used];

	while (n--)
		push_only(&v, &v.s[i], &jobs[used++].task, false);
	return first;
}

static struct kbi_sched_wake poll(unsigned i, enum kbi_sched_why why)
{
	struct kbi_sched_wake wake = { .n = 99 };

	v.sched->poll(&v.s[i], why, &wake);
	CHECK(wake.n <= KBI_SCHED_WAKES);
	return wake;
}

/* Returns the tasks that VP i holds, unopened packets included. */
static unsigned ready(unsigned i)
{
	return v.s[i].pq.n + v.sched->outside(&v.s[i]);
}

static void idle_all(enum kbi_sched_idle state)
{
	for (unsigned i = 1; i < v.n; i++)
		set_idle(&v.s[i], state);
}

static void next_to_run_stays(void)
{
	begin(2);
	idle_all(KBI_IDLE_POLLING);
	give(0, 1);
	poll(0, KBI_POLL_SWITCH);
	poll(0, KBI_POLL_PUSH);
	poll(1, KBI_POLL_IDLE);
	CHECK_EQ(ready(0), 1);
	CHECK_EQ(ready(1), 0);
	end();
}

static void push_reaches_a_poller(void)
{
	struct job *j;

	begin(2);
	idle_all(KBI_IDLE_POLLING);
	j = give(0, 2);
	CHECK_EQ(poll(0, KBI_POLL_PUSH).n, 0);
	CHECK_EQ(ready(0), 1);
	CHECK_EQ(j[1].task.state.v_, KBI_STATE(KBI_TASK_WAIVED, 1));
	CHECK(v.s[0].pq.head == &j[0].task && v.s[0].pq.tail == &j[0].task);
	poll(1, KBI_POLL_IDLE);
	CHECK_EQ(ready(1), 1);
	CHECK(v.s[1].pq.head == &j[1].task);
	CHECK_EQ(j[1].task.state.v_, KBI_STATE(KBI_TASK_READY, 1));
	end();
}

static void push_leaves_the_busy_alone(void)
{
	begin(4);
	set_idle(&v.s[3], KBI_IDLE_POLLING);
	give(0, 9);
	poll(0, KBI_POLL_PUSH);
	for (unsigned i = 1; i < 4; i++)
		poll(i, i == 3 ? KBI_POLL_IDLE : KBI_POLL_SWITCH);
	CHECK_EQ(ready(1) + ready(2), 0);
	CHECK(ready(3) > 0 && ready(0) > 0);
	end();
}

static void half_at_once(void)
{
	begin(2);
	idle_all(KBI_IDLE_POLLING);
	give(0, 4000);
	poll(0, KBI_POLL_SWITCH);
	CHECK(ready(0) >= 1999 && ready(0) <= 2001);
	/* tasks on their way are reckoned with while the receiver does not look */
	for (unsigned i = 0; i < 100; i++)
		poll(0, KBI_POLL_SWITCH);
	CHECK(ready(0) >= 1999);
	for (unsigned i = 0; i < 4; i++)
		poll(1, KBI_POLL_IDLE);
	CHECK_EQ(ready(0) + ready(1), 4000);
	end();
}

static void oldest_first_and_in_order(void)
{
	struct job *j;
	struct kbi_task *t;

	begin(2);
	idle_all(KBI_IDLE_POLLING);
	j = give(0, 300);
	poll(0, KBI_POLL_SWITCH);
	while (v.s[1].pq.n < ready(1))
		poll(1, KBI_POLL_IDLE);
	CHECK(v.s[0].pq.head == &j[0].task);
	CHECK(v.s[0].pq.tail == &j[299].task);
	t = v.s[1].pq.head;
	for (unsigned i = 1; t; t = t->next, i++)
		CHECK_EQ(t->index, i);
	for (unsigned n = ready(1); n > 0; n--)
		CHECK(pop(&v, &v.s[1]) != NULL);
	end();
}

/* Packets are opened as their tasks are wanted, some at each poll, and go on unopened to a VP that
 * lacks tasks. */
static void packets_stay_closed(void)
{
	unsigned opened;

	begin(3);
	for (unsigned i = 0; i < 2; i++)
		give(2 * i, 3000); /* nothing is missing at VP 2 */
	poll(2, KBI_POLL_PUSH); /* no VP is idle: publishes the load, gives nothing */
	set_idle(&v.s[1], KBI_IDLE_POLLING);
	poll(0, KBI_POLL_SWITCH);
	opened = ready(1);
	CHECK(opened >= 990 && opened <= 1010);
	poll(1, KBI_POLL_IDLE);
	set_idle(&v.s[1], KBI_IDLE_BUSY);
	CHECK_EQ(v.s[1].pq.n, 128);
	CHECK_EQ(v.s[1].taken, 128);
	CHECK_EQ(ready(1), opened);
	poll(1, KBI_POLL_SWITCH);
	CHECK_EQ(v.s[1].pq.n, 192);
	v.sched->gather(&v.s[1], 200);
	CHECK(v.s[1].pq.n >= 392 && v.s[1].pq.n < 392 + 64);
	for (unsigned i = 0; i < 20; i++)
		poll(1, KBI_POLL_SWITCH);
	CHECK_EQ(v.s[1].pq.n, opened);
	end();
}

static void tick_gives_all_but_bound(void)
{
	struct job *j;

	begin(2);
	idle_all(KBI_IDLE_POLLING);
	for (unsigned i = 0; i < 10; i += 2)
		bind(&jobs[i], 0);
	j = give(0, 10);
	poll(0, KBI_POLL_TICK);
	poll(1, KBI_POLL_IDLE);
	CHECK_EQ(ready(0), 5);
	CHECK_EQ(v.s[0].pq.bound, 5);
	CHECK_EQ(ready(1), 5);
	for (unsigned i = 0; i < 10; i++)
		CHECK_EQ(kbi_state_vp(j[i].task.state.v_), i % 2);
	for (unsigned i = 0; i < 5; i++)
		CHECK(pop(&v, &v.s[0]) != NULL);
	CHECK(pop(&v, &v.s[0]) == NULL);
	end();
}

/* With the running task there are ten: the idle VP gets five, the tasks that would wait longest for
 * the running task. */
static void an_asked_tick_gives_the_share(void)
{
	struct job *j;

	begin(2);
	idle_all(KBI_IDLE_POLLING);
	j = give(0, 9);
	poll(0, KBI_POLL_ASKED);
	poll(1, KBI_POLL_IDLE);
	CHECK_EQ(ready(0), 4);
	CHECK_EQ(ready(1), 5);
	for (unsigned i = 0; i < 9; i++)
		CHECK_EQ(kbi_state_vp(j[i].task.state.v_), i < 5);
	poll(0, KBI_POLL_ASKED);
	poll(1, KBI_POLL_IDLE);
	CHECK_EQ(ready(1), 5); /* it has its share */
	for (unsigned i = 0; i < 2; i++)
		while (pop(&v, &v.s[i]))
			;
	end();
}

static void a_sleeper_is_woken(void)
{
	struct kbi_sched_wake w = { .n = 0 };

	begin(2);
	idle_all(KBI_IDLE_SLEEPING);
	give(0, 3);
	CHECK_EQ(poll(0, KBI_POLL_SWITCH).n, 0); /* may be gone soon */
	for (unsigned i = 0; i < 10 && ready(0) == 3; i++)
		w = poll(0, KBI_POLL_SWITCH);
	CHECK(w.n == 1 && w.vp[0] == 1);
	end();
	begin(2);
	idle_all(KBI_IDLE_SLEEPING);
	give(0, 1);
	w = poll(0, KBI_POLL_TICK);
	CHECK(w.n == 1 && w.vp[0] == 1 && ready(0) == 0);
	end();
}

static void a_poller_wakes_in_our_stead(void)
{
	struct kbi_sched_wake w;

	begin(4);
	idle_all(KBI_IDLE_SLEEPING);
	set_idle(&v.s[2], KBI_IDLE_POLLING);
	give(0, 400);
	CHECK_EQ(poll(0, KBI_POLL_SWITCH).n, 0);
	CHECK(ready(0) <= 101);
	w = poll(2, KBI_POLL_IDLE);
	CHECK_EQ(w.n, 2);
	CHECK(w.vp[0] + w.vp[1] == 4);
	end();
}

static void equal_loads_rest(unsigned n, unsigned each)
{
	uint64_t before = 0, after = 0;

	begin(n);
	for (unsigned i = 0; i < n; i++)
		give(i, each);
	for (unsigned i = 0; i < n; i++)
		poll(i, KBI_POLL_PUSH); /* no VP is idle: publishes the load, gives nothing */
	for (unsigned round = 0; round < 2000; round++)
		for (unsigned i = 0; i < n; i++)
			poll(i, KBI_POLL_SWITCH);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(v.s[i].given, 0);
	/* and uneven loads come to rest */
	give(0, 5 * n);
	give(n / 2, 3 * n);
	for (unsigned round = 0; round < 4000; round++) {
		if (round == 2000)
			for (unsigned i = 0; i < n; i++)
				before += v.s[i].given;
		for (unsigned i = 0; i < n; i++)
			poll(i, KBI_POLL_SWITCH);
	}
	for (unsigned i = 0; i < n; i++)
		after += v.s[i].given;
	CHECK_EQ(before, after);
	end();
}

/* With a quantum other tasks have their turn on a VP that a thread holds, so that VP takes its
 * share, too. */
static void with_a_quantum_a_hog_takes_its_share(void)
{
	kbi_options.quantum = 10000;
	begin(2);
	give(0, 30);
	poll(0, KBI_POLL_TICK);
	poll(0, KBI_POLL_TICK);
	CHECK(ready(0) > 8); /* not all at once */
	/* a thread that cannot be switched away: all other tasks go */
	for (unsigned round = 0; round < 8; round++)
		poll(0, KBI_POLL_TICK);
	CHECK_EQ(ready(0), 0);
	CHECK_EQ(v.s[0].hog.v_, 0);
	/* but it gets its share again */
	for (unsigned round = 0; round < 4; round++) {
		poll(1, KBI_POLL_TICK);
		poll(0, KBI_POLL_TICK);
	}
	CHECK(ready(0) > 8);
	end();
	kbi_options.quantum = 0;
}

static void hogs_rest_and_others_get_it(void)
{
	uint64_t given;

	begin(3);
	give(0, 10);
	give(1, 10);
	poll(0, KBI_POLL_TICK);
	poll(0, KBI_POLL_TICK);
	CHECK_EQ(v.s[0].hog.v_, 1);
	CHECK_EQ(ready(0), 0);
	/* now the other VPs run hogs as well: no VP wants any */
	for (unsigned round = 0; round < 6; round++)
		for (unsigned i = 0; i < 3; i++)
			poll(i, KBI_POLL_TICK);
	given = v.s[0].given + v.s[1].given + v.s[2].given;
	for (unsigned round = 0; round < 100; round++)
		for (unsigned i = 0; i < 3; i++)
			poll(i, KBI_POLL_TICK);
	CHECK_EQ(v.s[0].given + v.s[1].given + v.s[2].given, given);
	/* a VP switches again: it wants, and gets */
	poll(2, KBI_POLL_SWITCH);
	CHECK_EQ(v.s[2].hog.v_, 0);
	for (unsigned round = 0; round < 4; round++) {
		poll(0, KBI_POLL_TICK);
		poll(1, KBI_POLL_TICK);
		poll(2, KBI_POLL_SWITCH);
	}
	CHECK_EQ(ready(2), 20);
	end();
}

static void a_full_link_keeps(void)
{
	begin(2);
	give(0, 20000);
	for (unsigned i = 0; i < 4000; i++)
		poll(0, KBI_POLL_SWITCH);
	CHECK(ready(0) >= 20000 - KBI_LINK_SLOTS * KBI_PACKET_MAX);
	set_idle(&v.s[1], KBI_IDLE_POLLING);
	for (unsigned i = 0; i < 4000; i++) {
		poll(0, KBI_POLL_SWITCH);
		poll(1, KBI_POLL_SWITCH);
	}
	CHECK_EQ(ready(0) + ready(1), 20000);
	CHECK(ready(1) >= 9900 && ready(1) <= 10100);
	end();
}

/* All tasks on a single VP, all other VPs idle: counts the rounds until each has a part of its
 * share. */
static unsigned rounds_to_spread(unsigned n, unsigned percent)
{
	unsigned rounds = 0;
	bool all;

	begin(n);
	idle_all(KBI_IDLE_POLLING);
	give(0, 10000);
	do {
		all = true;
		for (unsigned i = n; i-- > 0;) /* against the ring: a hop a round */
			poll(i, v.s[i].pq.n ? KBI_POLL_SWITCH : KBI_POLL_IDLE);
		for (unsigned i = 0; i < n; i++) {
			all &= ready(i) >= 10000 / n * percent / 100;
			set_idle(&v.s[i], v.s[i].pq.n ? KBI_IDLE_BUSY : KBI_IDLE_POLLING);
		}
		CHECK(++rounds < 1000);
	} while (!all);
	end();
	return rounds;
}

static void small_differences_rest(void)
{
	begin(2);
	give(0, 20);
	give(1, 24);
	poll(0, KBI_POLL_PUSH);
	for (unsigned i = 0; i < 1000; i++) {
		poll(1, KBI_POLL_SWITCH);
		poll(0, KBI_POLL_SWITCH);
	}
	CHECK_EQ(ready(0), 20);
	give(1, 10);
	for (unsigned i = 0; i < 1000; i++) {
		poll(1, KBI_POLL_SWITCH);
		poll(0, KBI_POLL_SWITCH);
	}
	CHECK_EQ(ready(0), 27);
	end();
}

static void one_vp(void)
{
	begin(1);
	give(0, 100);
	for (unsigned i = 0; i < 1000; i++)
		for (unsigned why = KBI_POLL_SWITCH; why <= KBI_POLL_ASKED; why++)
			CHECK_EQ(poll(0, (enum kbi_sched_why)why).n, 0);
	CHECK_EQ(ready(0), 100);
	end();
}

static void names(void)
{
	CHECK(kbi_sched_find("rotator") == &kbi_sched_rotator);
	CHECK(kbi_sched_find("rotator-paper") == &kbi_sched_rotator_paper);
	CHECK(kbi_sched_find("lb2") == &kbi_sched_lb2);
	CHECK(kbi_sched_find("steal") == &kbi_sched_steal);
	CHECK(kbi_sched_find("rotato") == NULL && kbi_sched_find("") == NULL);
}

int main(void)
{
	static const unsigned sizes[] = { 2, 3, 4, 8, 9, 10, 16, 33 };

	names();
	one_vp();
	next_to_run_stays();
	push_reaches_a_poller();
	push_leaves_the_busy_alone();
	half_at_once();
	oldest_first_and_in_order();
	packets_stay_closed();
	tick_gives_all_but_bound();
	an_asked_tick_gives_the_share();
	a_sleeper_is_woken();
	a_poller_wakes_in_our_stead();
	for (unsigned i = 0; i < kbi_countof(sizes); i++) {
		equal_loads_rest(sizes[i], 1);
		equal_loads_rest(sizes[i], 20);
	}
	small_differences_rest();
	hogs_rest_and_others_get_it();
	with_a_quantum_a_hog_takes_its_share();
	a_full_link_keeps();
	printf("rounds until all have 80 %%, 40 %% of their share of 10,000:");
	for (unsigned n = 2; n <= 256; n *= 2)
		printf(" %u VPs %u, %u;", n, rounds_to_spread(n, 80), rounds_to_spread(n, 40));
	printf("\n");
	CHECK(rounds_to_spread(8, 80) <= 6);
	CHECK(rounds_to_spread(64, 40) <= 20);
	return 0;
}
