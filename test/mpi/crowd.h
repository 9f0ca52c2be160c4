/* crowd.h - shared by the tests of the layer: begin with MPI_THREAD_MULTIPLE, and a crowd of
 * threads. */
#ifndef KB_TEST_CROWD_H
#define KB_TEST_CROWD_H

#include <mpi.h>
#include <pthread.h>
#include <string.h>

#include "test.h"

#define OK(call) CHECK_EQ(call, MPI_SUCCESS)

enum { CROWD_MOST = 256 };

static int rank, ranks, peer;

static inline void begin(int *argc, char ***argv)
{
	int level = -1;

	OK(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level));
	CHECK_EQ(level, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
	peer = rank ^ 1;
	if (ranks % 2)
		SKIP("an even number of ranks is needed");
}

/* n threads run f(i) at once. */
static inline void crowd(int n, void *(*f)(void *))
{
	pthread_t thread[CROWD_MOST];
	pthread_attr_t attr;

	CHECK(n <= CROWD_MOST);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, 512 * 1024), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_create(&thread[i], &attr, f, (void *)(intptr_t)i), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	pthread_attr_destroy(&attr);
}

static inline void end(void)
{
	OK(MPI_Barrier(MPI_COMM_WORLD));
	OK(MPI_Finalize());
}

#endif
