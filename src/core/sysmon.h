/* core/sysmon.h - sysmon is the system monitor: a kernel thread that runs no threads and
 * looks after virtual processors whose own worker cannot, because it is in a call or computes. It
 * sleeps between two looks, and for good while there is nothing to look after.
 * Callers: agent, handoff, lending, quantum, standstill, dump. */
#ifndef KBI_SYSMON_H
#define KBI_SYSMON_H

#include "core/vp.h"

enum kbi_bell {
	KBI_BELL_ASLEEP, /* it sleeps for good, until kbi_sysmon_wake */
	KBI_BELL_AWAKE,  /* it runs or naps */
	KBI_BELL_NONE    /* the kernel thread has not been started yet */
};
/* State of sysmon (enum kbi_bell); its sleep for good is a futex wait on this word. Any kernel
 * thread, atomic. */
extern KBI_HIDDEN a32 kbi_sysmon_bell;

/* A part of each look, set once by the unit that needs it; NULL: nothing to do. */
struct kbi_sysmon_duty {
	uint64_t (*look)(uint64_t now); /* returns ns until the next look; UINT64_MAX: nothing to look
	                                 * after */
	bool (*needed)(void);           /* returns true if there is something; asked behind a full fence
	                                 * before it sleeps for good */
};
extern KBI_HIDDEN struct kbi_sysmon_duty kbi_sysmon_lent, kbi_sysmon_quantum, kbi_sysmon_dump;

/* The kernel thread's entry; never returns. */
void *kbi_sysmon_run(void *unused);
/* Wakes sysmon if it sleeps for good. The caller has published its work and fenced. */
void kbi_sysmon_wake(void);

/* core/standstill's word. 1: its kernel thread sleeps for good and is to be woken when a VP is busy
 * again. */
extern KBI_HIDDEN a32 kbi_sysmon_watcher_asleep;
/* Wakes that kernel thread. */
void kbi_sysmon_wake_watcher(void);

static inline uint64_t kbi_sysmon_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
