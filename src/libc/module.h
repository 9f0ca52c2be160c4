/* libc/module.h - properties of a loaded program or library that libc does not know: its own system
 * calls, its imports.
 * Callers: posix, core/boot. Walks the loader's list and reads code: for the first call from a
 * module, not for each. */
#ifndef KBI_MODULE_H
#define KBI_MODULE_H

#include "base/base.h"

struct kbi_module {
	uintptr_t low, high;   /* bounds of its segments */
	char name[64];	       /* name of its file without the folder; the end of a long name */
	/* it makes futex or io_uring_setup system calls by its own instructions */
	bool waits_in_kernel;
};

/* Finds the module that contains the address. Returns false if there is none (code made at run
 * time). */
bool kbi_module_look(uintptr_t at, struct kbi_module *m);
/* Returns the beginning of the module that contains address `at` if the name of its file begins
 * with `beginning`; at 0: the first module with such a name. Returns 0 if there is none. */
uintptr_t kbi_module_named(const char *beginning, uintptr_t at);
/* Returns true if any module imports a function of this name. The answer for a single name is kept
 * until a module is loaded or unloaded. */
bool kbi_module_imports(const char *name);
/* Call in the child of fork: frees the lock of that answer, whose holder may not exist in the
 * child. */
void kbi_module_after_fork(void);
/* Returns true if any module is linked with libkochab.so or libkochab-posix.so, or contains
 * libkochab.a. A library that was only preloaded is in no list of needed libraries. */
bool kbi_module_is_linked(void);
/* Returns true if libkochab-posix.so defines libc's names in this program and this code is not part
 * of it. Of two runtimes the second would build its virtual processors on the first one's
 * lightweight threads. */
bool kbi_module_is_beside_dropin(void);

#endif
