/* mpi/real.h - pointers to MPI's own functions, made from calls.def. The layer defines both names
 * of a call, MPI_ and PMPI_, because MPI's Fortran interfaces call either; so MPI's own functions
 * are looked up in its library. Constant after the constructor in real.c. Callers: all of mpi/. */
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
