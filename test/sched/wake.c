/* matrix: sched=rotator,rotator-paper,lb2,steal vps=1
 * No lost wake-up between a giver and a VP that falls asleep: a task is given away at a tick, and
 * the giver does nothing more until the task has run elsewhere. If giver and sleeper miss each
 * other both stand still for ever (watchdog). Without the fence after giving the rotator hangs here
 * on x86-64 (three runs of three). Under lb2 and steal an offered task stays where its owner finds
 * it too, and the next tick looks again: so the giver ticks on here. */
#include <sched.h>

#include "harness.h"

enum { VPS = 2, STUCK_S = 10 };

static struct vps v;
static struct job *job;
static a32 stop, ran;
static unsigned rounds = 150000;

static void receive_one(struct kbi_sched_vp *s, unsigned looks)
{
	struct kbi_task *t;

	while (looks && !exchange(&v, s, KBI_POLL_IDLE))
		looks--;
	if (!looks)
		doze(&v, s, &stop);
	set_idle(s, KBI_IDLE_BUSY);
	while ((t = pop(&v, s)) || (exchange(&v, s, KBI_POLL_IDLE) && (t = pop(&v, s)))) {
		a_store_rlx(&job_of(t)->running, 0);
		/* release: partner is the giver's acquire load; the task is free again */
		a_add_acqrel(&ran, 1);
	}
	set_idle(s, KBI_IDLE_POLLING);
}

static void *receive(void *arg)
{
	struct kbi_sched_vp *s = arg;
	uint64_t rand = test_seed() * 8 + s->id;

	set_idle(s, KBI_IDLE_POLLING);
	while (!a_load_acq(&stop))
		receive_one(s, (unsigned)(test_rand(&rand) >> 56));
	set_idle(s, KBI_IDLE_BUSY);
	return NULL;
}

static void lost(unsigned round)
{
	fprintf(stderr, "%s: round %u: state %llx, idle %u, doze %u\n", v.sched->name, round,
		(unsigned long long)a_load_rlx(&job->task.state), a_load_rlx(&v.s[1].idle),
			a_load_rlx(&v.doze[1]));
	test_fail(__FILE__, __LINE__, "a wake-up was lost");
}

static void give_one(unsigned round, uint64_t *rand, bool strict)
{
	struct kbi_sched_vp *s = &v.s[0];
	uint64_t start = 0;

	for (unsigned n = (unsigned)(test_rand(rand) >> 54); n > 0; n--)
		kbi_compiler_barrier();
	push_only(&v, s, &job->task, false);
	do
		exchange(&v, s, KBI_POLL_TICK);
	while (s->pq.n); /* no VP was idle at that moment */
	for (unsigned spins = 1; a_load_acq(&ran) == round; spins++) {
		if (spins % 1024)
			continue;
		if (!strict)
			exchange(&v, s, KBI_POLL_TICK);
		sched_yield();
		start = start ? start : test_now_ns();
		if (test_now_ns() - start > STUCK_S * 1000000000ull)
			lost(round);
	}
}

static void wakes(const struct kbi_sched *sched, bool strict)
{
	uint64_t rand = test_seed() * 8;
	pthread_t id[VPS];

	vps_init(&v, sched, VPS, 0, 0);
	job = jobs_new(1);
	a_store_rlx(&stop, 0);
	a_store_rlx(&ran, 0);
	for (unsigned i = 1; i < VPS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, receive, &v.s[i]), 0);
	for (unsigned round = 0; round < rounds; round++)
		give_one(round, &rand, strict);
	a_store_rel(&stop, 1);
	a_fence_sc(); /* partner: the fence in doze */
	for (unsigned i = 1; i < VPS; i++) {
		rouse(&v, i);
		pthread_join(id[i], NULL);
	}
	printf("%-14s %u tasks given, %llu sleeps, %llu wakes\n", sched->name, rounds,
	       (unsigned long long)a_load_rlx(&v.sleeps), (unsigned long long)a_load_rlx(&v.wakes));
	free(job);
	vps_fini(&v);
}

int main(int argc, char **argv)
{
#ifdef __SANITIZE_THREAD__
	rounds /= 10;
#endif
	test_seed();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned k = 0; kbi_sched_table[k]; k++)
		if (wanted(kbi_sched_table[k], argc, argv))
			wakes(kbi_sched_table[k], !strncmp(kbi_sched_table[k]->name, "rotator", 7));
	return 0;
}
