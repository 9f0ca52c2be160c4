/* bench/mutex.c - what does a mutex cost, uncontended (one thread) and with 16 threads that do nothing
 * but lock it, count and unlock? Wall-clock time / number of lock+unlock pairs of all threads together.
 * The count is checked. attempt-1 and attempt-2: the lecture's two mutexes from a futex (example/lecture/futex.c tells
 * what is wrong with the first). */
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crew.h"

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t *threads;
	uint64_t each;
	struct crew_gate gate;
	_Alignas(64) pthread_mutex_t posix;
	_Alignas(64) kb_mutex_t kb;
	_Alignas(64) uint32_t futex;
	_Alignas(64) uint64_t count;
} r;

static void *kb_main(void *arg)
{
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--) {
		kb_mutex_lock(&r.kb);
		r.count++;
		kb_mutex_unlock(&r.kb);
	}
	return arg;
}

static void *posix_main(void *arg)
{
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--) {
		pthread_mutex_lock(&r.posix);
		r.count++;
		pthread_mutex_unlock(&r.posix);
	}
	return arg;
}

/* ---- the lecture's attempts ---- */

static void futex_wait(uint32_t value)
{
	syscall(SYS_futex, &r.futex, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(void)
{
	syscall(SYS_futex, &r.futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Counts everybody who tries. */
static void lock_1(void)
{
	uint32_t c;

	while ((c = __atomic_fetch_add(&r.futex, 1, __ATOMIC_SEQ_CST)) != 0)
		futex_wait(c + 1);
}

static void unlock_1(void)
{
	__atomic_store_n(&r.futex, 0, __ATOMIC_SEQ_CST);
	futex_wake();
}

static uint32_t cas(uint32_t old, uint32_t new)
{
	__atomic_compare_exchange_n(&r.futex, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

/* 0 free, 1 locked, 2 locked and somebody may wait. */
static void lock_2(void)
{
	uint32_t c = cas(0, 1);

	while (c != 0) {
		if (c == 2 || cas(1, 2) != 0)
			futex_wait(2);
		c = cas(0, 2);
	}
}

static void unlock_2(void)
{
	if (__atomic_fetch_sub(&r.futex, 1, __ATOMIC_SEQ_CST) == 1)
		return;
	__atomic_store_n(&r.futex, 0, __ATOMIC_SEQ_CST);
	futex_wake();
}

CREW_INLINE void *attempt(void (*lock)(void), void (*unlock)(void))
{
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--) {
		lock();
		r.count++;
		unlock();
	}
	return NULL;
}

static void *attempt_1(void *arg)
{
	(void)arg;
	return attempt(lock_1, unlock_1);
}

static void *attempt_2(void *arg)
{
	(void)arg;
	return attempt(lock_2, unlock_2);
}

/* ---- measuring ---- */

static double once(void *arg, uint64_t each)
{
	void *(*fn)(void *) = *(void *(**)(void *))arg;

	r.each = each;
	r.count = 0;
	crew_gate_init(&r.gate, r.attr.kind, r.c->threads + 1);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_create(&r.attr, r.attr.kind, &r.threads[i], fn, NULL);
	crew_gate_wait(&r.gate);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(r.attr.kind, r.threads[i], NULL);
	double took = bench_now() - r.gate.start;
	if (r.count != each * r.c->threads)
		bench_fail("the mutex let two threads in: %llu of %llu", (unsigned long long)r.count,
			(unsigned long long)(each * r.c->threads));
	return took;
}

static void ask(const struct bench_case *c, enum crew kind, void *(*fn)(void *))
{
	r.c = c;
	r.threads = bench_alloc(c->threads, sizeof(uintptr_t));
	pthread_mutex_init(&r.posix, NULL);
	crew_start(&r.attr, kind, c);
	kb_mutex_init(&r.kb, KB_MUTEX_NORMAL);
	bench_report("lock+unlock", "ns", bench_scale(c, once, &fn) / c->threads * 1e9);
	free(r.threads);
}

static void run(const struct bench_case *c, enum crew kind)
{
	ask(c, kind, kind == CREW_PTHREAD ? posix_main : kb_main);
}

CREW_WAYS(run)

static void way_1(const struct bench_case *c)
{
	ask(c, CREW_PTHREAD, attempt_1);
}

static void way_2(const struct bench_case *c)
{
	ask(c, CREW_PTHREAD, attempt_2);
}

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	{ "attempt-1", way_1, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	{ "attempt-2", way_2, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_mutex = {
	.name = "mutex",
	.question = "lock, count, unlock: wall time per pair of all threads together",
	.methods = methods,
	.threads = "1,16",
	.vps = "1,cores",
	.reference = "nptl",
	.peers = 1,
};
