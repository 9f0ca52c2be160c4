/* base/cpulist.h - lists of processors in the kernel's format: "0-3,8". Pure functions.
 * Callers: base/option, os/cpu, core/place. */
#ifndef KBI_CPULIST_H
#define KBI_CPULIST_H

#include "base/base.h"

enum { KBI_CPUS = 8192 }; /* room for processors in a list or a set */

/* Reads the span at *list and moves *list behind the span and its comma. Returns false at the end
 * of the list (**list is then 0), or if the text at *list is no span of processors below
 * KBI_CPUS. */
bool kbi_cpulist_next(const char **list, unsigned *first, unsigned *last);
/* Returns true if the whole text is a list in this format, and not empty. */
bool kbi_cpulist_is_valid(const char *list);

#endif
