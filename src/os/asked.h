/* os/asked.h - what nothing promises of libc is asked at start (doc/libc.md is the list); what came out is told here. With
 * option verbose everything is, a line each, which `kochab doctor` reads; what is missing and was needed is told always:
 * "kochab: glibc 2.50: this and that: what is done instead".
 * Callers: whoever asks, in os and posix. Async-signal-safe as kbi_sys_message. */
#ifndef KBI_ASKED_H
#define KBI_ASKED_H

#include "base/base.h"

/* It is there: where, or how it is used. */
void kbi_asked_found(const char *what, const char *format, ...) KBI_PRINTF(2, 3);
/* Some libcs do not have it, or this machine does not, and Kochab does as well without. */
void kbi_asked_lacks(const char *what, const char *format, ...) KBI_PRINTF(2, 3);
/* It ought to be there. What is done instead. */
void kbi_asked_missed(const char *what, const char *format, ...) KBI_PRINTF(2, 3);
/* "2.36"; of another libc "?". */
const char *kbi_asked_version(void);

#endif
