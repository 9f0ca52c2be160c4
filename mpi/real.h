/* mpi/real.h - MPI's own functions behind ours, a pointer each, made from calls.def. Both names of a call, MPI_ and
 * PMPI_, are ours, because MPI's Fortran interfaces call either: so its own are found by asking its library.
 * Constant after the constructor in real.c. Callers: all of mpi/. */
#ifndef KBM_REAL_H
#define KBM_REAL_H

#include <mpi.h>

#include "base/base.h"

struct kbm_real {
#define FIELD(name) __typeof__(&PMPI_##name) name;
#define EXPAND(name) FIELD(name)
#include "each.def"
#undef FIELD
};
extern KBI_HIDDEN struct kbm_real kbm_real;

#define KBM_API __attribute__((visibility("default")))

#endif
