/* os/asked.h - details of libc that nothing promises are asked at start (doc/libc.md is the list); the answers are
 * told here. With option verbose everything is, a line each, which `kochab doctor` reads; a missing detail that was
 * needed is told always: "kochab: glibc 2.50: this and that: the way that is taken instead". Callers: units of os and
 * posix that ask. Async-signal-safe as kbi_sys_message. */
#ifndef KBI_ASKED_H
#define KBI_ASKED_H

#include "base/base.h"

enum kbi_asked { KBI_ASKED_FOUND, KBI_ASKED_LACKS, KBI_ASKED_MISSED };
void kbi_asked_tell(enum kbi_asked answer, const char *what, const char *format, ...) KBI_PRINTF(3, 4);

/* It is there: where, or how it is used. */
#define kbi_asked_found(...) kbi_asked_tell(KBI_ASKED_FOUND, __VA_ARGS__)
/* Some libcs do not have it, or this machine does not, and Kochab does as well without. */
#define kbi_asked_lacks(...) kbi_asked_tell(KBI_ASKED_LACKS, __VA_ARGS__)
/* It ought to be there. The format tells the way that is taken instead. */
#define kbi_asked_missed(...) kbi_asked_tell(KBI_ASKED_MISSED, __VA_ARGS__)
/* "2.36"; of another libc "?". */
const char *kbi_asked_version(void);

#endif
