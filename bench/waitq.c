/* bench/waitq.c - what does a wait queue cost, per waiter that enters and is taken out? The list
 * under a lock bit that Kochab's objects use, compared with Lesser Bear's two queues (a private
 * queue of the thread that holds the object, and a queue with a single producer per processor that
 * feeds it, without read-modify-write) and with a stack that is taken as a whole. 1 thread: waiters
 * and holder on one processor; 2: a waiter's processor and a holder's. Each form does all that a
 * mutex needs: a waiter that has queued itself must see an unlock, or be seen by it. */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"
#include "sync/waitq.h"

enum { NODES = 64, SLOTS = 64, CPUS = 2 };

struct form {
	const char *name;
	void (*in)(unsigned cpu, struct kbi_wnode *n);
	struct kbi_wnode *(*out)(void); /* NULL: empty */
};

/* ---- a list under a lock bit ---------------------------------------------------------------- */

static struct {
	a32 word;
	struct kbi_waitq q;
} locked KBI_ALIGNED(KBI_CACHE_LINE);

static void locked_in(unsigned cpu, struct kbi_wnode *n)
{
	(void)cpu;
	kbi_waitq_lock(&locked.word);
	kbi_waitq_append(&locked.q, n);
	kbi_waitq_unlock(&locked.word, KBI_WAITQ_SOME);
}

static struct kbi_wnode *locked_out(void)
{
	struct kbi_wnode *n;

	if (!(a_load_rlx(&locked.word) & KBI_WAITQ_SOME))
		return NULL;
	kbi_waitq_lock(&locked.word);
	n = kbi_waitq_take_first(&locked.q);
	kbi_waitq_unlock(&locked.word, kbi_waitq_some(&locked.q));
	return n;
}

/* ---- private queue + a single-producer queue per processor ----------------------------------- */

static struct link {
	a32 tail KBI_ALIGNED(KBI_CACHE_LINE); /* producer */
	a32 head KBI_ALIGNED(KBI_CACHE_LINE); /* holder */
	aptr slot[SLOTS] KBI_ALIGNED(KBI_CACHE_LINE);
} links[CPUS];
static struct kbi_waitq mine KBI_ALIGNED(KBI_CACHE_LINE);

static void two_in(unsigned cpu, struct kbi_wnode *n)
{
	struct link *l = &links[cpu];
	uint32_t t = a_load_rlx(&l->tail);

	a_store_rlx(&l->slot[t % SLOTS], n);
	/* release: partner is the acquire in drain */
	a_store_rel(&l->tail, t + 1);
	a_fence_sc(); /* before the waiter looks once more whether the lock is free */
}

static void drain(struct link *l)
{
	/* acquire: partner is the release in two_in */
	uint32_t h = a_load_rlx(&l->head), t = a_load_acq(&l->tail);

	if (h == t)
		return;
	for (; h != t; h++)
		kbi_waitq_append(&mine, a_load_rlx(&l->slot[h % SLOTS]));
	a_store_rel(&l->head, h);
}

/* The holder's unlock is a locked instruction before this look: its fence is not counted here. */
static struct kbi_wnode *two_out(void)
{
	if (!mine.head)
		for (unsigned i = 0; i < CPUS; i++)
			drain(&links[i]);
	return mine.head ? kbi_waitq_take_first(&mine) : NULL;
}

/* ---- a stack taken as a whole, and a private queue ------------------------------------------- */

static aptr top KBI_ALIGNED(KBI_CACHE_LINE);

static void stack_in(unsigned cpu, struct kbi_wnode *n)
{
	void *old = a_load_rlx(&top);

	(void)cpu;
	do
		n->next = old;
	while (!a_cas_rel(&top, &old, n)); /* release: partner is the acquire in stack_out */
}

static struct kbi_wnode *stack_out(void)
{
	if (!mine.head && a_load_rlx(&top)) {
		/* acquire: partner is the release in stack_in */
		struct kbi_wnode *n = a_xchg_acq(&top, NULL), *next;

		for (; n; n = next) {
			next = n->next;
			kbi_waitq_prepend(&mine, n);
		}
	}
	return mine.head ? kbi_waitq_take_first(&mine) : NULL;
}

static const struct form forms[] = {
	{ "locked", locked_in, locked_out },
	{ "two-queue", two_in, two_out },
	{ "stack", stack_in, stack_out },
};

/* ---- measuring ------------------------------------------------------------------------------- */

enum { ROUNDS = 10000 };

static struct {
	const struct form *form;
	struct kbi_wnode node[NODES];
	a64 out KBI_ALIGNED(KBI_CACHE_LINE); /* how many have been taken */
	a64 told;                            /* the round that the producer may begin; 0: no more rounds */
} b;

/* A waiter's processor: queues as long as half of the nodes are free. */
static void *producer(void *arg)
{
	for (uint64_t told = 1; told;) {
		unsigned tries = 0;

		for (uint64_t i = 0; i < ROUNDS; i++) {
			while (i - a_load_acq(&b.out) >= NODES / 2) /* partner: the release in take_all */
				kbi_waitq_pause(tries++);
			b.form->in(1, &b.node[i % NODES]);
		}
		/* acquire: partner is the release in slice */
		for (uint64_t old = told; (told = a_load_acq(&b.told)) == old;)
			kbi_waitq_pause(tries++);
	}
	return arg;
}

static void take_all(void)
{
	unsigned tries = 0;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct kbi_wnode *n;

		while (!(n = b.form->out()))
			kbi_waitq_pause(tries++);
		if (n != &b.node[i % NODES])
			bench_fail("not first in, first out");
		a_store_rel(&b.out, i + 1); /* partner: the acquire in producer */
	}
}

static void alone(void)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		b.form->in(0, &b.node[i % NODES]);
		if (b.form->out() != &b.node[i % NODES])
			bench_fail("not first in, first out");
	}
}

static double slice(void (*all)(void))
{
	double start = bench_now();

	all();
	return bench_now() - start;
}

/* The fastest of many short slices: another program's turn on the processor is in few of them. */
static void run(const struct bench_case *c, unsigned form)
{
	double best = 1, took, end = bench_now() + c->seconds;
	pthread_t t;

	b.form = &forms[form];
	a_store_rlx(&b.told, 1);
	if (c->threads > 1 && pthread_create(&t, NULL, producer, NULL))
		bench_skip("no thread");
	do {
		took = slice(c->threads > 1 ? take_all : alone);
		best = took < best ? took : best;
		a_store_rlx(&b.out, 0);
		/* release: partner is the acquire in producer */
		a_store_rel(&b.told, bench_now() < end ? a_load_rlx(&b.told) + 1 : 0);
	} while (a_load_rlx(&b.told));
	if (c->threads > 1)
		pthread_join(t, NULL);
	bench_report("in+out", "ns", best / ROUNDS * 1e9);
}

static void run_locked(const struct bench_case *c) { run(c, 0); }
static void run_two_queue(const struct bench_case *c) { run(c, 1); }
static void run_stack(const struct bench_case *c) { run(c, 2); }

static const struct bench_method methods[] = {
	{ "locked", run_locked, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 2, "1 or 2 threads", 0, 0 },
	{ "two-queue", run_two_queue, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 2, "1 or 2 threads", 0, 0 },
	{ "stack", run_stack, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 2, "1 or 2 threads", 0, 0 },
	{ 0 },
};

const struct bench bench_waitq = {
	.name = "waitq",
	.question = "one waiter into a wait queue and out again",
	.methods = methods,
	.threads = "1,2",
	.vps = "cores",
	.reference = "locked",
};
