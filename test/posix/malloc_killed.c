/* libkochab-malloc.so where a process that is a virtual processor is killed and has a successor:
 * the memory that the heap had given to the killed process is the successor's, whatever its number,
 * and not the next new kernel thread's. Run by malloc_kochab.sh (options body, contain, on_kill,
 * scope, spare_ms); by itself nothing is killed. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { WORKERS = 6, BLOCKS = 40, ROUNDS = 4 };

static int stop;
/* of a round: kernel threads that allocate; whether they have been counted */
static unsigned alive, seen;

static void exchange(unsigned char **block, uint64_t *random, unsigned char mark)
{
	unsigned i = (unsigned)(test_rand(random) % BLOCKS);
	size_t n = 1 + i * 7;

	if (block[i])
		for (size_t j = 0; j < n; j++)
			CHECK_EQ(block[i][j], mark);
	free(block[i]);
	block[i] = malloc(n);
	CHECK(block[i] != NULL);
	memset(block[i], mark, n);
}

static void clear(unsigned char **block)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		free(block[i]);
}

static void *work(void *arg)
{
	unsigned char *block[BLOCKS] = { 0 }, mark = (unsigned char)(uintptr_t)arg;
	uint64_t random = test_seed() + mark;

	for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); i++) {
		exchange(block, &random, mark);
		if (i % 50 == 0)
			sched_yield();
	}
	clear(block);
	return NULL;
}

/* All threads of a round begin before the first ends: the heap has nothing left over for the
 * last. */
static void *kernel_thread(void *arg)
{
	unsigned char *block[BLOCKS] = { 0 };
	uint64_t random = test_seed();

	exchange(block, &random, 'k');
	__atomic_add_fetch(&alive, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&seen, __ATOMIC_ACQUIRE))
		usleep(100);
	for (unsigned i = 0; i < 3000; i++)
		exchange(block, &random, 'k');
	clear(block);
	return arg;
}

/* Returns the number of kernel threads and processes for which the heap keeps blocks. 0: it is
 * libc's heap. */
static long owned(void)
{
	size_t (*json)(char *, size_t) =
		(size_t (*)(char *, size_t))(uintptr_t)dlsym(RTLD_DEFAULT, "kb_heap_stats_json");
	static char text[16384];
	long owners = 0, orphans = 0;
	const char *at;

	if (!json || !getenv("KOCHAB_SCOPE")) /* otherwise they are no kernel threads */
		return 0;
	json(text, sizeof text);
	at = strstr(text, "\"owners\"");
	CHECK(at && sscanf(at, "\"owners\": %ld, \"orphans\": %ld", &owners, &orphans) == 2);
	return owners - orphans;
}

/* before: the number for which the heap kept blocks before the first round. */
static void one_round(long before, unsigned n)
{
	pthread_t t[2 * ROUNDS];
	pthread_attr_t a;

	alive = seen = 0;
	pthread_attr_init(&a);
	CHECK_EQ(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(pthread_create(&t[i], &a, kernel_thread, NULL), 0);
	while (__atomic_load_n(&alive, __ATOMIC_ACQUIRE) < n)
		usleep(100);
	if (before && before + (long)n > owned()) {
		fprintf(stderr, "%u kernel threads more, but %ld owners instead of %ld\n", n, owned(),
			before);
		abort();
	}
	__atomic_store_n(&seen, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	pthread_attr_destroy(&a);
}

/* Kills the process that runs the caller, which goes on in the successor. */
static void be_killed(void)
{
	const char *body = getenv("KOCHAB_BODY"), *on_kill = getenv("KOCHAB_ON_KILL");
	char number[32] = "";
	pid_t before;

	if (!body || strcmp(body, "process") || !on_kill || strcmp(on_kill, "spare"))
		return;
	CHECK(readlink("/proc/self", number, sizeof number - 1) > 0);
	before = atoi(number);
	CHECK_EQ(kill(before, SIGKILL), 0);
	while (kill(before, 0) == 0) /* the number is free when the supervisor has handled the end */
		usleep(1000);
}

static void *rounds(void *arg)
{
	long before = owned();

	for (unsigned i = 0; i < ROUNDS; i++) {
		be_killed();
		one_round(before, 2 * (i + 1));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	return arg;
}

int main(void)
{
	pthread_t t[WORKERS], r;

	for (uintptr_t i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, work, (void *)('a' + i)), 0);
	CHECK_EQ(pthread_create(&r, NULL, rounds, NULL), 0);
	CHECK_EQ(pthread_join(r, NULL), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
