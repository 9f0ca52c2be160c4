/* core/boot.h - starting the runtime. */
#ifndef KBI_BOOT_H
#define KBI_BOOT_H

#include "core/task.h"

/* Starts it if it has not been: options, memory, VPs; the process's first thread becomes a lightweight thread if
 * it is the caller. 0, EINVAL, EAGAIN, ENOMEM. Any thread. */
int kbi_boot(void);
bool kbi_booted(void);
/* Are there VPs? A kernel thread that is none asks; it waits while another starts them. */
bool kbi_boot_has_vps(void);
/* Has it failed because of options, before anything was begun? The program's first thread, before there are more. */
bool kbi_boot_is_refused(void);
/* Then: the next kbi_boot tries once more. */
void kbi_boot_again(void);

#endif
