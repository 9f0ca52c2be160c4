/* core/boot.h - starts the runtime.
 * Callers: api, sync, space, io, posix. */
#ifndef KBI_BOOT_H
#define KBI_BOOT_H

#include "sched/task.h"

/* Starts the runtime if it has not been started: options, memory, VPs. The process's first thread
 * becomes a lightweight thread if it is the caller. Returns 0, EINVAL, EAGAIN or ENOMEM. Any
 * thread. */
int kbi_boot(void);
/* Returns true if the runtime runs. */
bool kbi_booted(void);
/* Returns true if there are VPs. A kernel thread that is none calls it; it waits while another
 * thread starts them. */
bool kbi_boot_has_vps(void);
/* Returns true if the start has failed because of options, before anything was begun. For the
 * program's first thread, before there are more. */
bool kbi_boot_is_refused(void);
/* Has the next kbi_boot try once more after such a failure. */
void kbi_boot_again(void);

#endif
