/* os/libway.h - the ways to take over libc's system calls, and which one is taken (option libcalls).
 * Callers: os/libcall and core, where virtual processors are processes; the command. */
#ifndef KBI_LIBWAY_H
#define KBI_LIBWAY_H

#include "os/libsite.h"

struct kbi_libway {
	const char *name;               /* the option's word */
	/* As kbi_libway_begin; what it has replaced. */
	int (*begin)(kbi_libsite_call *call, int pid, struct kbi_libsite_counts *c, const char **why);
	/* For each kernel thread that is in a process of its own, before it calls libc; and what ends that. NULL: nothing. */
	void (*here)(void), (*not_here)(void);
	void (*undo)(void);             /* in a child of fork, or if there are to be no processes */
	bool stays;                     /* a process's children have it, too, and none can get rid of it: not in begin, then */
};

enum { KBI_LIBWAYS = 3 };
/* Best first, in the order of the option's words; the last one has no name. */
extern KBI_HIDDEN const struct kbi_libway kbi_libways[KBI_LIBWAYS + 1];

/* Before kbi_libway_begin, as kbi_libsite_prepare. */
void kbi_libway_prepare(void);
/* The one that the option wants, or the first that works: from now on call() makes libc's calls. pid: what getpid says.
 * 0; or ENOTSUP, nothing has been changed: *why. */
int kbi_libway_begin(kbi_libsite_call *call, int pid, const char **why);
/* Which one that was, or NULL. */
const char *kbi_libway_taken(void);
/* Does it stay? Then the program's children are not to be made by who has it. */
bool kbi_libway_stays(void);
/* child: of one that has it. */
void kbi_libway_here(bool child);
void kbi_libway_not_here(void);
void kbi_libway_undo(void);

#endif
