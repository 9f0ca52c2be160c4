/* test.h - helpers for test programs: checks that say where, seeds, skipping.
 * A test exits 0 (passed), 77 (skipped: say why) or 1. Random choices come from test_rand, which
 * starts from KB_TEST_SEED (printed by test/run on a failure); single runs print the seed here. */
#ifndef KB_TEST_H
#define KB_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CHECK(cond) \
	do { \
		if (!(cond)) \
			test_fail(__FILE__, __LINE__, #cond); \
	} while (0)

#define CHECK_EQ(a, b) \
	do { \
		long long a_ = (long long)(a), b_ = (long long)(b); \
		if (a_ != b_) \
			test_fail_eq(__FILE__, __LINE__, #a, #b, a_, b_); \
	} while (0)

/* So many threads at once; ThreadSanitizer has room for 8128. */
#ifdef __SANITIZE_THREAD__
#define TEST_THREADS(n) ((n) < 5000 ? (n) : 5000)
#else
#define TEST_THREADS(n) (n)
#endif

#define SKIP(why) \
	do { \
		printf("%s\n", why); \
		exit(77); \
	} while (0)

static inline void test_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
	fflush(NULL);
	_Exit(1);
}

static inline void test_fail_eq(const char *file, int line, const char *a, const char *b, long long av, long long bv)
{
	fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", file, line, a, av, b, bv);
	fflush(NULL);
	_Exit(1);
}

/* The kernel threads of this process, as the kernel counts them: lists of threads have only the program's. */
static inline int test_kernel_threads(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	int n = 0;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) && sscanf(line, "Threads: %d", &n) != 1)
		;
	fclose(f);
	return n;
}

/* The run's seed: KB_TEST_SEED or the time, printed once by the caller's first use. */
static inline uint64_t test_seed(void)
{
	static uint64_t seed;
	const char *env;

	if (seed != 0)
		return seed;
	env = getenv("KB_TEST_SEED");
	seed = env != NULL ? strtoull(env, NULL, 10) : (uint64_t)time(NULL);
	seed += seed == 0;
	printf("seed %llu (KB_TEST_SEED)\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* xorshift64*; one state per caller, started with test_seed() + something of its own, not 0. */
static inline uint64_t test_rand(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545F4914F6CDD1Dull;
}

static inline uint64_t test_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Keeps the processor so long. */
static inline void test_compute_ns(uint64_t ns)
{
	uint64_t since = test_now_ns();

	while (test_now_ns() - since < ns)
		;
}

/* A point of time of a clock: in so many ms. */
static inline struct timespec test_in_ms(clockid_t clock, long ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

#ifdef __cplusplus
}
#endif

#endif
