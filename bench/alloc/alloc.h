/* bench/alloc/alloc.h - shared by the allocation loads: a number from the command line, a
 * generator, threads. Each load is a plain POSIX program, measured from outside (bench/alloc/run)
 * with each allocator preloaded. */
#ifndef ALLOC_H
#define ALLOC_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline long argument(int argc, char **argv, int i, long otherwise)
{
	return argc > i ? strtol(argv[i], NULL, 0) : otherwise;
}

/* xorshift64 */
static inline uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static inline void *get_block(size_t n)
{
	void *p = malloc(n);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static inline pthread_t start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg)) {
		fputs("no thread\n", stderr);
		exit(1);
	}
	return t;
}

static inline void run_threads(long n, void *(*fn)(void *))
{
	pthread_t *t = get_block((size_t)(n > 0 ? n : 0) * sizeof *t);

	for (long i = 0; i < n; i++)
		t[i] = start_thread(fn, (void *)(i + 1));
	for (long i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
}

#endif
