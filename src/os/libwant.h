/* os/libwant.h - which of libc's system calls are not made as libc has them, where virtual processors are processes.
 * x86-64; elsewhere none. Callers: os/libsite, os/libdispatch, os/libseccomp, the command. Async-signal-safe. */
#ifndef KBI_LIBWANT_H
#define KBI_LIBWANT_H

#include "base/base.h"

enum { KBI_LIBWANT_MOST = 512 /* numbers of such calls are below */ };

/* Is it such a call? */
bool kbi_libwant_is(long nr);
/* A bit for each number: the same. */
const uint64_t *kbi_libwant_table(void);
/* Does it make a process or a thread? Its code does more than to call C: no handler can stand for it. */
bool kbi_libwant_makes_child(long nr);
/* May a breakpoint stand for it, whose handler makes the call? */
bool kbi_libwant_may_trap(long nr);
/* Its name. -1: its number is not known. */
const char *kbi_libwant_name(long nr);

#endif
