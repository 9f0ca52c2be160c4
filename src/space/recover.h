/* space/recover.h - cleaning up after a process. Under the file's lock. It may be done again, from the beginning, by
 * somebody else, if who does it dies: the process's entry is free only at the end. Callers: member. */
#ifndef KBI_SPACE_RECOVER_H
#define KBI_SPACE_RECOVER_H

#include "space/layout.h"

/* died: it did not detach. */
void kbi_space_recover(struct kb_space *s, uint32_t slot, bool died);

#endif
