/* mpi/alone - a program with a single thread waits as MPI does, without naps, though MPI has made
 * threads of its own; threads that come take turns with the layer; and when these have ended the
 * first is alone again. Naps are told by how often the kernel thread gives its processor away by
 * itself. */
#include <sys/resource.h>
#include <unistd.h>

#include "crowd.h"

enum { LATE = 700000, FEW = 200, ROUNDS = 200 };

static long given_away(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &u), 0);
	return u.ru_nvcsw;
}

/* Rank 1 lets rank 0 wait; its cost. */
static long wait_long(void)
{
	long before = given_away();
	int word = 0;

	if (rank == 1) {
		usleep(LATE);
		word = 7;
		OK(MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
		return 0;
	}
	if (rank == 0) {
		OK(MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK_EQ(word, 7);
	}
	return given_away() - before;
}

static void *talk(void *arg)
{
	int out, in, tag = 1 + (int)(intptr_t)arg;

	for (out = 0; out < ROUNDS; out++) {
		OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, tag, &in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK_EQ(in, out);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	talk(NULL);
	CHECK(wait_long() < FEW);
	crowd(2, talk);
	crowd(16, talk);
	CHECK(wait_long() < FEW);
	end();
	return 0;
}
