/* posix/aside.h - a lightweight thread that waits in the kernel by itself, for other processes: its virtual
 * processor goes on with another kernel thread, or with another thread that comes back from such a wait.
 * Callers: posix/delegate, posix/proxy. May switch. */
#ifndef KBI_ASIDE_H
#define KBI_ASIDE_H

#include "base/base.h"

/* False: there are not kernel threads enough, or they could be lost. Else kbi_aside_end is due, also where the frame is
 * unwound. */
bool kbi_aside_begin(void);
KBI_SWITCHES void kbi_aside_end(const bool *begun);
#define KBI_ASIDE __attribute__((cleanup(kbi_aside_end)))
/* At a word, while it is `seen`, with a mark for all that change it; as long as no handler, signal or `until` ends that.
 * The kernel's errno, 0: woken; -1: not begun. */
KBI_SWITCHES int kbi_aside_word(const uint32_t *word, uint32_t seen, uint64_t until);

#endif
