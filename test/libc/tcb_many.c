/* libc/tcb: several kernel threads make a thousand blocks at once, while further threads create and
 * join libc threads (on libc's stacks and on their own) and open and close libraries. All blocks
 * are distinct, each works, and libc's list of threads survives: dlopen and set*id walk it at the
 * end.
 * matrix: none */
#include "tcb_runner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

enum { MAKERS = 3, EACH = 340, NOISE = 2 };

static __thread int number = 1;
static struct runner runners[MAKERS * EACH];
static bool stop;

static void body(void *arg)
{
	int i = (int)(intptr_t)arg;

	CHECK_EQ(number, 1);
	number = i;
	free(malloc(100));
	runner_pause();
	CHECK_EQ(number, i);
}

/* Every second block ends at once and is made again: the list changes at both ends of our part. */
static void *maker(void *arg)
{
	struct runner *r = arg;
	unsigned first = (unsigned)(r - runners);

	for (unsigned i = 0; i < EACH; i++) {
		runner_make(&r[i], first + i);
		if (i % 2) {
			runner_run(&r[i], body, (void *)(intptr_t)i);
			runner_free(&r[i]);
			runner_make(&r[i], first + i);
		}
		runner_start(&r[i], body, (void *)(intptr_t)(first + i));
		runner_resume(&r[i]);
	}
	return NULL;
}

static void *nothing(void *arg)
{
	number++;
	return arg;
}

static void *noise(void *arg)
{
	static char stacks[NOISE][128 << 10] __attribute__((aligned(4096)));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, stacks[(intptr_t)arg], sizeof(stacks[0])), 0);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_t a, b;
		void *lib = dlopen("libm.so.6", RTLD_NOW);

		CHECK_EQ(pthread_create(&a, &attr, nothing, NULL), 0);
		CHECK_EQ(pthread_create(&b, NULL, nothing, NULL), 0);
		pthread_join(a, NULL);
		pthread_join(b, NULL);
		if (lib)
			dlclose(lib);
	}
	pthread_attr_destroy(&attr);
	return NULL;
}

static int by_tp(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

static void check_distinct(void)
{
	static uintptr_t tps[MAKERS * EACH];

	for (int i = 0; i < MAKERS * EACH; i++)
		tps[i] = (uintptr_t)runners[i].tcb.tp;
	qsort(tps, MAKERS * EACH, sizeof(tps[0]), by_tp);
	for (int i = 1; i < MAKERS * EACH; i++)
		CHECK(tps[i] - tps[i - 1] >= 4096);
}

static void test(void)
{
	pthread_t makers[MAKERS], noises[NOISE];

	for (intptr_t i = 0; i < NOISE; i++)
		CHECK_EQ(pthread_create(&noises[i], NULL, noise, (void *)i), 0);
	for (int i = 0; i < MAKERS; i++)
		CHECK_EQ(pthread_create(&makers[i], NULL, maker, &runners[i * EACH]), 0);
	for (int i = 0; i < MAKERS; i++)
		pthread_join(makers[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < NOISE; i++)
		pthread_join(noises[i], NULL);
	check_distinct();
	for (int i = 0; i < MAKERS * EACH; i++) {
		struct runner *r = &runners[i];

		CHECK(!r->done);
		runner_resume(r);
		CHECK(r->done);
		if (i % 3)
			runner_free(r);
	}
#if defined(__GLIBC__)
	/* musl's setegid waits for an answer from every tid on the list */
	CHECK_EQ(setegid(getegid()), 0);
#endif
}

int main(void)
{
	return runner_each_mode(test);
}
