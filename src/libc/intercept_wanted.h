/* libc/intercept_wanted.h - which of libc's system calls are intercepted ("wanted") where virtual
 * processors are processes: the runtime makes them in another way. x86-64; none on other machines.
 * Callers: libc/intercept_patch, libc/intercept_patch_put, libc/intercept_sud,
 * libc/intercept_seccomp, libc/intercept, the command. Async-signal-safe; no switch. */
#ifndef KBI_INTERCEPT_WANTED_H
#define KBI_INTERCEPT_WANTED_H

#include "base/base.h"

enum { KBI_INTERCEPT_WANTED_MOST = 512 /* numbers of such calls are below */ };

/* Returns true if the call is wanted. */
bool kbi_intercept_wanted_is(long nr);
/* Returns the same as a table: a bit for each number. */
const uint64_t *kbi_intercept_wanted_table(void);
/* Returns true if the call makes a process or a thread. Its replacement does more than to call C:
 * no handler can replace the call. */
bool kbi_intercept_wanted_makes_child(long nr);
/* Returns true if a breakpoint may replace the call: its handler makes the call. */
bool kbi_intercept_wanted_may_trap(long nr);
/* Returns the call's name. nr -1: the number is not known. */
const char *kbi_intercept_wanted_name(long nr);

#endif
