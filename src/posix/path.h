/* posix/path.h - system calls with a path, made by syscall(). Caller: posix/futex. Never
 * switches. */
#ifndef KBI_PATH_H
#define KBI_PATH_H

#include "base/base.h"

/* Makes a system call whose path is a file in /proc of a lightweight thread; *r: the kernel's
 * result. False: the path is another. */
bool kbi_path_by_number(long n, const long *a, long *r);

#endif
