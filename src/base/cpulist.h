/* base/cpulist.h - lists of processors as the kernel writes them: "0-3,8". Pure functions.
 * Callers: base/option, os/cpu, core/place. */
#ifndef KBI_CPULIST_H
#define KBI_CPULIST_H

#include "base/base.h"

enum { KBI_CPUS = 8192 }; /* processors that a list or a set has room for */

/* Reads the span at *list, which is moved behind it and its comma. False: the list is at its end, or (**list is not 0) what
 * stands there is no span of processors below KBI_CPUS. */
bool kbi_cpulist_next(const char **list, unsigned *first, unsigned *last);
/* Is all of it such a list, and not empty? */
bool kbi_cpulist_is_valid(const char *list);

#endif
