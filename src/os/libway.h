/* os/libway.h - the ways to intercept libc's system calls, and the choice among them (option
 * libcalls).
 * Callers: os/libcall, os/libcall_owned and core, where virtual processors are processes; the
 * command. No locks, no switch. */
#ifndef KBI_LIBWAY_H
#define KBI_LIBWAY_H

#include "os/libsite.h"

struct kbi_libway {
	const char *name;               /* the option's word */
	/* as kbi_libway_begin; counts what it has replaced */
	int (*begin)(kbi_libsite_call *call, int pid, struct kbi_libsite_counts *c, const char **why);
	/* turn the interception on, and off, in each kernel thread that is a process of its own, before
	 * it calls libc; NULL: nothing to do */
	void (*here)(void), (*not_here)(void);
	void (*undo)(void);             /* in a child of fork, or if there are to be no processes */
	/* children inherit it, and it cannot be removed: so `begin` does not install it in the
	 * caller */
	bool stays;
};

enum { KBI_LIBWAYS = 3 };
/* Best first, in the order of the option's words; the last has no name. */
extern KBI_HIDDEN const struct kbi_libway kbi_libways[KBI_LIBWAYS + 1];

/* Call before kbi_libway_begin, as kbi_libsite_prepare. */
void kbi_libway_prepare(void);
/* Begins the way that the option names, or the first that works: from now on call() makes libc's
 * calls. pid: getpid's answer. Returns 0; or ENOTSUP, nothing has been changed, *why tells the
 * reason. */
int kbi_libway_begin(kbi_libsite_call *call, int pid, const char **why);
/* Returns the name of the way that was taken, or NULL. */
const char *kbi_libway_taken(void);
/* Returns true if the way stays: then the program's children must be made by a process that does
 * not have it. */
bool kbi_libway_stays(void);
/* Turn it on, and off, for the caller. child: the caller is the child of a process that has it. */
void kbi_libway_here(bool child);
void kbi_libway_not_here(void);
void kbi_libway_undo(void);

#endif
