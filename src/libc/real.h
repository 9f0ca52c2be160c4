/* libc/real.h - libc's own functions under the names that the drop-in defines:
 * kbi_real.<name>(...). In libkochab these are the functions that the program was linked with (a
 * sanitizer's wrapper, for example). The drop-in defines the names itself, so kbi_real_find must
 * run first, in the constructor: a look-up at first use would deadlock against dlopen. Constant
 * afterwards. The rows are in libc/real.def.
 * Callers: all units that need an original. */
#ifndef KBI_REAL_H
#define KBI_REAL_H

#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>

struct kbi_real {
#define REAL(name) __typeof__(&name) name;
#include "libc/real.def"
};

extern KBI_HIDDEN struct kbi_real kbi_real;

/* Returns the function of that name in the libraries behind this library; NULL: there is none. */
typedef void *kbi_real_look_up(const char *name, const void *where);
/* Looks up every original. Returns NULL, or the first missing name (its entry keeps its value). */
const char *kbi_real_find(kbi_real_look_up *look_up, const void *where);

#endif
