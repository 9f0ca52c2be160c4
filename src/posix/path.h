/* posix/path.h - paths by syscall(). Caller: posix/futex. Never switches. */
#ifndef KBI_PATH_H
#define KBI_PATH_H

#include "base/base.h"

/* A system call with a path that is a file in /proc of a lightweight thread; *r as kernels give it. False: it is none. */
bool kbi_path_by_number(long n, const long *a, long *r);

#endif
