/* os/cpu.h - processors: how many this process may really use (affinity and cgroup limits); which is idle. */
#ifndef KBI_CPU_COUNT_H
#define KBI_CPU_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Processors in the affinity mask, at least 1. */
unsigned kbi_cpu_affinity(void);
/* cgroup cpu.max (v2) or cfs quota (v1) of this process, rounded up to whole processors; 0: no limit. */
unsigned kbi_cpu_quota(void);
/* The smaller of both: the number of virtual processors by default. */
unsigned kbi_cpu_count(void);
/* How long that processor has had nothing to run so far, ns, as the kernel counts it, by 10 ms. False: not told. */
bool kbi_cpu_idle(unsigned cpu, uint64_t *ns);

#endif
