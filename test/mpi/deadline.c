/* mpi/deadline - kb_mpi_wait and kb_mpi_waitall: they give up at the deadline and leave the requests as they were,
 * with a single thread and with many; a word that comes in time is received, at the deadline once, by that wait or a
 * later wait.
 * matrix: run-only */
#include <dlfcn.h>
#include <kochab/mpi.h>

#include "crowd.h"

enum { THREADS = 12, ROUNDS = 400 };

/* The layer's and the drop-in's: a program that `kochab run` starts is not linked with them. */
static int (*wait_one)(MPI_Request *, MPI_Status *, uint64_t);
static int (*wait_all)(int, MPI_Request *, MPI_Status *, uint64_t);
static uint64_t (*now)(void);

static void *find(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	CHECK(f);
	return f;
}

static void *late(void *arg)
{
	int id = (int)(intptr_t)arg, in[2] = { -1, -1 }, out = id, other = -1;
	uint64_t began = now();
	MPI_Request r[2];
	MPI_Status s;

	OK(MPI_Irecv(&in[0], 1, MPI_INT, peer, id, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Irecv(&in[1], 1, MPI_INT, peer, 100 + id, MPI_COMM_WORLD, &r[1]));
	CHECK_EQ(wait_one(&r[0], &s, 0), KB_MPI_TIMEDOUT);
	CHECK_EQ(wait_one(&r[0], &s, now() + 20000000), KB_MPI_TIMEDOUT);
	CHECK(now() >= began + 20000000);
	CHECK(r[0] != MPI_REQUEST_NULL);
	CHECK_EQ(wait_all(2, r, MPI_STATUSES_IGNORE, now() + 20000000), KB_MPI_TIMEDOUT);
	CHECK(r[0] != MPI_REQUEST_NULL && r[1] != MPI_REQUEST_NULL);
	OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, 200 + id, &other, 1, MPI_INT, peer, 200 + id, MPI_COMM_WORLD, &s));
	OK(MPI_Send(&out, 1, MPI_INT, peer, id, MPI_COMM_WORLD));
	OK(wait_one(&r[0], &s, KB_FOREVER));
	CHECK_EQ(s.MPI_TAG, id);
	CHECK_EQ(in[0], id);
	CHECK(r[0] == MPI_REQUEST_NULL);
	OK(MPI_Send(&out, 1, MPI_INT, peer, 100 + id, MPI_COMM_WORLD));
	OK(wait_all(2, r, MPI_STATUSES_IGNORE, now() + 60000000000));
	CHECK_EQ(in[1], id);
	return NULL;
}

/* Words that come about when the other side's patience ends. */
static void *race(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t patience = (uint64_t)(i * 37 % 60) * 1000, until = now() + (uint64_t)(i * 53 % 60) * 1000;
		int in = -1, e;
		MPI_Request r;
		MPI_Status s;

		OK(MPI_Irecv(&in, 1, MPI_INT, peer, id, MPI_COMM_WORLD, &r));
		while (now() < until)
			;
		OK(MPI_Send(&i, 1, MPI_INT, peer, id, MPI_COMM_WORLD));
		while ((e = wait_one(&r, &s, now() + patience)) == KB_MPI_TIMEDOUT)
			CHECK(r != MPI_REQUEST_NULL);
		OK(e);
		CHECK_EQ(in, i);
		CHECK_EQ(s.MPI_TAG, id);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	*(void **)&wait_one = find("kb_mpi_wait");
	*(void **)&wait_all = find("kb_mpi_waitall");
	*(void **)&now = find("kb_now");
	begin(&argc, &argv);
	late((void *)(intptr_t)50);
	crowd(THREADS, late);
	crowd(THREADS, race);
	end();
	return 0;
}
