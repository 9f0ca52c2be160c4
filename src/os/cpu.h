/* os/cpu.h - processors: how many this process may really use (affinity and cgroup limits); which is idle. */
#ifndef KBI_CPU_COUNT_H
#define KBI_CPU_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpulist.h"

/* A set of processors, as the kernel has it. */
struct kbi_cpus {
	uint64_t bits[KBI_CPUS / 64];
	long bytes; /* that the kernel has, or -errno */
};
static inline bool kbi_cpus_has(const struct kbi_cpus *s, unsigned cpu)
{
	return cpu < KBI_CPUS && s->bits[cpu / 64] >> cpu % 64 & 1;
}
static inline void kbi_cpus_add(struct kbi_cpus *s, unsigned cpu)
{
	s->bits[cpu / 64] |= (uint64_t)1 << cpu % 64;
}
/* The affinity of a kernel thread, 0: the caller's. */
void kbi_cpus_read(int tid, struct kbi_cpus *s);
/* 0 or -errno. */
long kbi_cpus_give(int tid, const struct kbi_cpus *s);
/* A single processor; bytes: of the kernel's sets. */
long kbi_cpus_give_one(int tid, unsigned cpu, long bytes);

/* Processors in the affinity mask, at least 1. */
unsigned kbi_cpu_affinity(void);
/* cgroup cpu.max (v2) or cfs quota (v1) of this process, rounded up to whole processors; 0: no limit. */
unsigned kbi_cpu_quota(void);
/* The smaller of both: the number of virtual processors by default. */
unsigned kbi_cpu_count(void);
/* Is it the first of its core's processors in the set? Where the kernel does not say so each is a core. */
bool kbi_cpu_leads_core(unsigned cpu, const struct kbi_cpus *s);
/* How long that processor has had nothing to run so far, ns, as the kernel counts it, by 10 ms. False: not told. */
bool kbi_cpu_idle(unsigned cpu, uint64_t *ns);

#endif
