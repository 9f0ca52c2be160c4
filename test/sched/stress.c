/* matrix: sched=rotator,rotator-paper,lb2,steal vps=1
 * Schedulers under stress: VPs push, pop, yield, take, spawn, hog, poll, fall asleep and are woken
 * at random. Each task must finish exactly once, bound tasks run where they are bound, and no VP
 * sleeps for ever while there is work (watchdog). Random choices come from the printed seed. */
#include <errno.h>

#include "harness.h"

enum { JOBS_MAX = 60000, STUCK_NS = 30 };

static struct vps v;
static struct job *jobs;
static unsigned n_jobs;
static a32 next_job, done_jobs, stop;

struct player {
	struct kbi_sched_vp *s;
	uint64_t rand;
	unsigned countdown;
};

static unsigned chance(struct player *p, unsigned n)
{
	return (unsigned)(test_rand(&p->rand) >> 33) % n;
}

static void burn(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		kbi_compiler_barrier();
}

static void service(struct player *p)
{
	if (--p->countdown)
		return;
	p->countdown = v.sched->poll_every;
	exchange(&v, p->s, KBI_POLL_SWITCH);
}

static void spawn(struct player *p, unsigned n)
{
	while (n--) {
		unsigned i = a_load_rlx(&next_job) < n_jobs ? a_add_rlx(&next_job, 1) : n_jobs;

		if (i >= n_jobs)
			return;
		jobs[i].runs = 1 + chance(p, 20);
		if (chance(p, 16) == 0)
			bind(&jobs[i], p->s->id);
		push(&v, p->s, &jobs[i].task, chance(p, 8) == 0);
	}
}

static void hog(struct player *p)
{
	unsigned ticks = chance(p, 4);

	while (ticks--) {
		burn(20000);
		exchange(&v, p->s, KBI_POLL_TICK);
	}
}

/* Pushes a task, and perhaps takes it back. */
static void requeue(struct player *p, struct kbi_task *t)
{
	a_store_rlx(&job_of(t)->running, 0);
	push_only(&v, p->s, t, chance(p, 8) == 0);
	while (chance(p, 4) == 0 && take(&v, p->s, t)) {
		CHECK_EQ(a_load_acq(&t->state), KBI_STATE(KBI_TASK_READY, p->s->id));
		CHECK_EQ(a_load_rlx(&job_of(t)->running), 0);
		push_only(&v, p->s, t, false);
	}
}

static void finish(struct kbi_task *t)
{
	CHECK_EQ(a_add_rlx(&job_of(t)->finished, 1), 0);
	a_store_rlx(&job_of(t)->running, 0);
	a_add_rlx(&done_jobs, 1);
}

static void run(struct player *p, struct kbi_task *t)
{
	struct job *j = job_of(t);
	unsigned what = chance(p, 1000);

	if (what < 3)
		hog(p);
	else if (what < 300)
		burn(chance(p, 300));
	if (what >= 600)
		spawn(p, 1 + chance(p, what == 999 ? 3000 : 3));
	if (--j->runs)
		requeue(p, t);
	else
		finish(t);
}

static void idle(struct player *p)
{
	unsigned looks = chance(p, 200);

	set_idle(p->s, KBI_IDLE_POLLING);
	while (!exchange(&v, p->s, KBI_POLL_IDLE) && !a_load_acq(&stop))
		if (!looks--) {
			doze(&v, p->s, &stop);
			break;
		}
	set_idle(p->s, KBI_IDLE_BUSY);
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct kbi_task *t;

	while (!a_load_acq(&stop)) {
		service(p);
		t = pop(&v, p->s);
		if (t) {
			run(p, t);
			continue;
		}
		/* nothing anywhere and tasks left: go on, at any VP */
		if (a_load_rlx(&next_job) < n_jobs && chance(p, 50) == 0)
			spawn(p, 1 + chance(p, 100));
		else
			idle(p);
	}
	return NULL;
}

static void stuck(void)
{
	fprintf(stderr, "%s: no progress: %u of %u done, %u begun\n", v.sched->name,
		a_load_rlx(&done_jobs), n_jobs,
		a_load_rlx(&next_job));
	for (unsigned i = 0; i < v.n; i++)
		fprintf(stderr, "  vp %u: idle %u, doze %u, ready %u, load %u\n", i,
			a_load_rlx(&v.s[i].idle),
			a_load_rlx(&v.doze[i]), v.s[i].pq.n, a_load_rlx(&v.s[i].load));
	for (unsigned i = 0, said = 0; i < n_jobs && said < 20; i++)
		if (!a_load_rlx(&jobs[i].finished) && i < a_load_rlx(&next_job)) {
			uint64_t state = a_load_rlx(&jobs[i].task.state);

			fprintf(stderr, "  task %u: kind %d vp %u bound %d\n", i, kbi_state_kind(state),
				kbi_state_vp(state),
				kbi_task_is(&jobs[i].task, KBI_TASK_BOUND));
			said++;
		}
	test_fail(__FILE__, __LINE__, "progress");
}

/* All VPs may be asleep because every task begun has ended: then this thread begins the next
 * task. */
static void watch(void)
{
	unsigned last = 0, same = 0;

	while (a_load_rlx(&done_jobs) < n_jobs) {
		unsigned now = a_load_rlx(&done_jobs);

		usleep(1000);
		same = now == last ? same + 1 : 0;
		last = now;
		if (now == a_load_rlx(&next_job) && a_load_rlx(&v.s[0].idle_count) == v.n)
			for (unsigned i = 0; i < v.n; i++)
				rouse(&v, i);
		if (same > STUCK_NS * 1000)
			stuck();
	}
}

/* The machine may be out of kernel threads for a moment: other programs use it, too. */
static void start_player(pthread_t *id, struct player *p)
{
	int e;

	for (int i = 0; (e = pthread_create(id, NULL, play, p)) == EAGAIN && i < 1000; i++)
		usleep(10000);
	CHECK_EQ(e, 0);
}

static void stress(const struct kbi_sched *sched, unsigned n, unsigned capacity, unsigned lock,
	uint64_t seed)
{
	struct player p[64];
	pthread_t id[64];
	uint64_t start = test_now_ns();

	vps_init(&v, sched, n, capacity, lock);
	jobs = jobs_new(n_jobs);
	a_store_rlx(&next_job, 0);
	a_store_rlx(&done_jobs, 0);
	a_store_rlx(&stop, 0);
	for (unsigned i = 0; i < n; i++) {
		p[i] = (struct player){ .s = &v.s[i], .rand = seed * 64 + i + 1,
			.countdown = sched->poll_every };
		start_player(&id[i], &p[i]);
	}
	watch();
	a_store_rel(&stop, 1);
	a_fence_sc();
	for (unsigned i = 0; i < n; i++)
		rouse(&v, i);
	for (unsigned i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	for (unsigned i = 0; i < n_jobs; i++)
		CHECK_EQ(a_load_rlx(&jobs[i].finished), 1);
	printf("%-14s %2u VPs capacity %2u lock %u: %u tasks, %llu sleeps, %llu wakes, %llu ms\n",
	       sched->name, n, capacity,
	       lock, n_jobs, (unsigned long long)a_load_rlx(&v.sleeps),
	       (unsigned long long)a_load_rlx(&v.wakes),
	       (unsigned long long)(test_now_ns() - start) / 1000000);
	free(jobs);
	vps_fini(&v);
}

int main(int argc, char **argv)
{
	static const unsigned vps[] = { 1, 2, 3, 4, 8, 13 };
	const char *rounds = getenv("ROUNDS");
	uint64_t seed = test_seed();

	n_jobs = JOBS_MAX;
#ifdef __SANITIZE_THREAD__
	n_jobs /= 10;
#endif
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int r = 0; r < (rounds ? atoi(rounds) : 1); r++)
		for (unsigned k = 0; kbi_sched_table[k]; k++)
			for (unsigned i = 0; i < kbi_countof(vps) &&
			    wanted(kbi_sched_table[k], argc, argv); i++) {
				bool lb2 = !strcmp(kbi_sched_table[k]->name, "lb2");

				for (unsigned lock = 0; lock < (lb2 ? 3u : 1u); lock++)
					stress(kbi_sched_table[k], vps[i], i % 2 ? 0 : 5, lock, seed + (uint64_t)r);
			}
	return 0;
}
