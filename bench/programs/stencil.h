/* bench/programs/stencil.h - a kernel of scientific programs: a square of numbers, each becomes the mean of its four
 * neighbours, again and again; all rows of a sweep at once, then everybody waits. Used by openmp.c and tbb.cc:
 *     PROGRAM THREADS SECONDS
 * Prints the ns of each sweep, a line each, and ends with 1 where the numbers are not those of one thread alone. */
#ifndef KOCHAB_BENCH_PROGRAMS_STENCIL_H
#define KOCHAB_BENCH_PROGRAMS_STENCIL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 256, SWEEPS = 100000 };

typedef double square[SIDE][SIDE];

static square stencil_even, stencil_odd, stencil_alone[2];

static inline uint64_t stencil_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void stencil_row(square to, square from, int y)
{
	for (int x = 1; x < SIDE - 1; x++)
		to[y][x] = (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]) / 4;
}

static inline void stencil_fill(square s)
{
	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++)
			s[y][x] = (x * 7 + y * 13) % 101;
}

/* sweep(to, from): all inner rows, by all threads. */
static inline int stencil_main(int argc, char **argv, void (*prepare)(int threads), void (*sweep)(square, square))
{
	static uint64_t took[SWEEPS];
	uint64_t begin, end, t;
	unsigned n = 0;

	if (argc != 3)
		return 2;
	prepare(atoi(argv[1]));
	stencil_fill(stencil_even);
	stencil_fill(stencil_odd);
	stencil_fill(stencil_alone[0]);
	stencil_fill(stencil_alone[1]);
	begin = t = stencil_now();
	end = begin + (uint64_t)(atof(argv[2]) * 1e9);
	while ((t < end || n < 2) && n < SWEEPS) {
		sweep(n % 2 ? stencil_even : stencil_odd, n % 2 ? stencil_odd : stencil_even);
		took[n++] = stencil_now() - t;
		t += took[n - 1];
	}
	for (unsigned i = 0; i < n; i++)
		for (int y = 1; y < SIDE - 1; y++)
			stencil_row(stencil_alone[(i + 1) % 2], stencil_alone[i % 2], y);
	if (memcmp(n % 2 ? stencil_odd : stencil_even, stencil_alone[n % 2], sizeof(square)) != 0) {
		fprintf(stderr, "wrong numbers after %u sweeps\n", n);
		return 1;
	}
	for (unsigned i = 0; i < n; i++)
		printf("%llu\n", (unsigned long long)took[i]);
	return 0;
}

#endif
