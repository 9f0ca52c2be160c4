/* bench/local.c - what is a thread's own costs: errno, a __thread variable, pthread_getspecific and pthread_setspecific
 * (the lecture's ways from one errno for all to one for each). N threads do it and let the others have a turn now and
 * then, so that under Kochab what is theirs is switched with them. Wall-clock time / number of accesses of all. */
#include <errno.h>
#include <stdlib.h>

#include "crew.h"

enum { TURN = 4096 }; /* accesses between two yields */

static __thread volatile long own;
static pthread_key_t key;
static kb_key_t kb_key;
/* Compilers ask once where errno is and keep the answer. */
static int *(*volatile where)(void) = __errno_location;

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t *threads;
	void (*access)(void);
	uint64_t each;
	struct crew_gate gate;
} r;

static void errno_turn(void)
{
	for (unsigned i = 0; i < TURN; i++)
		*where() = (int)i;
}

static void thread_turn(void)
{
	for (unsigned i = 0; i < TURN; i++)
		own = own + 1;
}

static void get_turn(void)
{
	for (unsigned i = 0; i < TURN; i++)
		if (pthread_getspecific(key) != &r)
			bench_fail("pthread_getspecific: not what was set");
}

static void set_turn(void)
{
	for (unsigned i = 0; i < TURN; i++)
		if (pthread_setspecific(key, &r))
			bench_fail("pthread_setspecific failed");
}

static void kb_get_turn(void)
{
	for (unsigned i = 0; i < TURN; i++)
		if (kb_getspecific(kb_key) != &r)
			bench_fail("kb_getspecific: not what was set");
}

static void kb_set_turn(void)
{
	for (unsigned i = 0; i < TURN; i++)
		if (kb_setspecific(kb_key, &r))
			bench_fail("kb_setspecific failed");
}

static void *worker(void *arg)
{
	int posix = r.attr.kind == CREW_PTHREAD;
	int e = posix ? pthread_setspecific(key, &r) : kb_setspecific(kb_key, &r);

	if (e)
		bench_fail("setting a key: %s", strerror(e));
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--) {
		r.access();
		if (posix)
			sched_yield();
		else
			kb_yield();
	}
	return arg;
}

static double once(void *arg, uint64_t each)
{
	(void)arg;
	r.each = each;
	crew_gate_init(&r.gate, r.attr.kind, r.c->threads + 1);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_create(&r.attr, r.attr.kind, &r.threads[i], worker, NULL);
	crew_gate_wait(&r.gate);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(r.attr.kind, r.threads[i], NULL);
	return bench_now() - r.gate.start;
}

static void ask(const char *metric, void (*access)(void))
{
	r.access = access;
	bench_report(metric, "ns", bench_scale(r.c, once, NULL) / r.c->threads / TURN * 1e9);
}

static void run(const struct bench_case *c, enum crew kind)
{
	r.c = c;
	r.threads = bench_alloc(c->threads, sizeof *r.threads);
	crew_start(&r.attr, kind, c);
	if (kind == CREW_PTHREAD ? pthread_key_create(&key, NULL) : kb_key_create(&kb_key, NULL))
		bench_fail("no key");
	/* light threads share errno and __thread variables: asked of them they would look as if they were theirs */
	if (kind != CREW_LIGHT) {
		ask("errno", errno_turn);
		ask("thread-variable", thread_turn);
	}
	ask("getspecific", kind == CREW_PTHREAD ? get_turn : kb_get_turn);
	ask("setspecific", kind == CREW_PTHREAD ? set_turn : kb_set_turn);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_local = {
	.name = "local",
	.question = "an access to what is a thread's own: errno, __thread, a key",
	.methods = methods,
	.threads = "1,100",
	.vps = "cores",
	.reference = "nptl",
};
