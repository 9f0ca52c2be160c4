/* kochab/mpi.h - waiting for MPI as a lightweight thread, with a deadline. The blocking calls of MPI itself let other
 * threads run in a program that is linked with libkochab-mpi-openmpi or libkochab-mpi-mpich, or that `kochab run` has given
 * the layer: doc/mpi.md. Deadlines are as everywhere: absolute ns, kb_now() + delay; KB_FOREVER: none; 0: looks once. */
#ifndef KOCHAB_MPI_H
#define KOCHAB_MPI_H

#include <mpi.h>

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The deadline came first: the requests are as before, and may be waited for again. No error code of MPI. */
enum { KB_MPI_TIMEDOUT = -1 };

/* As MPI_Wait and MPI_Waitall, with their error codes; or KB_MPI_TIMEDOUT. Of kb_mpi_waitall's requests none is
 * complete then as far as MPI tells, and their statuses mean nothing. May suspend. */
KB_API int kb_mpi_wait(MPI_Request *request, MPI_Status *status, uint64_t deadline);
KB_API int kb_mpi_waitall(int n, MPI_Request requests[], MPI_Status statuses[], uint64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
