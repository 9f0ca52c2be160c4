/* mpi/errors - an error in a waiting call is told as MPI tells it: to the communicator's handler,
 * by the code that the call returns; another thread's call goes on. Also in arrays of requests. */
#include "crowd.h"

enum { THREADS = 8 };

static MPI_Comm quiet, loud;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
	int class = -1;

	MPI_Error_class(*code, &class);
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
	CHECK(*comm == loud);
	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	heard++;
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
}

static int class_of(int code)
{
	int class = -1;

	OK(MPI_Error_class(code, &class));
	return class;
}

/* The sender waits until the receiver does, mostly. */
static void truncated(MPI_Comm c, int id)
{
	int words[4] = { 1, 2, 3, 4 }, in[2] = { 0, 0 };

	if (rank % 2) {
		CHECK_EQ(class_of(MPI_Recv(in, 1, MPI_INT, peer, id, c, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
		OK(MPI_Send(&id, 1, MPI_INT, peer, id, c));
	} else {
		OK(MPI_Send(words, 4, MPI_INT, peer, id, c));
		OK(MPI_Recv(in, 1, MPI_INT, peer, id, c, MPI_STATUS_IGNORE));
		CHECK_EQ(in[0], id);
	}
}

/* The receive of a right message beside it is right. */
static void beside(int id)
{
	int words[2] = { id, rank }, in[2] = { -1, -1 };
	MPI_Status s;

	for (int i = 0; i < 20; i++) {
		OK(MPI_Sendrecv(words, 2, MPI_INT, peer, 100 + id, in, 2, MPI_INT, peer, 100 + id, quiet, &s));
		CHECK_EQ(in[0], id);
		CHECK_EQ(in[1], peer);
		CHECK_EQ(s.MPI_TAG, 100 + id);
	}
}

static void *err(void *arg)
{
	int id = (int)(intptr_t)arg;

	if (id % 2)
		beside(id);
	else
		truncated(id % 4 ? quiet : loud, id);
	return NULL;
}

/* Wrong arguments are told at once. */
static void wrong(void)
{
	int word = 0;

	CHECK_EQ(class_of(MPI_Send(&word, 1, MPI_INT, ranks + 5, 0, quiet)), MPI_ERR_RANK);
	CHECK_EQ(class_of(MPI_Recv(&word, -1, MPI_INT, peer, 0, quiet, MPI_STATUS_IGNORE)), MPI_ERR_COUNT);
	CHECK_EQ(class_of(MPI_Bcast(&word, 1, MPI_INT, ranks + 5, quiet)), MPI_ERR_ROOT);
}

static void *wrong_in_thread(void *arg)
{
	(void)arg;
	wrong();
	return NULL;
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler;

	begin(&argc, &argv);
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &quiet));
	OK(MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN));
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &loud));
	OK(MPI_Comm_create_errhandler(hear, &handler));
	OK(MPI_Comm_set_errhandler(loud, handler));
	crowd(THREADS, err);
	if (rank % 2)
		CHECK_EQ(heard, THREADS / 4);
	crowd(2, wrong_in_thread);
	wrong();
	OK(MPI_Errhandler_free(&handler));
	end();
	return 0;
}
