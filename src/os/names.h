/* os/names.h - the names that a module defines, from its own table: no loader's lock is taken, and nothing of it is run,
 * but by kbi_names_look_up. Callers: os, mem, posix. */
#ifndef KBI_NAMES_H
#define KBI_NAMES_H

#include <link.h>

#include "base/base.h"

/* base: what is to be added to its addresses; dynamic: its dynamic section. Writes up to `most` symbols of that
 * name, of any version, and says how many. */
unsigned kbi_names_symbols(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name, const ElfW(Sym) **found,
			   unsigned most);
/* Every symbol that it defines, once. */
void kbi_names_each(uintptr_t base, const ElfW(Dyn) *dynamic, void (*each)(const char *name, const ElfW(Sym) *s, void *arg),
		    void *arg);
/* May the loader find it there, asked without a version? Also true where the module has another kind of table only. */
bool kbi_names_may_have(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name);
/* The function that the loader finds there without a version; NULL: there is none, or code of the module chooses
 * it (IFUNC). */
void *kbi_names_function(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name);
/* Where the first module that defines the function has it; NULL: none does. Its address in C may be an entry of the
 * program's table of jumps instead. */
const void *kbi_names_definition(const char *name);
/* dlsym(RTLD_DEFAULT, name), NULL; but no loader's message that there is none, which takes memory of malloc and is what the
 * program's next dlerror would tell. */
void *kbi_names_look_up(const char *name);

#endif
