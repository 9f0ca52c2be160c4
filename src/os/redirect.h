/* os/redirect.h - libc's own table of names says where this library's functions are. Libraries that RTLD_DEEPBIND puts
 * before everybody else, handles of libc, RTLD_NEXT behind us and dlvsym look names up there, and would find libc's: one
 * mutex would have two implementations. doc/why/redirect.md has the roads not taken.
 * Callers: posix/preload, posix/malloc, each once, in its constructor, when it has all originals that it needs. Calls the
 * loader. Whoever looks for libc's own functions afterwards asks here. */
#ifndef KBI_REDIRECT_H
#define KBI_REDIRECT_H

#include <link.h>

#include "base/base.h"

/* Every name that the module of this code defines, wherever libc's modules have it, too. wrapped: not those that a module
 * between it and libc has, for its originals are that module's functions, whose originals are libc's. No-op where this
 * module comes behind libc. False: the table could not be written. */
bool kbi_redirect(bool wrapped);

/* Where libc's functions of that name are, of any version: up to `most`; how many. */
struct kbi_redirect_place {
	uintptr_t at;
	size_t size;
};
unsigned kbi_redirect_originals(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name, struct kbi_redirect_place *p,
				unsigned most);

#endif
