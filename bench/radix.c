/* bench/radix.c - what do the start and end of threads cost a program that does both often? The
 * radix sort of "A scheduling mechanism for a lightweight process library" (sections 4.1 to 4.4):
 * 2^22 keys of 32 bits, 64 threads, radix 2^1 ... 2^16. For each digit the keys are counted in
 * parallel, one thread adds up where each piece begins, and the keys are moved in parallel. Threads
 * wait for each other as in the paper: surplus threads end before the serial part, new threads are
 * created for the parallel part. At radix 2^1 this happens 64 times.
 *
 * Compared with: the sort on kernel threads (nptl), which the paper's figures 9 and 10 have with
 * barriers of a mutex and a condition variable (nptl-cond); POSIX barriers (nptl-barrier); and the
 * time of the work itself: one kernel thread bound to each processor, at barriers that spin (spin).
 * Schedulers against each other: figure 8. The time in which each virtual processor has nothing to
 * run: table 3. Every form sorts 64 pieces. Keys are random, or a file's bytes, four to a key. Each
 * sort's result is verified: the keys are in order, and no key is lost or changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew.h"

enum { KEYS = 1 << 22, BITS_MOST = 16, SORTS = 101, KEYS_MOST = 1 << 30, APART = 16 /* numbers between two tables */ };

struct sum {
	uint64_t plain, mixed;
};

static struct {
	const struct bench_case *c;
	struct crew_attr attr;
	uintptr_t *threads;
	uint32_t *keys, *work[2], *table; /* table: how many of each digit in a piece, then where they go */
	size_t n, row;
	unsigned pieces, digits, digit;
	struct sum sum;
	/* of threads that stay */
	pthread_barrier_t posix;
	kb_barrier_t kb;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	unsigned waiting, round;
	double start, took;
	_Alignas(64) unsigned arrived;
	_Alignas(64) unsigned spun;
} r;

/* ---- the sort ---- */

static unsigned radix_of(unsigned digit)
{
	unsigned left = 32 - digit * r.c->size;

	return 1u << (left < r.c->size ? left : r.c->size);
}

static size_t begin_of(unsigned piece)
{
	return r.n * piece / r.pieces;
}

/* A digit of one bit: with a table each key would wait for the store of the previous key, and the
 * work would hide the cost of the threads. Both counts stay in registers; no branch depends on a
 * key. */
static void count_bits(unsigned digit, unsigned piece)
{
	uint32_t *table = r.table + r.row * piece, *from = r.work[digit & 1], ones[4] = { 0 };
	const size_t begin = begin_of(piece), end = begin_of(piece + 1);
	size_t i = begin;

	for (; i + 4 <= end; i += 4)
		for (unsigned k = 0; k < 4; k++)
			ones[k] += from[i + k] >> digit & 1;
	for (; i < end; i++)
		ones[0] += from[i] >> digit & 1;
	table[1] = ones[0] + ones[1] + ones[2] + ones[3];
	table[0] = (uint32_t)(end - begin) - table[1];
}

static void move_bits(unsigned digit, unsigned piece)
{
	uint32_t *table = r.table + r.row * piece, *from = r.work[digit & 1], *to = r.work[~digit & 1];
	uint32_t zero = table[0], one = table[1];

	for (size_t i = begin_of(piece), end = begin_of(piece + 1); i < end; i++) {
		const uint32_t key = from[i], bit = key >> digit & 1, place = zero ^ ((zero ^ one) & -bit);

		to[place] = key;
		one += bit;
		zero += 1 - bit;
	}
}

static void count(unsigned digit, unsigned piece)
{
	uint32_t *table = r.table + r.row * piece, *from = r.work[digit & 1];
	const uint32_t shift = digit * r.c->size, mask = radix_of(digit) - 1;

	if (r.c->size == 1) {
		count_bits(digit, piece);
		return;
	}
	memset(table, 0, r.row * sizeof *table);
	for (size_t i = begin_of(piece), end = begin_of(piece + 1); i < end; i++)
		table[from[i] >> shift & mask]++;
}

static void move(unsigned digit, unsigned piece)
{
	uint32_t *table = r.table + r.row * piece, *from = r.work[digit & 1], *to = r.work[~digit & 1];
	const uint32_t shift = digit * r.c->size, mask = radix_of(digit) - 1;

	if (r.c->size == 1) {
		move_bits(digit, piece);
		return;
	}
	for (size_t i = begin_of(piece), end = begin_of(piece + 1); i < end; i++)
		to[table[from[i] >> shift & mask]++] = from[i];
}

/* The serial part: numbers become places. */
static void add_up(unsigned digit)
{
	uint32_t sum = 0, n;

	for (unsigned d = 0; d < radix_of(digit); d++)
		for (unsigned i = 0; i < r.pieces; i++) {
			n = r.table[r.row * i + d];
			r.table[r.row * i + d] = sum;
			sum += n;
		}
}

/* ---- the keys ---- */

static struct sum sum_of(const uint32_t *keys)
{
	struct sum s = { 0, 0 };

	for (size_t i = 0; i < r.n; i++) {
		s.plain += keys[i];
		s.mixed += (keys[i] + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 7;
	}
	return s;
}

static void made_up(void)
{
	uint64_t x = 88172645463325252;

	r.n = KEYS;
	r.keys = bench_alloc(r.n, sizeof *r.keys);
	for (size_t i = 0; i < r.n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		r.keys[i] = (uint32_t)(x >> 16);
	}
}

static void from_file(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t have = 0, size;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st))
		bench_fail("%s: %s", name, strerror(errno));
	size = (size_t)st.st_size;
	if (!S_ISREG(st.st_mode) || !size || size / 4 > KEYS_MOST)
		bench_fail("%s: no file of 1 byte to %u MiB", name, KEYS_MOST / 1024 / 1024 * 4);
	r.n = (size + 3) / 4;
	r.keys = bench_alloc(r.n, sizeof *r.keys); /* zero behind the last byte */
	while (have < size && (n = read(fd, (char *)r.keys + have, size - have)) > 0)
		have += (size_t)n;
	if (have < size)
		bench_fail("%s: %s", name, n < 0 ? strerror(errno) : "it has become shorter");
	close(fd);
}

static void prepare(const struct bench_case *c)
{
	const char *file = getenv("BENCH_FILE");

	if (c->size > BITS_MOST)
		bench_skip("digits of 1 to %d bits", BITS_MOST);
	r.c = c;
	r.pieces = c->threads;
	r.digits = (32 + c->size - 1) / c->size;
	if (file)
		from_file(file);
	else
		made_up();
	r.sum = sum_of(r.keys);
	r.work[0] = bench_alloc(r.n, sizeof *r.keys);
	r.work[1] = bench_alloc(r.n, sizeof *r.keys);
	r.row = (1u << c->size) + APART;
	r.table = bench_alloc(r.row * r.pieces, sizeof *r.table);
	r.threads = bench_alloc(r.pieces, sizeof *r.threads);
}

static void refill(void)
{
	memcpy(r.work[0], r.keys, r.n * sizeof *r.keys);
}

static void verify(void)
{
	const uint32_t *keys = r.work[r.digits & 1];
	struct sum s = sum_of(keys);

	for (size_t i = 1; i < r.n; i++)
		if (keys[i - 1] > keys[i])
			bench_fail("keys %zu and %zu are not in order", i - 1, i);
	if (s.plain != r.sum.plain || s.mixed != r.sum.mixed)
		bench_fail("other keys came out than went in");
}

/* ---- threads that end and are created ---- */

static void *count_piece(void *i)
{
	count(r.digit, (unsigned)(uintptr_t)i);
	return NULL;
}

static void *move_piece(void *i)
{
	move(r.digit, (unsigned)(uintptr_t)i);
	return NULL;
}

/* The thread that goes on has the first piece. */
CREW_INLINE void in_parallel(enum crew kind, void *(*each)(void *))
{
	for (unsigned i = 1; i < r.pieces; i++)
		crew_create(&r.attr, kind, &r.threads[i], each, (void *)(uintptr_t)i);
	each(NULL);
	for (unsigned i = 1; i < r.pieces; i++)
		crew_join(kind, r.threads[i], NULL);
}

CREW_INLINE double fork_join(enum crew kind)
{
	double start = bench_now();

	for (r.digit = 0; r.digit < r.digits; r.digit++) {
		in_parallel(kind, count_piece);
		add_up(r.digit);
		in_parallel(kind, move_piece);
	}
	return bench_now() - start;
}

static double fork_join_kb(void)
{
	return fork_join(CREW_LIGHT);
}

static double fork_join_posix(void)
{
	return fork_join(CREW_PTHREAD);
}

/* ---- threads that stay and wait for each other ---- */

static void wait_posix(void)
{
	pthread_barrier_wait(&r.posix);
}

static void wait_kb(void)
{
	kb_barrier_wait(&r.kb);
}

static void wait_cond(void)
{
	unsigned round;

	pthread_mutex_lock(&r.lock);
	round = r.round;
	if (++r.waiting == r.pieces) {
		r.waiting = 0;
		r.round++;
		pthread_cond_broadcast(&r.turn);
	}
	while (round == r.round)
		pthread_cond_wait(&r.turn, &r.lock);
	pthread_mutex_unlock(&r.lock);
}

/* A thread that leaves sees everything that was written before any thread arrived: the last
 * thread's acq_rel add to r.arrived sees the adds before it, and its release store of r.spun pairs
 * with the acquire load by which the waiting threads leave. */
static void wait_spinning(void)
{
	unsigned round = __atomic_load_n(&r.spun, __ATOMIC_RELAXED);

	if (__atomic_add_fetch(&r.arrived, 1, __ATOMIC_ACQ_REL) < r.c->vps) {
		while (__atomic_load_n(&r.spun, __ATOMIC_ACQUIRE) == round)
			;
		return;
	}
	__atomic_store_n(&r.arrived, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&r.spun, round + 1, __ATOMIC_RELEASE);
}

/* Thread i of n. */
CREW_INLINE void stay(unsigned i, unsigned n, void (*wait)(void))
{
	const unsigned begin = r.pieces * i / n, end = r.pieces * (i + 1) / n;

	wait();
	if (i == 0)
		r.start = bench_now();
	for (unsigned digit = 0; digit < r.digits; digit++) {
		for (unsigned k = begin; k < end; k++)
			count(digit, k);
		wait();
		if (i == 0)
			add_up(digit);
		wait();
		for (unsigned k = begin; k < end; k++)
			move(digit, k);
		wait();
	}
	if (i == 0)
		r.took = bench_now() - r.start;
}

#define STAYS(name, n, wait)                             \
	static void *name(void *i)                       \
	{                                                \
		stay((unsigned)(uintptr_t)i, (n), wait); \
		return NULL;                             \
	}
STAYS(stays_posix, r.pieces, wait_posix)
STAYS(stays_cond, r.pieces, wait_cond)
STAYS(stays_kb, r.pieces, wait_kb)
STAYS(stays_spinning, r.c->vps, wait_spinning)
#undef STAYS

CREW_INLINE double staying(enum crew kind, void *(*fn)(void *))
{
	for (unsigned i = 0; i < r.pieces; i++)
		crew_create(&r.attr, kind, &r.threads[i], fn, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < r.pieces; i++)
		crew_join(kind, r.threads[i], NULL);
	return r.took;
}

static double barrier_posix(void)
{
	return staying(CREW_PTHREAD, stays_posix);
}

static double barrier_cond(void)
{
	return staying(CREW_PTHREAD, stays_cond);
}

static double barrier_kb(void)
{
	return staying(CREW_LIGHT, stays_kb);
}

static double spinning(void)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	for (unsigned i = 0; i < r.c->vps; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(bench_cpu(i), &set);
		pthread_attr_setaffinity_np(&attr, sizeof set, &set);
		if (pthread_create((pthread_t *)&r.threads[i], &attr, stays_spinning, (void *)(uintptr_t)i))
			bench_skip("no thread on each processor");
	}
	for (unsigned i = 0; i < r.c->vps; i++)
		pthread_join((pthread_t)r.threads[i], NULL);
	return r.took;
}

/* ---- measuring ---- */

enum { VPS_SHOWN = BENCH_METRICS - 1 };

static double idle_ms(unsigned vp)
{
	uint64_t ns;

	return kb_vp_idle(vp, &ns) ? 0 : (double)ns * 1e-6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The first sort is not counted: all memory is touched for the first time. Idle times are per sort,
 * without the time between two sorts. */
static void measure(const struct bench_case *c, enum crew kind, double (*sort)(void))
{
	double ms[SORTS], idle[VPS_SHOWN] = { 0 }, sum = 0;
	unsigned n = 0, vps = kind != CREW_PTHREAD && c->vps <= VPS_SHOWN ? c->vps : 0;
	char name[BENCH_WORD];

	for (int warm = 0; !warm || (sum < c->seconds && n < SORTS); warm = 1) {
		double before[VPS_SHOWN], took;

		refill();
		for (unsigned v = 0; v < vps; v++)
			before[v] = idle_ms(v);
		took = sort();
		for (unsigned v = 0; warm && v < vps; v++)
			idle[v] += idle_ms(v) - before[v];
		verify();
		if (!warm)
			continue;
		sum += took;
		ms[n++] = took * 1e3;
	}
	qsort(ms, n, sizeof *ms, compare);
	bench_report(getenv("BENCH_FILE") ? "turnaround-file" : "turnaround", "ms", ms[n / 2]);
	for (unsigned v = 0; v < vps; v++) {
		snprintf(name, sizeof name, "idle-VP%u", v);
		bench_report(name, "ms", idle[v] / n);
	}
}

/* Allocates the memory after Kochab has started: virtual processors that are processes share memory
 * mapped afterwards. */
CREW_INLINE void run(const struct bench_case *c, enum crew kind, double (*sort)(void))
{
	crew_start(&r.attr, kind, c);
	prepare(c);
	if (kind == CREW_PTHREAD) {
		pthread_barrier_init(&r.posix, NULL, r.pieces);
		pthread_mutex_init(&r.lock, NULL);
		pthread_cond_init(&r.turn, NULL);
	} else {
		kb_barrier_init(&r.kb, r.pieces);
	}
	measure(c, kind, sort);
}

#define WAY(name, kind, sort)                            \
	static void name(const struct bench_case *c)     \
	{                                                \
		run(c, kind, sort);                      \
	}
WAY(way_spin, CREW_PTHREAD, spinning)
WAY(way_nptl, CREW_PTHREAD, fork_join_posix)
WAY(way_nptl_barrier, CREW_PTHREAD, barrier_posix)
WAY(way_nptl_cond, CREW_PTHREAD, barrier_cond)
WAY(way_kochab, CREW_LIGHT, fork_join_kb)
WAY(way_kochab_barrier, CREW_LIGHT, barrier_kb)
#undef WAY

static const struct bench_method methods[] = {
	{ "spin", way_spin, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "nptl", way_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 4096, "too many kernel threads", 0, 0 },
	{ "nptl-barrier", way_nptl_barrier, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 4096, "too many kernel threads", 0, 0 },
	{ "nptl-cond", way_nptl_cond, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 4096, "too many kernel threads", 0, 0 },
	{ "rotator", way_kochab, 0, "KOCHAB_SCHED=rotator", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "rotator-paper", way_kochab, 0, "KOCHAB_SCHED=rotator-paper", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "lb2-semop", way_kochab, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=semop", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "lb2-futex", way_kochab, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=futex", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "lb2-spin", way_kochab, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=spin", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "steal", way_kochab, 0, "KOCHAB_SCHED=steal", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-barrier", way_kochab_barrier, 0, "KOCHAB_SCHED=rotator", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_radix = {
	.name = "radix",
	.question = "radix sort of 2^22 keys, threads that end and are created for each phase",
	.methods = methods,
	.threads = "64",
	.vps = "cores",
	.reference = "nptl",
	.sizes = "1,2,4,8,12,16",
	.size_name = "radix 2^%u",
	.reads_file = 1,
	.both_bodies = 1,
};
