/* posix/aside.h - a lightweight thread that waits in the kernel itself, for other processes:
 * meanwhile its virtual processor runs on another kernel thread, for example that of a thread that
 * returns from such a wait. Callers: posix/libc_mutex, posix/standin_libc. May switch. */
#ifndef KBI_ASIDE_H
#define KBI_ASIDE_H

#include "base/base.h"

/* Leaves the virtual processor. False: there are too few kernel threads, or they could be lost.
 * Else kbi_aside_end must be called, also when the frame is unwound. */
bool kbi_aside_begin(void);
KBI_SWITCHES void kbi_aside_end(const bool *begun);
#define KBI_ASIDE __attribute__((cleanup(kbi_aside_end)))
/* Waits at a word while it is `seen`; the value must contain a mark which makes every thread that
 * changes the word wake waiters. Ends by a wake-up, a handler, a signal or `until`. Returns the
 * kernel's errno, 0: woken; -1: not begun. */
KBI_SWITCHES int kbi_aside_word(const uint32_t *word, uint32_t seen, uint64_t until);

#endif
