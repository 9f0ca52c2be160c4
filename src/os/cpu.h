/* os/cpu.h - processors: how many the process may really use (affinity and cgroup limits), and
 * which are idle.
 * Callers: core, os/clone_attrs, posix/time. */
#ifndef KBI_CPU_COUNT_H
#define KBI_CPU_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpulist.h"

/* A set of processors, as the kernel has it. */
struct kbi_cpus {
	uint64_t bits[KBI_CPUS / 64];
	long bytes; /* size of the kernel's sets, or -errno */
};
static inline bool kbi_cpus_has(const struct kbi_cpus *s, unsigned cpu)
{
	return cpu < KBI_CPUS && s->bits[cpu / 64] >> cpu % 64 & 1;
}
static inline void kbi_cpus_add(struct kbi_cpus *s, unsigned cpu)
{
	s->bits[cpu / 64] |= (uint64_t)1 << cpu % 64;
}
/* Reads the affinity of a kernel thread; tid 0: the caller. */
void kbi_cpus_read(int tid, struct kbi_cpus *s);
/* Sets the affinity of a kernel thread. Returns 0 or -errno. */
long kbi_cpus_give(int tid, const struct kbi_cpus *s);
/* Sets the affinity to a single processor; bytes: the size of the kernel's sets. Returns 0 or
 * -errno. */
long kbi_cpus_give_one(int tid, unsigned cpu, long bytes);

/* Returns the number of processors in the affinity mask, at least 1. */
unsigned kbi_cpu_affinity(void);
/* Returns the limit by cgroup cpu.max (v2) or cfs quota (v1) of this process, rounded up to whole
 * processors; 0: no limit. */
unsigned kbi_cpu_quota(void);
/* Returns the smaller of affinity and quota: the default number of virtual processors. */
unsigned kbi_cpu_count(void);
/* Returns true if cpu is the first processor of its core in the set. If the kernel does not tell,
 * each processor counts as a core. */
bool kbi_cpu_leads_core(unsigned cpu, const struct kbi_cpus *s);
/* Reads how long that processor has been idle since boot, in ns; the kernel counts in steps of 10
 * ms. Returns false if the kernel does not tell. */
bool kbi_cpu_idle(unsigned cpu, uint64_t *ns);

#endif
