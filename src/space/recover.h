/* space/recover.h - cleaning up after processes. Under the file's lock. If this process dies
 * meanwhile, another process may do it again, from the beginning: the entries of the processes
 * become free only at the end.
 * Callers: member. */
#ifndef KBI_SPACE_RECOVER_H
#define KBI_SPACE_RECOVER_H

#include "space/layout.h"

/* Cleans up after the processes of these entries, a bit each, at once: so waiters are told only
 * once. died: they did not detach. Waits for objects' locks for some seconds, then takes them from
 * any holder, and some seconds later gives up. Returns 0 or EPROTO: the entries stay. */
int kbi_space_recover(struct kb_space *s, uint64_t slots, bool died);

#endif
