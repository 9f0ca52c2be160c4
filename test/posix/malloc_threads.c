/* Blocks taken by a thread, resized by a second and freed by a third, their contents checked at
 * each step; threads that end with blocks of further threads, and leave theirs. Also run with
 * libkochab-malloc.so by malloc_kochab.sh. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 6, GENERATIONS = 4, SHELF = 512, STEPS = 15000 };

struct block {
	size_t n;
	uint64_t seed;
	uint64_t words[];
};

static struct block *shelf[SHELF]; /* exchanged atomically */

static struct block *shape(struct block *b, size_t words, uint64_t *random)
{
	b = realloc(b, sizeof *b + words * 8);
	CHECK(b);
	b->n = words;
	b->seed = test_rand(random);
	for (size_t i = 0; i < words; i++)
		b->words[i] = b->seed + i;
	return b;
}

static void verify(const struct block *b)
{
	for (size_t i = 0; i < b->n; i++)
		CHECK(b->words[i] == b->seed + i);
}

static size_t any_length(uint64_t *random)
{
	uint64_t r = test_rand(random);

	return r % 1000 == 0 ? (r >> 20) % 20000 : r % 50 == 0 ? (r >> 20) % 1000 : (r >> 20) % 60;
}

static void step(uint64_t *random)
{
	struct block **place = &shelf[test_rand(random) % SHELF];
	struct block *b = NULL;

	if (test_rand(random) % 4)
		b = shape(NULL, any_length(random), random);
	b = __atomic_exchange_n(place, b, __ATOMIC_ACQ_REL);
	if (!b)
		return;
	verify(b);
	if (test_rand(random) % 8 == 0) {
		b = shape(b, any_length(random), random);
		verify(b);
	}
	free(b);
}

static void *work(void *arg)
{
	uint64_t random = test_seed() + (uintptr_t)arg * 7919;

	for (unsigned i = 0; i < STEPS; i++) {
		step(&random);
		if (i % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	test_seed(); /* settled before threads ask for it */
	for (uintptr_t g = 0; g < GENERATIONS; g++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, work, (void *)(g * THREADS + i + 1)), 0);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
	}
	for (unsigned i = 0; i < SHELF; i++)
		if (shelf[i]) {
			verify(shelf[i]);
			free(shelf[i]);
		}
	return 0;
}
