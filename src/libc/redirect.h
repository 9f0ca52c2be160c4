/* libc/redirect.h - makes libc's own table of names lead to this library's functions. Libraries
 * loaded with RTLD_DEEPBIND, handles of libc, RTLD_NEXT behind us and dlvsym look names up there.
 * They would find libc's functions, and a mutex would have two implementations. doc/why/redirect.md
 * describes the roads not taken.
 * Callers: posix/preload, posix/malloc, each once, in its constructor, after it has found all
 * originals that it needs. Calls the loader. Units that look for libc's own functions later call
 * kbi_redirect_originals. */
#ifndef KBI_REDIRECT_H
#define KBI_REDIRECT_H

#include <link.h>

#include "base/base.h"

/* Redirects every name that the module of this code defines, in each module of libc that has the
 * name. wrapped: skips names that a module between this module and libc defines, because our
 * originals are then that module's functions, whose originals are libc's. Does nothing if this
 * module comes behind libc. Returns false if the table could not be written. */
bool kbi_redirect(bool wrapped);

/* Writes the places of libc's functions of that name, of any version, up to `most`. Returns their
 * number. */
struct kbi_redirect_place {
	uintptr_t at;
	size_t size;
};
unsigned kbi_redirect_originals(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name,
	struct kbi_redirect_place *p, unsigned most);

#endif
