/* arch/generic/cpu.h - an unknown machine: no pause, the clock for ticks, no thread pointer.
 * Callers: all rooms (relax, ticks). Ticks are nanoseconds of CLOCK_MONOTONIC.
 * KBI_HAVE_TP is 0: threads share the TLS of their kernel thread (light threads). The kbi_tp_*
 * functions exist so that code under `if (KBI_HAVE_TP)` compiles. */
#ifndef KBI_ARCH_CPU_H
#define KBI_ARCH_CPU_H

#include <time.h>

#include "base/base.h"

#define KBI_HAVE_TP 0
#define kbi_tp_fast false

static inline void kbi_tp_init(bool allow_fast)
{
	(void)allow_fast;
}

static inline void kbi_cpu_relax(void)
{
	kbi_compiler_barrier();
}

static inline uint64_t kbi_cpu_ticks(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void *kbi_tp_get(void)
{
	return NULL;
}

static inline void kbi_tp_set(void *tp)
{
	(void)tp;
	__builtin_trap();
}

#define KBI_TWICE_CALL(name, before, after, otherwise) \
	__typeof__(otherwise()) name(void) \
	{ \
		return otherwise(); \
	} \
	_Static_assert(1, "")

#endif
