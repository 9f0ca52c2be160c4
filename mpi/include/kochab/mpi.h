/* kochab/mpi.h - waits for MPI requests as a lightweight thread, with a deadline. The blocking
 * calls of MPI itself let other threads run in a program that is linked with libkochab-mpi-openmpi
 * or libkochab-mpi-mpich, or to which `kochab run` has added that library: doc/mpi.md. Deadlines
 * are absolute ns, kb_now() + delay; KB_FOREVER: none; 0: tests once. */
#ifndef KOCHAB_MPI_H
#define KOCHAB_MPI_H

#include <mpi.h>

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The deadline came first: the requests are as before, and may be waited for again. Not an error
 * code of MPI. */
enum { KB_MPI_TIMEDOUT = -1 };

/* As MPI_Wait and MPI_Waitall, with their error codes; or KB_MPI_TIMEDOUT. After a timeout of
 * kb_mpi_waitall MPI reports none of the requests as complete, and the statuses mean nothing. May
 * suspend. No cancellation point. */
KB_API int kb_mpi_wait(MPI_Request *request, MPI_Status *status, uint64_t deadline);
KB_API int kb_mpi_waitall(int n, MPI_Request requests[], MPI_Status statuses[], uint64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
