/* os/real.h - libc's own functions under the names that the drop-in defines: kbi_real.<name>(...).
 * In libkochab they are what the program was linked to (a sanitizer's wrapper, for one); in the drop-in,
 * which defines the same names itself, kbi_real_find must run first, in the constructor: a look-up at
 * first use would deadlock against dlopen. Constant afterwards. The rows are in os/real.def.
 * Callers: everybody who needs an original. */
#ifndef KBI_REAL_H
#define KBI_REAL_H

#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>

struct kbi_real {
#define REAL(name) __typeof__(&name) name;
#include "os/real.def"
};

extern KBI_HIDDEN struct kbi_real kbi_real;

/* The function of that name in the libraries behind this library; NULL: it is in none. */
typedef void *kbi_real_look_up(const char *name, const void *where);
/* Takes every original from there. NULL, or the first name that is missing (its entry is left as it was). */
const char *kbi_real_find(kbi_real_look_up *look_up, const void *where);

#endif
