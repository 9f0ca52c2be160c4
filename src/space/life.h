/* space/life.h - whether a process lives. A pid alone may belong to a later process: the start time
 * goes with it. System calls only: no lock, no switch.
 * Callers: file, recover, member; the command. */
#ifndef KBI_SPACE_LIFE_H
#define KBI_SPACE_LIFE_H

#include "space/layout.h"

/* Returns the start time of the process in ticks from boot; 0: there is no such process, or /proc
 * is not readable. */
uint64_t kbi_space_life_start(uint32_t pid);
/* Returns the start time of this process, never 0. Where /proc is not readable, the value is a mark
 * with a time at which the process was alive already. */
uint64_t kbi_space_life_own_start(uint32_t pid);
/* Opens a descriptor that becomes readable when the process dies. Returns -ESRCH: the process is
 * dead; or the negated errno value of the failure. */
int kbi_space_life_open(uint32_t pid, uint64_t start);
/* Returns a word for both: pid in the low bits, start time above. */
uint64_t kbi_space_life_identity(uint32_t pid, uint64_t start);
bool kbi_space_life_is_gone(uint64_t identity);
bool kbi_space_life_is_over(uint32_t pid, uint64_t start);

#endif
