/* mpi/wrong - requests that are waited for again, freed again, or freed while their message is on
 * its way; a negative tag; a request that is cancelled and waited for: by many threads at once,
 * whose right calls go on. All errors come by the communicator's handler as MPI tells them. */
#include "crowd.h"

enum { THREADS = 8, ROUNDS = 20, WORDS = 20000 };

static int class_of(int code)
{
	int class = -1;

	OK(MPI_Error_class(code, &class));
	return class;
}

/* A request that is complete is null; waiting for it is no error, and its status is empty. */
static void waits_again(int id)
{
	MPI_Request r[2];
	MPI_Status s[2];
	int out = id, in = -1, index = 0, n = 0, flag = 0;

	OK(MPI_Irecv(&in, 1, MPI_INT, peer, id, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Isend(&out, 1, MPI_INT, peer, id, MPI_COMM_WORLD, &r[1]));
	OK(MPI_Wait(&r[0], &s[0]));
	CHECK_EQ(in, id);
	CHECK_EQ(s[0].MPI_SOURCE, peer);
	CHECK(r[0] == MPI_REQUEST_NULL);
	OK(MPI_Wait(&r[0], &s[0]));
	CHECK_EQ(s[0].MPI_SOURCE, MPI_ANY_SOURCE);
	CHECK_EQ(s[0].MPI_TAG, MPI_ANY_TAG);
	OK(MPI_Waitall(2, r, s));
	OK(MPI_Waitall(2, r, s));
	OK(MPI_Waitany(2, r, &index, &s[0]));
	CHECK_EQ(index, MPI_UNDEFINED);
	OK(MPI_Waitsome(2, r, &n, &index, s));
	CHECK_EQ(n, MPI_UNDEFINED);
	OK(MPI_Test(&r[0], &flag, &s[0]));
	CHECK_EQ(flag, 1);
	CHECK_EQ(class_of(MPI_Request_free(&r[0])), MPI_ERR_REQUEST);
}

/* The message arrives, although the sender has freed the request; of a receive alike. */
static void frees(int id)
{
	static int out[THREADS][WORDS], in[THREADS][WORDS];
	MPI_Request r;
	int word = -1;

	for (int i = 0; i < WORDS; i++)
		out[id][i] = id * WORDS + i;
	OK(MPI_Isend(out[id], WORDS, MPI_INT, peer, id, MPI_COMM_WORLD, &r));
	OK(MPI_Request_free(&r));
	CHECK(r == MPI_REQUEST_NULL);
	OK(MPI_Recv(in[id], WORDS, MPI_INT, peer, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (int i = 0; i < WORDS; i++)
		CHECK_EQ(in[id][i], id * WORDS + i);
	OK(MPI_Sendrecv(&id, 1, MPI_INT, peer, 50 + id, &word, 1, MPI_INT, peer, 50 + id, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(word, id);
}

/* Nobody sends: only the cancelling ends the wait. */
static void cancels(int id)
{
	MPI_Request r;
	MPI_Status s;
	int in = -1, flag = 0;

	OK(MPI_Irecv(&in, 1, MPI_INT, peer, 100 + id, MPI_COMM_WORLD, &r));
	OK(MPI_Cancel(&r));
	OK(MPI_Wait(&r, &s));
	OK(MPI_Test_cancelled(&s, &flag));
	CHECK_EQ(flag, 1);
	CHECK_EQ(in, -1);
}

static void errs(int id)
{
	int word = 0;

	CHECK_EQ(class_of(MPI_Send(&word, 1, MPI_INT, peer, -17, MPI_COMM_WORLD)), MPI_ERR_TAG);
	CHECK_EQ(class_of(MPI_Recv(&word, 1, MPI_INT, ranks + id, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPI_ERR_RANK);
	CHECK_EQ(class_of(MPI_Sendrecv(&word, 1, MPI_INT, ranks + 1, 0, &word, 1, MPI_INT, peer, 200 + id, MPI_COMM_WORLD,
				       MPI_STATUS_IGNORE)), MPI_ERR_RANK);
	CHECK_EQ(class_of(MPI_Probe(ranks + 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPI_ERR_RANK);
}

static void *follow(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		waits_again(id);
		frees(id);
		cancels(id);
		errs(id);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	crowd(THREADS, follow);
	follow((void *)(intptr_t)0);
	end();
	return 0;
}
