/* bench/mpi/load.h - shared by the parts of the load that `kochab bench mpi` starts as two ranks: a
 * step is run by all threads of both ranks at once, so often that it takes a while. Plain MPI and
 * POSIX threads; built once for each MPI. */
#ifndef KOCHAB_BENCH_MPI_LOAD_H
#define KOCHAB_BENCH_MPI_LOAD_H

#include <mpi.h>
#include <stdint.h>

enum { LOAD_RANKS = 2 };

/* Constant while anything is measured. */
struct load {
	int rank, peer, threads;
	double seconds; /* a measurement takes about so long */
};
extern struct load load;

/* n times the thread's part; called by thread id of each rank. */
typedef void load_step(int id, uint64_t n);

double load_now(void);
/* All threads of both ranks run step(id, n); how long it took, the same on both ranks. A single
 * thread is the program's first. */
double load_together(load_step *step, uint64_t n);
/* Seconds of the step, over so many of them that they take about load.seconds; a very slow step is
 * made only once. */
double load_scale(load_step *step);
/* A call of MPI went wrong, or a result: ends all ranks. */
void load_need(int right, const char *what);
/* For the command, by rank 0: "figure METRIC UNIT VALUE", or "none METRIC WHY". */
void load_report(const char *metric, const char *unit, double value);
void load_lack(const char *metric, const char *why);

/* The metrics, each reports itself: talk.c */
void load_round_trip(const char *metric);
void load_hop(const char *metric);
void load_message(const char *metric);
void load_compute(const char *metric);
void load_collective(const char *metric);
/* halo.c */
void load_halo(const char *metric);
void load_halo_omp(const char *metric);

#endif
