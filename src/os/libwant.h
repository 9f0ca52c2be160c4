/* os/libwant.h - which of libc's system calls are intercepted ("wanted") where virtual processors
 * are processes: the runtime makes them in another way. x86-64; none on other machines.
 * Callers: os/libsite, os/libsite_put, os/libdispatch, os/libseccomp, os/libway, the command.
 * Async-signal-safe; no switch. */
#ifndef KBI_LIBWANT_H
#define KBI_LIBWANT_H

#include "base/base.h"

enum { KBI_LIBWANT_MOST = 512 /* numbers of such calls are below */ };

/* Returns true if the call is wanted. */
bool kbi_libwant_is(long nr);
/* Returns the same as a table: a bit for each number. */
const uint64_t *kbi_libwant_table(void);
/* Returns true if the call makes a process or a thread. Its replacement does more than to call C:
 * no handler can replace the call. */
bool kbi_libwant_makes_child(long nr);
/* Returns true if a breakpoint may replace the call: its handler makes the call. */
bool kbi_libwant_may_trap(long nr);
/* Returns the call's name. nr -1: the number is not known. */
const char *kbi_libwant_name(long nr);

#endif
