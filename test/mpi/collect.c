/* mpi/collect - threads make collective calls at once, each on a communicator of its own: every
 * call, also in place, on neighbours and between two groups. The results are right; while a thread
 * waits, the rest compute. */
#include "crowd.h"

enum { THREADS = 12, ROUNDS = 6, MOST = 16 };

static MPI_Comm own[THREADS + 2], ring[THREADS + 2], between[THREADS + 2];

static void roots(MPI_Comm c, int id)
{
	int word = rank == ranks - 1 ? id : -1, all[MOST], sum = -1, mine[MOST], counts[MOST], places[MOST];

	OK(MPI_Bcast(&word, 1, MPI_INT, ranks - 1, c));
	CHECK_EQ(word, id);
	word = id + rank;
	OK(MPI_Gather(&word, 1, MPI_INT, all, 1, MPI_INT, 0, c));
	for (int i = 0; i < ranks && rank == 0; i++)
		CHECK_EQ(all[i], id + i);
	for (int i = 0; i < ranks; i++) {
		mine[i] = id * i;
		counts[i] = 1;
		places[i] = ranks - 1 - i;
	}
	OK(MPI_Scatter(mine, 1, MPI_INT, &word, 1, MPI_INT, 0, c));
	CHECK_EQ(word, id * rank);
	OK(MPI_Gatherv(&word, 1, MPI_INT, all, counts, places, MPI_INT, 0, c));
	for (int i = 0; i < ranks && rank == 0; i++)
		CHECK_EQ(all[ranks - 1 - i], id * i);
	OK(MPI_Scatterv(mine, counts, places, MPI_INT, &word, 1, MPI_INT, 0, c));
	CHECK_EQ(word, id * (ranks - 1 - rank));
	word = id + rank;
	OK(MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, 0, c));
	if (rank == 0)
		CHECK_EQ(sum, ranks * id + ranks * (ranks - 1) / 2);
	sum = id + rank;
	OK(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &sum, &sum, 1, MPI_INT, MPI_MAX, 0, c));
	if (rank == 0)
		CHECK_EQ(sum, id + ranks - 1);
}

static void all(MPI_Comm c, int id)
{
	int word = id + rank, in[MOST], out[MOST], counts[MOST], places[MOST], bytes[MOST], sum = -1;
	MPI_Datatype types[MOST];

	OK(MPI_Allgather(&word, 1, MPI_INT, in, 1, MPI_INT, c));
	for (int i = 0; i < ranks; i++) {
		CHECK_EQ(in[i], id + i);
		counts[i] = 1;
		places[i] = i;
		bytes[i] = i * (int)sizeof(int);
		types[i] = MPI_INT;
		out[i] = id + 100 * rank + i;
	}
	OK(MPI_Allgatherv(&word, 1, MPI_INT, in, counts, places, MPI_INT, c));
	CHECK_EQ(in[peer], id + peer);
	OK(MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, c));
	for (int i = 0; i < ranks; i++)
		CHECK_EQ(in[i], id + 100 * i + rank);
	memset(in, 0, sizeof(in));
	OK(MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, c));
	CHECK_EQ(in[peer], id + 100 * peer + rank);
	memset(in, 0, sizeof(in));
	OK(MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, c));
	CHECK_EQ(in[peer], id + 100 * peer + rank);
	OK(MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, ranks * id + ranks * (ranks - 1) / 2);
	OK(MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(word, sum);
	OK(MPI_Reduce_scatter(out, &sum, counts, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, ranks * (id + rank) + 100 * ranks * (ranks - 1) / 2);
	OK(MPI_Reduce_scatter_block(out, &word, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(word, sum);
	word = id + rank;
	OK(MPI_Scan(&word, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, (rank + 1) * id + rank * (rank + 1) / 2);
	OK(MPI_Exscan(&word, &sum, 1, MPI_INT, MPI_SUM, c));
	if (rank > 0)
		CHECK_EQ(sum, rank * id + rank * (rank - 1) / 2);
}

/* Of a ring: the left, then the right. */
static void neighbours(MPI_Comm c, int id)
{
	int word = id + rank, in[2], left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
	int one[2] = { 1, 1 }, places[2] = { 0, 1 }, out[2] = { 1000 * id + rank, 2000 * id + rank };
	MPI_Aint bytes[2] = { 0, sizeof(int) };
	MPI_Datatype types[2] = { MPI_INT, MPI_INT };

	OK(MPI_Neighbor_allgather(&word, 1, MPI_INT, in, 1, MPI_INT, c));
	CHECK_EQ(in[0], id + left);
	CHECK_EQ(in[1], id + right);
	OK(MPI_Neighbor_allgatherv(&word, 1, MPI_INT, in, one, places, MPI_INT, c));
	CHECK_EQ(in[1], id + right);
#ifndef OPEN_MPI
	if (ranks == 2)
		return; /* both are the same rank: which block comes from which side, MPIs disagree */
#endif
	OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, c));
	CHECK_EQ(in[0], 2000 * id + left);
	CHECK_EQ(in[1], 1000 * id + right);
	OK(MPI_Neighbor_alltoallv(out, one, places, MPI_INT, in, one, places, MPI_INT, c));
	CHECK_EQ(in[0], 2000 * id + left);
	OK(MPI_Neighbor_alltoallw(out, one, bytes, types, in, one, bytes, types, c));
	CHECK_EQ(in[1], 1000 * id + right);
}

/* A count of a type that has no bytes is as good as none on the other side. */
static void zeros(MPI_Comm c)
{
	int out = 7, in = -1, none[MOST], some[MOST];
	MPI_Datatype empty, empties[MOST], words[MOST];

	OK(MPI_Type_contiguous(0, MPI_INT, &empty));
	OK(MPI_Type_commit(&empty));
	for (int i = 0; i < ranks; i++) {
		none[i] = 0;
		some[i] = 1;
		empties[i] = empty;
		words[i] = MPI_INT;
	}
	OK(MPI_Alltoallv(&out, some, none, empty, &in, none, none, MPI_INT, c));
	OK(MPI_Alltoallv(&out, none, none, MPI_INT, &in, some, none, empty, c));
	OK(MPI_Alltoallw(&out, some, none, empties, &in, none, none, words, c));
	OK(MPI_Alltoallw(&out, none, none, words, &in, some, none, empties, c));
	CHECK_EQ(in, -1);
	OK(MPI_Type_free(&empty));
}

/* Even ranks and odd ranks. */
static void groups(MPI_Comm c, int id)
{
	int word = id + rank, sum = -1, n = ranks / 2, root = rank == 0 ? MPI_ROOT : rank % 2 ? 0 : MPI_PROC_NULL;

	OK(MPI_Barrier(c));
	OK(MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, n * id + n * (n - 1) + (rank % 2 ? 0 : n));
	word = rank == 0 ? id : -1;
	OK(MPI_Bcast(&word, 1, MPI_INT, root, c));
	if (rank % 2 || rank == 0)
		CHECK_EQ(word, id);
}

static void *call(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		roots(own[id], id);
		all(own[id], id);
		OK(MPI_Barrier(own[id]));
		neighbours(ring[id], id);
		zeros(own[id]);
		groups(between[id], id);
	}
	return NULL;
}

static void make(int id)
{
	int periodic = 1;
	MPI_Comm half;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[id]));
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring[id]));
	OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
	OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 100 + id, &between[id]));
	OK(MPI_Comm_free(&half));
}

/* Makes communicators of its own's, as the rest do. */
static void *multiply(void *arg)
{
	int id = (int)(intptr_t)arg, sum = 0, one = 1;
	MPI_Comm copy;

	for (int i = 0; i < 3; i++) {
		OK(MPI_Comm_dup(own[id], &copy));
		OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy));
		CHECK_EQ(sum, ranks);
		OK(MPI_Comm_free(&copy));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	CHECK(ranks <= MOST);
	for (int i = 0; i < THREADS + 2; i++)
		make(i);
	crowd(THREADS, call);
	call((void *)(intptr_t)(THREADS + 1));
	crowd(4, multiply);
	end();
	return 0;
}
