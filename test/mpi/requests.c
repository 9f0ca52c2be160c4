/* mpi/requests - waiting for a request, for all, for any and for some of many; persistent and
 * inactive requests; a request that is cancelled. */
#include "crowd.h"

enum { THREADS = 16, MANY = 8, ROUNDS = 20 };

static void start(int id, int out[MANY], int in[MANY], MPI_Request r[2 * MANY])
{
	for (int i = 0; i < MANY; i++) {
		in[i] = -1;
		out[i] = id * 100 + i;
		OK(MPI_Irecv(&in[i], 1, MPI_INT, peer, id * MANY + i, MPI_COMM_WORLD, &r[i]));
	}
	for (int i = 0; i < MANY; i++)
		OK(MPI_Isend(&out[i], 1, MPI_INT, peer, id * MANY + i, MPI_COMM_WORLD, &r[MANY + i]));
}

static void check(int id, const int in[MANY], const MPI_Request r[2 * MANY])
{
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(in[i], id * 100 + i);
	for (int i = 0; i < 2 * MANY; i++)
		CHECK(r[i] == MPI_REQUEST_NULL);
}

static void wait_all(int id)
{
	int out[MANY], in[MANY];
	MPI_Request r[2 * MANY];
	MPI_Status s[2 * MANY];

	start(id, out, in, r);
	OK(MPI_Waitall(2 * MANY, r, s));
	check(id, in, r);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(s[i].MPI_TAG, id * MANY + i);
	OK(MPI_Waitall(2 * MANY, r, MPI_STATUSES_IGNORE));
	OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
}

static void wait_any(int id)
{
	int out[MANY], in[MANY], index, seen = 0;
	MPI_Request r[2 * MANY];
	MPI_Status s;

	start(id, out, in, r);
	for (int i = 0; i < 2 * MANY; i++) {
		OK(MPI_Waitany(2 * MANY, r, &index, &s));
		CHECK(index >= 0 && index < 2 * MANY && !(seen & 1 << index));
		CHECK(r[index] == MPI_REQUEST_NULL);
		if (index < MANY)
			CHECK_EQ(s.MPI_TAG, id * MANY + index);
		seen |= 1 << index;
	}
	check(id, in, r);
	OK(MPI_Waitany(2 * MANY, r, &index, &s));
	CHECK_EQ(index, MPI_UNDEFINED);
}

static void wait_some(int id)
{
	int out[MANY], in[MANY], index[2 * MANY], n = 0, sum = 0;
	MPI_Request r[2 * MANY];
	MPI_Status s[2 * MANY];

	for (start(id, out, in, r); sum < 2 * MANY; sum += n) {
		OK(MPI_Waitsome(2 * MANY, r, &n, index, s));
		CHECK(n > 0 && n <= 2 * MANY - sum);
		for (int i = 0; i < n; i++)
			CHECK(r[index[i]] == MPI_REQUEST_NULL && (index[i] >= MANY || s[i].MPI_TAG == id * MANY + index[i]));
	}
	check(id, in, r);
	OK(MPI_Waitsome(2 * MANY, r, &n, index, s));
	CHECK_EQ(n, MPI_UNDEFINED);
}

/* A request that is used again and again; waiting for it when it is not active returns at once. */
static void persistent(int id)
{
	int out = 0, in = -1;
	MPI_Request r[2];
	MPI_Status s;

	OK(MPI_Send_init(&out, 1, MPI_INT, peer, 5000 + id, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Recv_init(&in, 1, MPI_INT, peer, 5000 + id, MPI_COMM_WORLD, &r[1]));
	OK(MPI_Wait(&r[1], &s));
	CHECK(r[1] != MPI_REQUEST_NULL);
	for (int i = 0; i < ROUNDS; i++) {
		out = id + i;
		OK(MPI_Startall(2, r));
		if (i % 2) {
			OK(MPI_Wait(&r[1], &s));
			CHECK_EQ(s.MPI_TAG, 5000 + id);
			OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
		} else {
			OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		}
		CHECK_EQ(in, id + i);
		CHECK(r[0] != MPI_REQUEST_NULL && r[1] != MPI_REQUEST_NULL);
	}
	OK(MPI_Request_free(&r[0]));
	OK(MPI_Request_free(&r[1]));
}

/* A message in parts, as often as not with a request beside it that is not active. */
static void partitioned(int id)
{
#if MPI_VERSION >= 4
	enum { PARTS = 4 };
	int out[PARTS], in[PARTS];
	MPI_Request r[3] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL };
	MPI_Status s[3];

	OK(MPI_Psend_init(out, PARTS, 1, MPI_INT, peer, 6000 + id, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
	OK(MPI_Precv_init(in, PARTS, 1, MPI_INT, peer, 6000 + id, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < PARTS; k++)
			out[k] = id + i + k, in[k] = -1;
		OK(MPI_Startall(2, r));
		for (int k = 0; k < PARTS; k++)
			OK(MPI_Pready(k, r[0]));
		OK(MPI_Waitall(3, r, i % 2 ? s : MPI_STATUSES_IGNORE));
		for (int k = 0; k < PARTS; k++)
			CHECK_EQ(in[k], id + i + k);
		CHECK(i % 2 == 0 || (s[2].MPI_SOURCE == MPI_ANY_SOURCE && s[2].MPI_TAG == MPI_ANY_TAG));
	}
	OK(MPI_Request_free(&r[0]));
	OK(MPI_Request_free(&r[1]));
#else
	(void)id;
#endif
}

static void cancelled(int id)
{
	int in = -1, is = 0;
	MPI_Request r;
	MPI_Status s;

	OK(MPI_Irecv(&in, 1, MPI_INT, peer, 7000 + id, MPI_COMM_WORLD, &r));
	OK(MPI_Cancel(&r));
	OK(MPI_Wait(&r, &s));
	OK(MPI_Test_cancelled(&s, &is));
	CHECK(is);
	CHECK(r == MPI_REQUEST_NULL);
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

/* Asks itself, without a pause of its own: other threads must have their turn. */
static void ask(int id)
{
	int out = id, in = -1, flag = 0;
	MPI_Request r;

	OK(MPI_Irecv(&in, 1, MPI_INT, peer, 8000 + id, MPI_COMM_WORLD, &r));
	OK(MPI_Send(&out, 1, MPI_INT, peer, 8000 + id, MPI_COMM_WORLD));
	while (!flag)
		OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(in, id);
}

static void *wait_in_turn(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		wait_all(id);
		wait_any(id);
		wait_some(id);
		ask(id);
	}
	persistent(id);
	partitioned(id);
	cancelled(id);
	return NULL;
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	crowd(THREADS, wait_in_turn);
	wait_in_turn((void *)(intptr_t)(THREADS + 1));
	end();
	return 0;
}
