/* mpi/cancel - a thread that is cancelled while it waits in MPI_Recv goes on until the message is
 * there, and its work for other waiting threads goes on, too; then it ends.
 * matrix: run-only */
#include <unistd.h>

#include "crowd.h"

enum { THREADS = 8 };

static int received[THREADS];

static void *receive(void *arg)
{
	int id = (int)(intptr_t)arg;

	OK(MPI_Recv(&received[id], 1, MPI_INT, peer, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (;;)
		pthread_testcancel();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int out, in = -1;
	void *result;

	begin(&argc, &argv);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, receive, (void *)(intptr_t)i), 0);
	usleep(50000);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_cancel(thread[i]), 0);
	usleep(50000);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(received[i], 0);
	out = rank;
	OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, 100, &in, 1, MPI_INT, peer, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(in, peer);
	for (int i = 0; i < THREADS; i++) {
		out = 1000 + i;
		OK(MPI_Send(&out, 1, MPI_INT, peer, i, MPI_COMM_WORLD));
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(thread[i], &result), 0);
		CHECK(result == PTHREAD_CANCELED);
		CHECK_EQ(received[i], 1000 + i);
	}
	end();
	return 0;
}
