/* libc/asked.h - reports details of libc that libc does not promise; units ask for them at start
 * (doc/libc.md is the list). With option verbose each answer is printed on a line, which `kochab
 * doctor` reads. A missing detail that was needed is always printed: "kochab: glibc 2.50: this and
 * that: the way that is taken instead".
 * Callers: units of libc and posix that ask. Async-signal-safe as kbi_sys_message. */
#ifndef KBI_ASKED_H
#define KBI_ASKED_H

#include "base/base.h"

enum kbi_asked { KBI_ASKED_FOUND, KBI_ASKED_LACKS, KBI_ASKED_MISSED };
void kbi_asked_tell(enum kbi_asked answer, const char *what, const char *format, ...)
	KBI_PRINTF(3, 4);

/* Reports that the detail exists; the format tells where, or how it is used. */
#define kbi_asked_found(...) kbi_asked_tell(KBI_ASKED_FOUND, __VA_ARGS__)
/* Reports that some libcs, or this machine, lack the detail, and that Kochab does as well without
 * it. */
#define kbi_asked_lacks(...) kbi_asked_tell(KBI_ASKED_LACKS, __VA_ARGS__)
/* Reports that a required detail is missing. The format tells the way that is taken instead. */
#define kbi_asked_missed(...) kbi_asked_tell(KBI_ASKED_MISSED, __VA_ARGS__)
/* Returns glibc's version, such as "2.36"; "?" for another libc. */
const char *kbi_asked_version(void);

#endif
