/* bench/compute.h - pure computation: no call, no memory. A piece takes about 50 us. */
#ifndef KOCHAB_BENCH_COMPUTE_H
#define KOCHAB_BENCH_COMPUTE_H

#include <stdint.h>

enum { COMPUTE_STEPS = 30000 };

static inline void compute_steps(unsigned steps)
{
	uint64_t x = 88172645463325252;

	for (unsigned i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		__asm__ volatile("" : "+r"(x));
	}
}

static inline void compute_piece(void)
{
	compute_steps(COMPUTE_STEPS);
}

#endif
