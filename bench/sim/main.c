/* bench/sim/main.c - `sim WORK [options]`: simulates one program once and writes a line of JSON.
 * Called by bench/simulate. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "work.h"

static const char usage[] =
	"usage: sim WORK --costs FILE [options]\n"
	"  --vps N (8)   --sched rotator|rotator-paper|lb2|steal   --lock futex|semop|spin   "
	"--threads N   --rounds N\n"
	"  --seed N (1)  --spread   --service NS (2000)   --turn NS   "
	"--capacity N   --pollers N   --spin-us N\n"
	"  --asleep   --pause NS "
	"  --cost NAME=VALUE\n"
	"Works: ring, distribute, skew, phases, spawn, yield, channels. "
	"The same arguments give the same line.\n";

enum { O_COSTS = 256, O_VPS, O_SCHED, O_LOCK, O_THREADS, O_ROUNDS, O_SEED, O_SPREAD, O_SERVICE,
	O_TURN, O_CAPACITY, O_POLLERS, O_SPIN, O_COST, O_ASLEEP, O_PAUSE, O_HELP };

static const struct option options[] = {
	{ "costs", 1, 0, O_COSTS },	  { "vps", 1, 0, O_VPS },	    { "sched", 1, 0, O_SCHED },
	{ "lock", 1, 0, O_LOCK },	  { "threads", 1, 0, O_THREADS },   { "rounds", 1, 0, O_ROUNDS },
	{ "seed", 1, 0, O_SEED },	  { "spread", 0, 0, O_SPREAD },	    { "service", 1, 0, O_SERVICE },
	{ "turn", 1, 0, O_TURN },	  { "capacity", 1, 0, O_CAPACITY }, { "pollers", 1, 0, O_POLLERS },
	{ "spin-us", 1, 0, O_SPIN },	  { "cost", 1, 0, O_COST },	    { "asleep", 0, 0, O_ASLEEP },
	{ "pause", 1, 0, O_PAUSE },	  { "help", 0, 0, O_HELP },
	{ 0 },
};

struct plan {
	const struct sim_work *work;
	struct sim_setup setup;
	const char *costs, *lock;
};

static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (end == text || *end || v < least || v > most) {
		fprintf(stderr, "sim: %s: bad value %s, allowed: %llu to %llu\n", name, text,
			(unsigned long long)least, (unsigned long long)most);
		exit(2);
	}
	return v;
}

static void set_lock(struct plan *p, const char *v)
{
	static const char *const names[] = { "futex", "semop", "spin" };

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(names[i], v)) {
			p->lock = names[i];
			kbi_options.lb2_lock = i;
			return;
		}
	fprintf(stderr, "sim: no such lock: %s\n", v);
	exit(2);
}

static void set_sched(struct plan *p, const char *v)
{
	p->setup.sched = kbi_sched_find(v);
	if (!p->setup.sched) {
		fprintf(stderr, "sim: no such scheduler: %s\n", v);
		exit(2);
	}
}

static void set_cost(struct plan *p, const char *v)
{
	if (!p->costs)
		fputs("sim: --cost comes after --costs\n", stderr);
	if (!p->costs || sim_costs_set(v))
		exit(2);
}

static void set(struct plan *p, int o, const char *v)
{
	switch (o) {
	case O_COSTS:
		p->costs = v;
		if (sim_costs_load(v))
			exit(2);
		return;
	case O_SCHED: set_sched(p, v); return;
	case O_LOCK: set_lock(p, v); return;
	case O_COST: set_cost(p, v); return;
	case O_VPS: p->setup.vps = (unsigned)number("--vps", v, 1, KBI_MAX_VPS); return;
	case O_THREADS: sim_case.threads = (uint32_t)number("--threads", v, 2, 1000000); return;
	case O_ROUNDS: sim_case.rounds = (uint32_t)number("--rounds", v, 1, 1000000); return;
	case O_SEED: p->setup.seed = number("--seed", v, 0, UINT32_MAX); return;
	case O_SPREAD: sim_case.spread = true; return;
	case O_SERVICE: sim_case.service_ns = number("--service", v, 1, 1000000000); return;
	case O_ASLEEP: sim_case.asleep = true; return;
	case O_PAUSE: sim_case.pause_ps = number("--pause", v, 0, 1000000000) * 1000; return;
	case O_TURN: sim_case.turn_ps = number("--turn", v, 0, 1000000) * 1000; return;
	case O_CAPACITY: kbi_options.capacity = (unsigned)number("--capacity", v, 0, 1048576); return;
	case O_POLLERS: kbi_options.pollers = (unsigned)number("--pollers", v, 0, KBI_MAX_VPS); return;
	case O_SPIN: kbi_options.spin_us = (unsigned)number("--spin-us", v, 0, 1000000); return;
	default:
		fputs(usage, o == O_HELP ? stdout : stderr);
		exit(o == O_HELP ? 0 : 2);
	}
}

static void parse(struct plan *p, int argc, char **argv)
{
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		set(p, o, optarg);
	for (p->work = sim_works; optind < argc && p->work->name; p->work++)
		if (!strcmp(p->work->name, argv[optind]))
			break;
	if (optind + 1 != argc || !p->costs || !p->work->name) {
		fputs(usage, stderr);
		exit(2);
	}
	if (!sim_case.threads)
		sim_case.threads = p->work->threads;
	if (!sim_case.rounds)
		sim_case.rounds = p->work->rounds;
	p->setup.main = p->work->main;
	p->setup.threads = sim_case.threads + 1 + p->setup.vps; /* distribute: one more for each VP */
}

static void show(const struct plan *p)
{
	bool lb2 = p->setup.sched == &kbi_sched_lb2;

	printf("{\"work\": \"%s\", \"sched\": \"%s%s%s\", \"vps\": %u, \"threads\": %u, "
	       "\"rounds\": %u, "
	       "\"placement\": \"%s\", ",
	       p->work->name, p->setup.sched->name, lb2 ? "-" : "", lb2 ? p->lock : "", p->setup.vps,
	       sim_case.threads, sim_case.rounds, sim_case.spread ? "spread" : "free");
	printf("\"seed\": %llu, \"capacity\": %u, \"pollers\": %u, \"service\": %llu",
	       (unsigned long long)p->setup.seed, (unsigned)kbi_options.capacity,
	       (unsigned)kbi_options.pollers, (unsigned long long)sim_case.service_ns);
	for (unsigned i = 0; i < sim_figure_n; i++)
		printf(", \"%s\": %.6g", sim_figures[i].name, sim_figures[i].value);
	printf(", \"moves\": %llu, \"wakes\": %llu, \"accesses\": %llu}\n",
	       (unsigned long long)sim_moves(), (unsigned long long)sim_wakes(),
	       (unsigned long long)sim_accesses());
}

int main(int argc, char **argv)
{
	struct plan p = {
		.setup = { .sched = &kbi_sched_rotator, .vps = 8, .seed = 1 },
		.lock = "futex"
	};

	sim_case.service_ns = 2000;
	parse(&p, argc, argv);
	if (sim_simulate(&p.setup)) {
		fputs("sim: everybody sleeps for good: a wake-up was lost, or a thread\n", stderr);
		return 1;
	}
	if (sim_wrong) {
		fprintf(stderr, "sim: %s\n", sim_wrong);
		return 1;
	}
	show(&p);
	return 0;
}
