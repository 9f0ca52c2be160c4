/* matrix: sched=rotator,rotator-paper,lb2,steal vps=1
 * Under every scheduler threads that do nothing but yield all get their turn: on a single VP and on
 * several with equal loads, free and bound threads. A single thread plays the VPs in turn. */
#include "harness.h"

#ifdef __SANITIZE_THREAD__
enum {
	STEPS = 20000 /* rotator-paper walks lists: 100 times as slow with each access reported */
};
#else
enum { STEPS = 200000 };
#endif
enum { FREE = 60, BOUND = 2 };

static void fair(const struct kbi_sched *sched, unsigned n, unsigned capacity)
{
	unsigned total = n * (FREE + BOUND), countdown[16], least = UINT32_MAX;
	struct job *jobs = jobs_new(total);
	struct vps v;

	vps_init(&v, sched, n, capacity, 0);
	for (unsigned i = 0; i < total; i++) {
		if (i < n * BOUND)
			bind(&jobs[i], i % n);
		jobs[i].runs = 0;
		push_only(&v, &v.s[i % n], &jobs[i].task, false);
	}
	for (unsigned i = 0; i < n; i++)
		countdown[i] = sched->poll_every;
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = step % n;
		struct kbi_sched_vp *s = &v.s[i];
		struct kbi_task *t;

		if (!--countdown[i]) {
			countdown[i] = sched->poll_every;
			exchange(&v, s, KBI_POLL_SWITCH);
		}
		t = pop(&v, s);
		if (!t && exchange(&v, s, KBI_POLL_IDLE))
			t = pop(&v, s);
		if (!t)
			continue;
		job_of(t)->runs++;
		a_store_rlx(&job_of(t)->running, 0);
		push(&v, s, t, false);
	}
	for (unsigned i = 0; i < total; i++)
		least = jobs[i].runs < least ? jobs[i].runs : least;
	printf("%-14s %2u VPs capacity %3u: %u turns each on average, %u at least\n", sched->name, n,
	       capacity,
	       STEPS / total, least);
	CHECK(least >= STEPS / total / 2);
	vps_fini(&v);
	free(jobs);
}

int main(int argc, char **argv)
{
	static const unsigned sizes[] = { 1, 2, 4, 13 };

	for (unsigned k = 0; kbi_sched_table[k]; k++)
		for (unsigned i = 0; i < kbi_countof(sizes) &&
		    wanted(kbi_sched_table[k], argc, argv); i++) {
			fair(kbi_sched_table[k], sizes[i], 0);
			fair(kbi_sched_table[k], sizes[i], 8);
			fair(kbi_sched_table[k], sizes[i], 100);
		}
	return 0;
}
