/* os/module.h - what a loaded program or library does by itself, past libc.
 * Callers: posix, core/boot. Walks the loader's list, reads code: for the first call out of a module, not for each. */
#ifndef KBI_MODULE_H
#define KBI_MODULE_H

#include "base/base.h"

struct kbi_module {
	uintptr_t low, high;   /* where its segments lie */
	char name[64];	       /* the file's, without its folder; the end of a long one */
	bool waits_in_kernel;  /* it makes futex or io_uring_setup system calls by instructions of its own */
};

/* The module that the address is in; false: none (code made at run time). */
bool kbi_module_look(uintptr_t at, struct kbi_module *m);
/* Where the module of that address begins, if its file's name begins so; at 0: the first such module. 0: there is none. */
uintptr_t kbi_module_named(const char *beginning, uintptr_t at);
/* Does any module take a function of this name from another one? The answer is kept until modules come or go: one name. */
bool kbi_module_imports(const char *name);
/* In the child of fork: who was at that answer is not there any more. */
void kbi_module_after_fork(void);
/* Is any module linked against libkochab.so or libkochab-posix.so, or has it libkochab.a in it? One that was only preloaded
 * is in nobody's list of needs. */
bool kbi_module_is_linked(void);
/* Has libkochab-posix.so libc's names, and is this code not in it? Of two runtimes one would make its virtual processors of
 * the other's lightweight threads. */
bool kbi_module_is_beside_dropin(void);

#endif
