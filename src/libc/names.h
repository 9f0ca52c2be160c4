/* libc/names.h - the names that a module defines, read from the module's own table. Takes no lock
 * of the loader and runs no code of the loader; only kbi_names_look_up may call dlsym.
 * Callers: libc, mem, posix. */
#ifndef KBI_NAMES_H
#define KBI_NAMES_H

#include <link.h>

#include "base/base.h"

/* Writes up to `most` symbols of that name, of any version, to `found` and returns their number.
 * base: the offset added to the module's addresses; dynamic: its dynamic section. */
unsigned kbi_names_symbols(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name,
	const ElfW(Sym) **found, unsigned most);
/* Calls each(name, symbol, arg) once for every symbol that the module defines. */
void kbi_names_each(uintptr_t base, const ElfW(Dyn) *dynamic,
	void (*each)(const char *name, const ElfW(Sym) *s, void *arg), void *arg);
/* Returns true if the loader may find the name there in a look-up without a version. Also true if
 * the module has only a table of another kind. */
bool kbi_names_may_have(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name);
/* Returns the function that the loader finds there without a version; NULL: there is none, or code
 * of the module chooses it (IFUNC). */
void *kbi_names_function(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name);
/* Returns the function's address in the first module that defines it; NULL: no module does. The
 * address that C code sees may be an entry of the program's jump table instead. */
const void *kbi_names_definition(const char *name);
/* Returns dlsym(RTLD_DEFAULT, name) or NULL. If no module has the name, it avoids the loader's
 * error message, which takes memory of malloc and would be the result of the program's next
 * dlerror. */
void *kbi_names_look_up(const char *name);

#endif
