/* bench/mutex.c - what does a mutex cost, uncontended (one thread; more threads, each with its own
 * mutex) and with 16 threads that only lock it, count and unlock? Wall-clock time / number of
 * lock+unlock pairs of all threads together. The count is checked. attempt-1 and attempt-2: the
 * lecture's two mutexes from a futex (example/lecture/futex.c explains the fault of the first). */
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crew.h"

/* A thread's own, on cache lines of their own. */
struct own {
	_Alignas(128) pthread_mutex_t posix;
	kb_mutex_t kb;
	uint64_t count;
};

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t *threads;
	uint64_t each;
	struct crew_gate gate;
	_Alignas(128) pthread_mutex_t posix;
	_Alignas(128) kb_mutex_t kb;
	_Alignas(128) uint32_t futex;
	_Alignas(128) uint64_t count;
	struct own *own;
} r;

/* The loop of each thread. */
CREW_INLINE void *turns(int (*lock)(void *), int (*unlock)(void *), void *m, uint64_t *count)
{
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--) {
		lock(m);
		++*(volatile uint64_t *)count;
		unlock(m);
	}
	return NULL;
}

CREW_INLINE int kb_lock(void *m)
{
	return kb_mutex_lock(m);
}

CREW_INLINE int kb_unlock(void *m)
{
	return kb_mutex_unlock(m);
}

CREW_INLINE int posix_lock(void *m)
{
	return pthread_mutex_lock(m);
}

CREW_INLINE int posix_unlock(void *m)
{
	return pthread_mutex_unlock(m);
}

static void *kb_main(void *arg)
{
	(void)arg;
	return turns(kb_lock, kb_unlock, &r.kb, &r.count);
}

static void *posix_main(void *arg)
{
	(void)arg;
	return turns(posix_lock, posix_unlock, &r.posix, &r.count);
}

static void *kb_own(void *arg)
{
	struct own *own = arg;

	return turns(kb_lock, kb_unlock, &own->kb, &own->count);
}

static void *posix_own(void *arg)
{
	struct own *own = arg;

	return turns(posix_lock, posix_unlock, &own->posix, &own->count);
}

/* ---- the lecture's attempts ---- */

static void futex_wait(uint32_t *futex, uint32_t value)
{
	syscall(SYS_futex, futex, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static int futex_wake(uint32_t *futex)
{
	return (int)syscall(SYS_futex, futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Counts every thread that tries to lock. */
static int lock_1(void *futex)
{
	uint32_t c;

	while ((c = __atomic_fetch_add((uint32_t *)futex, 1, __ATOMIC_SEQ_CST)) != 0)
		futex_wait(futex, c + 1);
	return 0;
}

static int unlock_1(void *futex)
{
	__atomic_store_n((uint32_t *)futex, 0, __ATOMIC_SEQ_CST);
	return futex_wake(futex);
}

static uint32_t cas(uint32_t *futex, uint32_t old, uint32_t new)
{
	__atomic_compare_exchange_n(futex, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

/* 0 free, 1 locked, 2 locked and somebody may wait. */
static int lock_2(void *futex)
{
	uint32_t c = cas(futex, 0, 1);

	while (c != 0) {
		if (c == 2 || cas(futex, 1, 2) != 0)
			futex_wait(futex, 2);
		c = cas(futex, 0, 2);
	}
	return 0;
}

static int unlock_2(void *futex)
{
	if (__atomic_fetch_sub((uint32_t *)futex, 1, __ATOMIC_SEQ_CST) == 1)
		return 0;
	__atomic_store_n((uint32_t *)futex, 0, __ATOMIC_SEQ_CST);
	return futex_wake(futex);
}

static void *attempt_1(void *arg)
{
	(void)arg;
	return turns(lock_1, unlock_1, &r.futex, &r.count);
}

static void *attempt_2(void *arg)
{
	(void)arg;
	return turns(lock_2, unlock_2, &r.futex, &r.count);
}

/* ---- measuring ---- */

/* All turns that were counted. */
static uint64_t counted(void)
{
	uint64_t n = r.count;

	for (unsigned i = 0; i < r.c->threads; i++)
		n += r.own[i].count;
	return n;
}

static double once(void *arg, uint64_t each)
{
	void *(*fn)(void *) = *(void *(**)(void *))arg;
	uint64_t before = counted();

	r.each = each;
	crew_gate_init(&r.gate, r.attr.kind, r.c->threads + 1);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_create(&r.attr, r.attr.kind, &r.threads[i], fn, &r.own[i]);
	crew_gate_wait(&r.gate);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(r.attr.kind, r.threads[i], NULL);
	double took = bench_now() - r.gate.start;
	if (counted() - before != each * r.c->threads)
		bench_fail("the mutex let two threads in: %llu of %llu", (unsigned long long)(counted() - before),
			(unsigned long long)(each * r.c->threads));
	return took;
}

static void report(const char *metric, void *(*fn)(void *))
{
	bench_report(metric, "ns", bench_scale(r.c, once, &fn) / r.c->threads * 1e9);
}

/* shared: turns at one mutex. own: turns at the thread's own mutex; with one thread both are alike. */
static void ask(const struct bench_case *c, enum crew kind, void *(*shared)(void *), void *(*own)(void *))
{
	r.c = c;
	r.threads = bench_alloc(c->threads, sizeof(uintptr_t));
	r.own = bench_alloc(c->threads, sizeof(struct own));
	pthread_mutex_init(&r.posix, NULL);
	crew_start(&r.attr, kind, c);
	kb_mutex_init(&r.kb, KB_MUTEX_NORMAL);
	for (unsigned i = 0; i < c->threads; i++) {
		pthread_mutex_init(&r.own[i].posix, NULL);
		kb_mutex_init(&r.own[i].kb, KB_MUTEX_NORMAL);
	}
	report("lock+unlock", shared);
	if (own && c->threads > 1)
		report("own mutex", own);
	free(r.own);
	free(r.threads);
}

static void run(const struct bench_case *c, enum crew kind)
{
	if (kind == CREW_PTHREAD)
		ask(c, kind, posix_main, posix_own);
	else
		ask(c, kind, kb_main, kb_own);
}

CREW_WAYS(run)

static void way_1(const struct bench_case *c)
{
	ask(c, CREW_PTHREAD, attempt_1, NULL);
}

static void way_2(const struct bench_case *c)
{
	ask(c, CREW_PTHREAD, attempt_2, NULL);
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
