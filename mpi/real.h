/* mpi/real.h - MPI's own functions behind ours, a pointer each, made from calls.def. Both names of a call, MPI_ and
 * PMPI_, are ours, because MPI's Fortran interfaces call the one or the other: so its own are found by asking its library.
 * Constant after the constructor in real.c. Callers: all of mpi/. */
#ifndef KBM_REAL_H
#define KBM_REAL_H

#include <mpi.h>

#include "base/base.h"

struct kbm_real {
#define FIELD(name) __typeof__(&PMPI_##name) name;
#define EXPAND(name) FIELD(name)
#define SENDS(name, start, parameters, ...) EXPAND(name) EXPAND(start)
#define GATHERS(name, start, parameters, ...) EXPAND(name) EXPAND(start)
#define LENDS(name, parameters, ...) EXPAND(name)
#define TESTS(name, flag, parameters, ...) EXPAND(name)
#define OWN(name) EXPAND(name)
#define USES(name) EXPAND(name)
#include "calls.def"
#if MPI_VERSION >= 4
#define SENDS(name, start, parameters, ...) EXPAND(name) EXPAND(start)
#define GATHERS(name, start, parameters, ...) EXPAND(name) EXPAND(start)
#define OWN(name) EXPAND(name)
#define USES(name) EXPAND(name)
#define KBM_LARGE
#include "calls.def"
#endif
#undef FIELD
};
extern KBI_HIDDEN struct kbm_real kbm_real;

#define KBM_API __attribute__((visibility("default")))

#endif
