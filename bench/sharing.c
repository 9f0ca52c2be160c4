/* bench/sharing.c - false sharing: each of N threads, on its own processor, stores to its own
 * variable. Which program is faster: variables side by side, or with padding between them? (The
 * lecture's thread1 and thread2.) Wall-clock time / number of stores of one thread: variables alone
 * on their lines do not disturb each other. */
#include <errno.h>

#include "crew.h"

enum { MOST = 64, LINE = 128 };

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t threads[MOST];
	uint64_t each;
	size_t apart; /* distance of two variables, in ints */
	struct crew_gate gate;
	_Alignas(LINE) volatile int word[MOST * LINE / sizeof(int)];
} r;

static void *stores(void *index)
{
	volatile int *mine = &r.word[(uintptr_t)index * r.apart];

	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--)
		*mine = 1;
	return NULL;
}

/* Thread i on the i-th processor, or virtual processor. */
static void create(unsigned i)
{
	cpu_set_t set;
	int e;

	if (r.attr.kind != CREW_PTHREAD) {
		kb_attr_setvp(&r.attr.kb, (int)i);
		crew_create(&r.attr, CREW_LIGHT, &r.threads[i], stores, (void *)(uintptr_t)i);
		return;
	}
	CPU_ZERO(&set);
	CPU_SET(bench_cpu(i), &set);
	e = pthread_attr_setaffinity_np(&r.attr.posix, sizeof set, &set);
	if (e)
		bench_fail("pthread_attr_setaffinity_np: %s", strerror(e));
	crew_create(&r.attr, CREW_PTHREAD, &r.threads[i], stores, (void *)(uintptr_t)i);
}

static double once(void *arg, uint64_t each)
{
	(void)arg;
	r.each = each;
	crew_gate_init(&r.gate, r.attr.kind, r.c->threads + 1);
	for (unsigned i = 0; i < r.c->threads; i++)
		create(i);
	crew_gate_wait(&r.gate);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(r.attr.kind, r.threads[i], NULL);
	return bench_now() - r.gate.start;
}

static void run(const struct bench_case *c, enum crew kind, size_t apart)
{
	if (c->threads > MOST || c->threads > bench_cpus())
		bench_skip("a processor for each thread, at most %d", MOST);
	r.c = c;
	r.apart = apart;
	crew_start(&r.attr, kind, c);
	bench_report("store", "ns", bench_scale(c, once, NULL) * 1e9);
}

#define WAY(name, kind, apart)                           \
	static void name(const struct bench_case *c)     \
	{                                                \
		run(c, kind, apart);                     \
	}
WAY(nptl_adjacent, CREW_PTHREAD, 1)
WAY(nptl_padded, CREW_PTHREAD, LINE / sizeof(int))
WAY(kochab_adjacent, CREW_LIGHT, 1)
WAY(kochab_padded, CREW_LIGHT, LINE / sizeof(int))
#undef WAY

static const struct bench_method methods[] = {
	{ "nptl-adjacent", nptl_adjacent, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "nptl-padded", nptl_padded, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-adjacent", kochab_adjacent, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-padded", kochab_padded, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_sharing = {
	.name = "sharing",
	.question = "a store to one's own variable, beside others' or on a line of its own",
	.methods = methods,
	.threads = "1,cores",
	.vps = "cores",
	.reference = "nptl-padded",
};
