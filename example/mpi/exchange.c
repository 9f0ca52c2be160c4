/* example/mpi/exchange.c - threads that compute and exchange with their partners on another rank, each at its own pace. A
 * thread that waits in MPI_Sendrecv lets the rank's other threads run. The program knows nothing of Kochab.
 * build: mpicc -O2 -pthread example/mpi/exchange.c -o exchange
 * run: mpirun -n 2 kochab run ./exchange */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 64, STEPS = 100 };

static int rank, ranks;

static double compute(double x)
{
	for (int i = 0; i < 1000; i++)
		x += 1 / (x + i);
	return x;
}

static void *run(void *arg)
{
	int tag = *(int *)arg, partner = (rank + ranks / 2) % ranks;
	double mine = tag, other;

	for (int i = 0; i < STEPS; i++) {
		mine = compute(mine);
		MPI_Sendrecv(&mine, 1, MPI_DOUBLE, partner, tag, &other, 1, MPI_DOUBLE, partner, tag, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		if (other != mine) /* both have computed the same */
			return arg;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	int tag[THREADS], level, wrong = 0, all_wrong;
	double start;
	void *result;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (level != MPI_THREAD_MULTIPLE || ranks % 2) {
		fprintf(stderr, "an even number of ranks and MPI_THREAD_MULTIPLE, please\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	start = MPI_Wtime();
	for (int i = 0; i < THREADS; i++) {
		tag[i] = i;
		pthread_create(&t[i], NULL, run, &tag[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &result);
		wrong += result != NULL;
	}
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d threads each, %d steps: %.1f ms; %d wrong\n", ranks, THREADS, STEPS,
		       1000 * (MPI_Wtime() - start), all_wrong);
	MPI_Finalize();
	return wrong != 0;
}
