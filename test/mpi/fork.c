/* mpi/fork - a child that is forked between MPI_Init and MPI_Finalize, while threads wait in MPI,
 * ends or becomes another program, as both MPIs allow; the parent's waits go on. */
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

enum { THREADS = 6, CHILDREN = 5 };

static void *receive(void *arg)
{
	int id = (int)(intptr_t)arg, in = -1;

	OK(MPI_Recv(&in, 1, MPI_INT, peer, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(in, 1000 + id);
	return NULL;
}

static int ends_with(pid_t child)
{
	int status = -1;

	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void *nothing(void *arg)
{
	return arg;
}

/* A child may have threads of its own. */
static void be_child(int i)
{
	static int mark;
	pthread_t t;
	void *result = NULL;

	if (i == 0)
		_exit(7);
	if (i == 1 || pthread_create(&t, NULL, nothing, &mark) || pthread_join(t, &result) || result != &mark) {
		execl("/bin/sh", "sh", "-c", "exit 8", (char *)NULL);
		_exit(1);
	}
	_exit(9);
}

static void exchange(int tag)
{
	int out = tag + rank, in = -1;

	OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, tag, &in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(in, tag + peer);
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	begin(&argc, &argv);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, receive, (void *)(intptr_t)i), 0);
	for (int i = 0; i < CHILDREN; i++) {
		static const int expected[] = { 7, 8, 9 };
		pid_t child = fork();

		if (child == 0)
			be_child(i % 3);
		exchange(100 + i);
		CHECK_EQ(ends_with(child), expected[i % 3]);
	}
	for (int i = 0; i < THREADS; i++) {
		int out = 1000 + i;

		OK(MPI_Send(&out, 1, MPI_INT, peer, i, MPI_COMM_WORLD));
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	end();
	return 0;
}
