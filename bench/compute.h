/* bench/compute.h - a piece of pure computation, about 50 us: no call, no memory. */
#ifndef KOCHAB_BENCH_COMPUTE_H
#define KOCHAB_BENCH_COMPUTE_H

#include <stdint.h>

enum { COMPUTE_STEPS = 30000 };

static inline void compute_piece(void)
{
	uint64_t x = 88172645463325252;

	for (unsigned i = 0; i < COMPUTE_STEPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		__asm__ volatile("" : "+r"(x));
	}
}

#endif
