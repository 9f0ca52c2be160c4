/* mpi/point - threads of two ranks exchange words and large blocks by every blocking call from
 * point to point; statuses and contents are right. */
#include "crowd.h"

enum { THREADS = 24, ROUNDS = 40, LARGE = 300000 };

static void check_status(const MPI_Status *s, int tag, int words)
{
	int n = -1;

	CHECK_EQ(s->MPI_SOURCE, peer);
	CHECK_EQ(s->MPI_TAG, tag);
	OK(MPI_Get_count(s, MPI_INT, &n));
	CHECK_EQ(n, words);
}

typedef int send_call(const void *, int, MPI_Datatype, int, int, MPI_Comm);

static void exchange(send_call *send, int id, int round)
{
	int out[3] = { id, round, rank }, in[4] = { -1, -1, -1, -1 };
	MPI_Status s;

	memset(&s, 0x55, sizeof(s));
	if (rank % 2) {
		OK(MPI_Recv(in, 4, MPI_INT, peer, id, MPI_COMM_WORLD, &s));
		OK(send(out, 3, MPI_INT, peer, id, MPI_COMM_WORLD));
	} else {
		OK(send(out, 3, MPI_INT, peer, id, MPI_COMM_WORLD));
		OK(MPI_Recv(in, 4, MPI_INT, peer, id, MPI_COMM_WORLD, &s));
	}
	check_status(&s, id, 3);
	CHECK_EQ(in[0], id);
	CHECK_EQ(in[1], round);
	CHECK_EQ(in[2], peer);
	CHECK_EQ(in[3], -1);
}

/* The receiver is there before the sender, as MPI_Rsend wants. */
static void exchange_ready(int id)
{
	int in = -1, go = 0;
	MPI_Request request;

	OK(MPI_Irecv(&in, 1, MPI_INT, peer, 1000 + id, MPI_COMM_WORLD, &request));
	OK(MPI_Sendrecv_replace(&go, 1, MPI_INT, peer, 2000 + id, peer, 2000 + id, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	OK(MPI_Rsend(&id, 1, MPI_INT, peer, 1000 + id, MPI_COMM_WORLD));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK_EQ(in, id);
}

static void exchange_both(int id, int round)
{
	int out = id * 1000 + round, in = -1, same = out;
	MPI_Status s;

	OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, id, &in, 1, MPI_INT, peer, id, MPI_COMM_WORLD, &s));
	check_status(&s, id, 1);
	CHECK_EQ(in, out);
	same += rank;
	OK(MPI_Sendrecv_replace(&same, 1, MPI_INT, peer, id, peer, id, MPI_COMM_WORLD, &s));
	check_status(&s, id, 1);
	CHECK_EQ(same, out + peer);
	OK(MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, id, &in, 1, MPI_INT, MPI_PROC_NULL, id, MPI_COMM_WORLD, &s));
	CHECK_EQ(s.MPI_SOURCE, MPI_PROC_NULL);
	OK(MPI_Sendrecv_replace(&same, 1, MPI_INT, MPI_PROC_NULL, id, MPI_PROC_NULL, id, MPI_COMM_WORLD, &s));
	CHECK_EQ(s.MPI_SOURCE, MPI_PROC_NULL);
	CHECK_EQ(same, out + peer);
}

static void exchange_probed(int id, int round)
{
	int out[2] = { id, round }, in[2] = { -1, -1 };
	MPI_Request request;
	MPI_Message message;
	MPI_Status s;

	OK(MPI_Isend(out, 2, MPI_INT, peer, id, MPI_COMM_WORLD, &request));
	OK(MPI_Probe(peer, id, MPI_COMM_WORLD, &s));
	check_status(&s, id, 2);
	OK(MPI_Recv(in, 2, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK_EQ(in[1], round);
	OK(MPI_Isend(out, 2, MPI_INT, peer, id, MPI_COMM_WORLD, &request));
	OK(MPI_Mprobe(peer, id, MPI_COMM_WORLD, &message, &s));
	check_status(&s, id, 2);
	OK(MPI_Mrecv(in, 2, MPI_INT, &message, &s));
	check_status(&s, id, 2);
	CHECK(message == MPI_MESSAGE_NULL);
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* No MPI sends so much before it is received. */
static void exchange_large(int id)
{
	int *out = malloc(LARGE * sizeof(int)), *in = malloc(LARGE * sizeof(int));

	CHECK(out && in);
	for (int i = 0; i < LARGE; i++) {
		out[i] = id ^ i ^ rank;
		in[i] = -1;
	}
	if (rank % 2) {
		OK(MPI_Recv(in, LARGE, MPI_INT, peer, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		OK(MPI_Send(out, LARGE, MPI_INT, peer, id, MPI_COMM_WORLD));
	} else {
		OK(MPI_Send(out, LARGE, MPI_INT, peer, id, MPI_COMM_WORLD));
		OK(MPI_Recv(in, LARGE, MPI_INT, peer, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	}
	for (int i = 0; i < LARGE; i++)
		CHECK_EQ(in[i], id ^ i ^ peer);
	free(out);
	free(in);
}

static void *talk(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		exchange(MPI_Send, id, i);
		exchange(MPI_Ssend, id, i);
		exchange(MPI_Bsend, id, i);
		exchange_both(id, i);
		exchange_probed(id, i);
	}
	exchange_ready(id);
	if (id < 4)
		exchange_large(id);
	return NULL;
}

int main(int argc, char **argv)
{
	static char buffer[THREADS * 4 * (MPI_BSEND_OVERHEAD + 64)];
	void *back;
	int size;

	begin(&argc, &argv);
	OK(MPI_Buffer_attach(buffer, sizeof(buffer)));
	crowd(THREADS, talk);
	talk((void *)(intptr_t)(THREADS + 1)); /* alone */
	OK(MPI_Buffer_detach(&back, &size));
	CHECK(back == buffer);
	end();
	return 0;
}
