/* libc/intercept.h - the ways to intercept libc's system calls, and the choice among them (option
 * libcalls).
 * Callers: libc/emulate, libc/emulate_owned and core, where virtual processors are processes; the
 * command. No locks, no switch. */
#ifndef KBI_INTERCEPT_H
#define KBI_INTERCEPT_H

#include "libc/intercept_patch.h"

struct kbi_intercept_way {
	const char *name;               /* the option's word */
	/* as kbi_intercept_begin; counts what it has replaced */
	int (*begin)(kbi_intercept_call *call, int pid, struct kbi_intercept_counts *c,
		const char **why);
	/* turn the interception on, and off, in each kernel thread that is a process of its own, before
	 * it calls libc; NULL: nothing to do */
	void (*here)(void), (*not_here)(void);
	void (*undo)(void);             /* in a child of fork, or if there are to be no processes */
	/* children inherit it, and it cannot be removed: so `begin` does not install it in the
	 * caller */
	bool stays;
};

enum { KBI_INTERCEPT_WAYS = 3 };
/* Best first, in the order of the option's words; the last has no name. */
extern KBI_HIDDEN const struct kbi_intercept_way kbi_intercept_ways[KBI_INTERCEPT_WAYS + 1];

/* Call before kbi_intercept_begin, as kbi_intercept_patch_prepare. */
void kbi_intercept_prepare(void);
/* Begins the way that the option names, or the first that works: from now on call() makes libc's
 * calls. pid: getpid's answer. Returns 0; or ENOTSUP, nothing has been changed, *why tells the
 * reason. */
int kbi_intercept_begin(kbi_intercept_call *call, int pid, const char **why);
/* Returns the name of the way that was taken, or NULL. */
const char *kbi_intercept_taken(void);
/* Returns true if the way stays: then the program's children must be made by a process that does
 * not have it. */
bool kbi_intercept_stays(void);
/* Turn it on, and off, for the caller. child: the caller is the child of a process that has it. */
void kbi_intercept_here(bool child);
void kbi_intercept_not_here(void);
void kbi_intercept_undo(void);

#endif
