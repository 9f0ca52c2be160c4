/* matrix: sched=rotator,rotator-paper,lb2,steal vps=1
 * The paper's table 2 without a runtime: VP 0 has 10,000 tasks, the other seven VPs have none and
 * poll; all only exchange tasks. Reports the time from there until each VP has seen that it has
 * nine tenths of its share, by the load that it publishes itself (for orientation: the VPs share
 * the machine's cores). Passes when that comes to an end under every scheduler, with the automatic
 * capacity, though no task ever ends and no VP is idle any more, and all tasks are there
 * afterwards, each once. */
#include <sched.h>

#include "harness.h"

enum { VPS = 8, TASKS = 10000, ROUNDS = 7, ENOUGH = TASKS / VPS * 9 / 10, PATIENCE_MS = 60000 };

static struct vps v;
static struct job *jobs;
static a32 go, stop, have[VPS];
static uint64_t start_ns;

static void deal(void)
{
	for (unsigned i = 0; i < TASKS; i++)
		push_only(&v, &v.s[0], &jobs[i].task, false);
	start_ns = test_now_ns();
	a_store_rel(&go, 1);
}

static void *play(void *arg)
{
	struct kbi_sched_vp *s = arg;

	if (s->id == 0)
		deal();
	else
		set_idle(s, KBI_IDLE_POLLING);
	while (!a_load_acq(&go))
		sched_yield();
	while (!a_load_acq(&stop)) {
		bool idle = a_load_rlx(&s->idle) != KBI_IDLE_BUSY;

		if (exchange(&v, s, idle ? KBI_POLL_IDLE : KBI_POLL_SWITCH) && idle)
			set_idle(s, KBI_IDLE_BUSY);
		a_store_rlx(&have[s->id], a_load_rlx(&s->load));
		sched_yield();
	}
	return NULL;
}

static unsigned least(void)
{
	unsigned min = TASKS;

	for (unsigned i = 0; i < VPS; i++)
		if (a_load_rlx(&have[i]) < min)
			min = a_load_rlx(&have[i]);
	return min;
}

/* Collects all tasks out of all queues, wherever they are; nothing runs any more. */
static void count(void)
{
	unsigned n = 0, idle_rounds = 0;

	while (idle_rounds < 2 * VPS) {
		bool found = false;

		for (unsigned i = 0; i < VPS; i++) {
			struct kbi_task *t;

			found |= exchange(&v, &v.s[i], KBI_POLL_IDLE) > 0;
			for (; (t = pop(&v, &v.s[i])); n++)
				CHECK_EQ(a_add_rlx(&job_of(t)->finished, 1), 0);
		}
		idle_rounds = found ? 0 : idle_rounds + 1;
	}
	CHECK_EQ(n, TASKS);
}

/* Time in ns, or 0: not reached. */
static uint64_t round_of(const struct kbi_sched *sched, unsigned lock, unsigned *min)
{
	pthread_t id[VPS];
	uint64_t took = 0;

	vps_init(&v, sched, VPS, 0, lock);
	jobs = jobs_new(TASKS);
	memset(have, 0, sizeof(have));
	a_store_rlx(&go, 0);
	a_store_rlx(&stop, 0);
	for (unsigned i = VPS; i-- > 0;)
		CHECK_EQ(pthread_create(&id[i], NULL, play, &v.s[i]), 0);
	while (!a_load_acq(&go))
		sched_yield();
	do {
		sched_yield();
		*min = least();
		took = test_now_ns() - start_ns;
	} while (*min < ENOUGH && took < PATIENCE_MS * 1000000ull);
	a_store_rel(&stop, 1);
	for (unsigned i = 0; i < VPS; i++)
		pthread_join(id[i], NULL);
	count();
	free(jobs);
	vps_fini(&v);
	return *min < ENOUGH ? 0 : took;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(const struct kbi_sched *sched, unsigned lock)
{
	static const char *const locks[] = { "futex", "semop", "spin" };
	uint64_t ns[ROUNDS];
	unsigned reached = 0, min, worst = TASKS;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t t = round_of(sched, lock, &min);

		if (t)
			ns[reached++] = t;
		worst = min < worst ? min : worst;
	}
	qsort(ns, reached, sizeof(*ns), compare);
	printf("%-14s %-6s", sched->name, strcmp(sched->name, "lb2") ? "" : locks[lock]);
	if (reached)
		printf(" min %7.1f us, median %7.1f us", (double)ns[0] / 1e3,
			(double)ns[reached / 2] / 1e3);
	printf(" (%u of %d rounds; the poorest VP had %u)\n", reached, ROUNDS, worst);
	CHECK_EQ(reached, ROUNDS);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned k = 0; kbi_sched_table[k]; k++) {
		bool lb2 = !strcmp(kbi_sched_table[k]->name, "lb2");

		for (unsigned lock = 0; lock < (lb2 ? 3u : 1u) &&
		    wanted(kbi_sched_table[k], argc, argv); lock++)
			report(kbi_sched_table[k], lock);
	}
	return 0;
}
