/* bench/latency.h - how often each latency was seen, in log-linear classes: 128 of them for each
 * power of two, so that a percentile is too large by less than one part in 128. Nanoseconds; from
 * 2^40 (18 minutes) on all are in the last class. A single thread counts; several threads' counts
 * are added up when they have ended. */
#ifndef KOCHAB_BENCH_LATENCY_H
#define KOCHAB_BENCH_LATENCY_H

#include <stdint.h>

enum { LATENCY_BITS = 7, LATENCY_PART = 1 << LATENCY_BITS, LATENCY_CLASSES = (40 - LATENCY_BITS + 1) * LATENCY_PART };

struct latency {
	uint64_t total, longest;
	uint32_t count[LATENCY_CLASSES];
};

/* Below 128 each number has a class of its own; from there on numbers with the same length and the
 * same first eight bits share a class. The first bit is always set. */
static inline unsigned latency_class(uint64_t ns)
{
	if (ns < LATENCY_PART)
		return (unsigned)ns;
	unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - LATENCY_BITS;
	uint64_t class = (uint64_t)shift * LATENCY_PART + (ns >> shift);

	return class < LATENCY_CLASSES ? (unsigned)class : LATENCY_CLASSES - 1;
}

/* The largest number of the class. */
static inline uint64_t latency_top(unsigned class)
{
	if (class < LATENCY_PART)
		return class;
	unsigned shift = class / LATENCY_PART - 1;

	return ((uint64_t)(class % LATENCY_PART + LATENCY_PART + 1) << shift) - 1;
}

static inline void latency_add(struct latency *l, uint64_t ns)
{
	l->count[latency_class(ns)]++;
	l->total++;
	l->longest = ns > l->longest ? ns : l->longest;
}

static inline void latency_merge(struct latency *into, const struct latency *from)
{
	for (unsigned i = 0; i < LATENCY_CLASSES; i++)
		into->count[i] += from->count[i];
	into->total += from->total;
	into->longest = from->longest > into->longest ? from->longest : into->longest;
}

/* The latency that this part of all (0.99) does not exceed; 0 if there are none. */
static inline uint64_t latency_of(const struct latency *l, double part)
{
	double sum = 0, wanted = part * (double)l->total;

	for (unsigned i = 0; i < LATENCY_CLASSES; i++)
		if ((sum += l->count[i]) >= wanted && sum > 0)
			return latency_top(i) < l->longest ? latency_top(i) : l->longest;
	return l->longest;
}

#endif
