/* space/recover.h - cleaning up after processes. Under the file's lock. It may be done again, from the beginning, by
 * another process, if this dies meanwhile: the processes' entries are free only at the end. Callers: member. */
#ifndef KBI_SPACE_RECOVER_H
#define KBI_SPACE_RECOVER_H

#include "space/layout.h"

/* Cleans up after the processes of these entries, a bit each, at once: so waiters are told once, however many there are.
 * died: they did not detach. Objects' locks are waited for some seconds, then they are taken from any holder, and some
 * seconds later it gives up: EPROTO: the entries stay. */
int kbi_space_recover(struct kb_space *s, uint64_t slots, bool died);

#endif
