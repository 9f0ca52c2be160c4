/* space/life.h - does a process live? A pid alone may be another's by now: its start time goes with it. Callers: file,
 * recover, member; the command. */
#ifndef KBI_SPACE_LIFE_H
#define KBI_SPACE_LIFE_H

#include "space/layout.h"

/* Ticks from boot to its start; 0: there is none, or nobody tells. */
uint64_t kbi_space_life_start(uint32_t pid);
/* Of this process, never 0: where nobody tells it is a mark that it is alive since now at least. */
uint64_t kbi_space_life_own_start(uint32_t pid);
/* A descriptor that becomes readable when it dies; -ESRCH: it is dead; or why there is none. */
int kbi_space_life_open(uint32_t pid, uint64_t start);
/* A word for both: pid below, start above. */
uint64_t kbi_space_life_identity(uint32_t pid, uint64_t start);
bool kbi_space_life_is_gone(uint64_t identity);
bool kbi_space_life_is_over(uint32_t pid, uint64_t start);

#endif
