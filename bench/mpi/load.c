/* bench/mpi/load.c - the load of `kochab bench mpi`, a plain program of MPI with threads:
 *     mpirun -n 2 load WAY LEVEL METRIC,METRIC,... THREADS SECONDS
 * WAY: kernel, nolayer or kochab, which it verifies, so that no figure is taken for another's. LEVEL: single or multiple.
 * Exit status: 0; else a line says why. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "load.h"

enum { STACK = 512 * 1024, GROWTH = 8, SLOW = 2 };

struct load load;

static struct {
	load_step *step;
	uint64_t n;
	pthread_barrier_t gate;
} crew;

double load_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void load_need(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "load: rank %d: %s\n", load.rank, what);
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static void say(const char *line)
{
	if (load.rank == 0) {
		puts(line);
		fflush(stdout);
	}
}

void load_report(const char *metric, const char *unit, double value)
{
	char line[128];

	snprintf(line, sizeof(line), "figure %s %s %.9g", metric, unit, value);
	say(line);
}

void load_lack(const char *metric, const char *why)
{
	char line[128];

	snprintf(line, sizeof(line), "none %s %s", metric, why);
	say(line);
}

/* ---- all threads at once --------------------------------------------------------------------- */

static void *member(void *id)
{
	pthread_barrier_wait(&crew.gate);
	pthread_barrier_wait(&crew.gate);
	crew.step((int)(intptr_t)id, crew.n);
	pthread_barrier_wait(&crew.gate);
	return NULL;
}

static double with_threads(void)
{
	pthread_t *thread = calloc((size_t)load.threads, sizeof(*thread));
	pthread_attr_t attr;
	double start, took;

	load_need(thread && pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, STACK) == 0 &&
		pthread_barrier_init(&crew.gate, NULL, (unsigned)load.threads + 1) == 0, "no memory for threads");
	for (intptr_t i = 0; i < load.threads; i++)
		load_need(pthread_create(&thread[i], &attr, member, (void *)i) == 0, "cannot create so many threads");
	pthread_barrier_wait(&crew.gate);
	load_need(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "MPI_Barrier");
	start = load_now();
	pthread_barrier_wait(&crew.gate);
	pthread_barrier_wait(&crew.gate);
	took = load_now() - start;
	for (int i = 0; i < load.threads; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&crew.gate);
	pthread_attr_destroy(&attr);
	free(thread);
	return took;
}

static double alone(void)
{
	double start;

	load_need(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "MPI_Barrier");
	start = load_now();
	crew.step(0, crew.n);
	return load_now() - start;
}

double load_together(load_step *step, uint64_t n)
{
	double took;

	crew.step = step;
	crew.n = n;
	took = load.threads == 1 ? alone() : with_threads();
	load_need(MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "MPI_Bcast");
	return took;
}

/* Both ranks count alike, because the time is that of rank 0 on both. */
double load_scale(load_step *step)
{
	double took = load_together(step, 1);
	uint64_t n = 1;

	if (took > SLOW * load.seconds)
		return took;
	do {
		double more = took > 0 ? load.seconds / took : GROWTH;

		n = (uint64_t)((double)n * (more > GROWTH ? GROWTH : more < 1.5 ? 1.5 : more) + 0.5);
		took = load_together(step, n);
	} while (took < 0.6 * load.seconds);
	return took / (double)n;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*measure)(const char *metric);
} metrics[] = {
	{ "round-trip", load_round_trip },
	{ "round-trip-mt", load_round_trip },
	{ "hop", load_hop },
	{ "message", load_message },
	{ "message-mt", load_message },
	{ "compute-200", load_compute },
	{ "compute-20", load_compute },
	{ "compute-2", load_compute },
	{ "collective", load_collective },
	{ "halo", load_halo },
	{ "halo-omp", load_halo_omp },
};

static void *probe(void *vp_self)
{
	int (*f)(void);

	memcpy(&f, &vp_self, sizeof(f));
	return (void *)(intptr_t)f();
}

/* The threads are of the kind that the figures are said to be of, and the layer is there or is not. */
static void check_way(const char *way)
{
	bool kernel = strcmp(way, "kernel") == 0;
	void *vp_self = dlsym(RTLD_DEFAULT, "kb_vp_self"), *vp = NULL;
	pthread_t thread;

	load_need(kernel == !vp_self, kernel ? "the drop-in is loaded" : "the drop-in is not loaded");
	load_need((strcmp(way, "kochab") == 0) == !!dlsym(RTLD_DEFAULT, "kb_mpi_wait"),
		  "the layer over MPI is there or not, against what is asked");
	if (kernel)
		return;
	load_need(pthread_create(&thread, NULL, probe, vp_self) == 0 && pthread_join(thread, &vp) == 0,
		  "cannot create a thread");
	load_need((intptr_t)vp >= 0, "the drop-in runs kernel threads");
}

static void begin(int *argc, char ***argv, const char *level)
{
	int want = strcmp(level, "single") == 0 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, have = -1, ranks = 0;

	if (want == MPI_THREAD_SINGLE)
		MPI_Init(argc, argv);
	else
		MPI_Init_thread(argc, argv, want, &have);
	MPI_Comm_rank(MPI_COMM_WORLD, &load.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	load.peer = !load.rank;
	load_need(ranks == LOAD_RANKS, "it is for two ranks");
	load_need(want == MPI_THREAD_SINGLE || have == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
}

static void measure(const char *name)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		if (strcmp(metrics[i].name, name) == 0) {
			metrics[i].measure(name);
			return;
		}
	load_need(0, "no such metric");
}

int main(int argc, char **argv)
{
	char *rest, *name;

	if (argc != 6 || atoi(argv[4]) < 1 || atof(argv[5]) <= 0) {
		fputs("usage: load kernel|nolayer|kochab single|multiple METRIC,... THREADS SECONDS\n", stderr);
		return 2;
	}
	load.threads = atoi(argv[4]);
	load.seconds = atof(argv[5]);
	begin(&argc, &argv, argv[2]);
	check_way(argv[1]);
	rest = argv[3];
	while ((name = strsep(&rest, ",")))
		measure(name);
	MPI_Finalize();
	return 0;
}
