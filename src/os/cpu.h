/* os/cpu.h - how many processors this process may really use: affinity and cgroup limits. */
#ifndef KBI_CPU_COUNT_H
#define KBI_CPU_COUNT_H

/* Processors in the affinity mask, at least 1. */
unsigned kbi_cpu_affinity(void);
/* cgroup cpu.max (v2) or cfs quota (v1) of this process, rounded up to whole processors; 0: no limit. */
unsigned kbi_cpu_quota(void);
/* The smaller of both: the number of virtual processors by default. */
unsigned kbi_cpu_count(void);

#endif
