/* os/names.h - the names that a module defines, from its own table: no loader's lock is taken, and nothing of it is run.
 * Callers: os/context_frames, posix/symbol. */
#ifndef KBI_NAMES_H
#define KBI_NAMES_H

#include <link.h>

#include "base/base.h"

/* base: what is to be added to its addresses; dynamic: its dynamic section. Writes the addresses of up to `most` functions
 * of that name, of any version, and says how many. */
unsigned kbi_names_find(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name, uintptr_t *at, unsigned most);

#endif
