/* space/recover.h - cleaning up after a process. Under the file's lock. It may be done again, from the beginning, by
 * somebody else, if who does it dies: the process's entry is free only at the end. Callers: member. */
#ifndef KBI_SPACE_RECOVER_H
#define KBI_SPACE_RECOVER_H

#include "space/layout.h"

/* died: it did not detach. `until`: so long objects' locks are waited for; 0: not begun. Then they are taken whoever has
 * them, and some seconds later it gives up: EPROTO: the entry stays. */
int kbi_space_recover(struct kb_space *s, uint32_t slot, bool died, uint64_t *until);

#endif
