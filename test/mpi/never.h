/* test/mpi/never.h - for programs in scripts: threads that wait for words that never come, from the
 * other rank. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEVER = 3 };

static int rank;

static void *never(void *tag)
{
	int in;

	MPI_Recv(&in, 1, MPI_INT, !rank, (int)(long)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return NULL;
}

/* With tags from 77 on. */
static inline void wait_for_ever(pthread_t t[NEVER])
{
	for (long i = 0; i < NEVER; i++)
		pthread_create(&t[i], NULL, never, (void *)(77 + i));
}
