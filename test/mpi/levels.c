/* mpi/levels - a program that asks for no threads, or calls from a single thread at a time, is as
 * right with the layer: each level of MPI_Init_thread, and MPI_Init; calls before and after.
 * TEST_LEVEL in the environment, or drawn from the seed. */
#include "crowd.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void exchange(int tag)
{
	int out = tag + rank, in = -1, sum = 0;
	MPI_Status s;

	OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, tag, &in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &s));
	CHECK_EQ(in, tag + peer);
	OK(MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK_EQ(sum, ranks * tag + ranks * (ranks - 1) / 2);
	if (rank % 2) {
		OK(MPI_Recv(&in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &s));
		OK(MPI_Send(&out, 1, MPI_INT, peer, tag, MPI_COMM_WORLD));
	} else {
		OK(MPI_Send(&out, 1, MPI_INT, peer, tag, MPI_COMM_WORLD));
		OK(MPI_Recv(&in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &s));
	}
	CHECK_EQ(in, tag + peer);
}

static void *serialized(void *arg)
{
	(void)arg;
	for (int i = 0; i < 30; i++) {
		CHECK_EQ(pthread_mutex_lock(&lock), 0);
		exchange(5);
		CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	}
	return NULL;
}

static void *compute(void *arg)
{
	volatile unsigned *sum = arg;

	for (unsigned i = 0; i < 3000000; i++)
		*sum += i;
	return NULL;
}

/* The rest compute, main alone calls. */
static void funneled(void)
{
	pthread_t thread[3];
	unsigned sum[3] = { 0 };

	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, compute, &sum[i]), 0);
	for (int i = 0; i < 50; i++)
		exchange(i);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

int main(int argc, char **argv)
{
	const char *level = getenv("TEST_LEVEL");
	int want = level ? atoi(level) : getenv("KB_TEST_SEED") ? (int)(test_seed() % 4) : MPI_THREAD_MULTIPLE;
	int got = -1, flag = -1;

	OK(MPI_Initialized(&flag));
	CHECK_EQ(flag, 0);
	if (want == MPI_THREAD_SINGLE)
		OK(MPI_Init(&argc, &argv));
	else
		OK(MPI_Init_thread(&argc, &argv, want, &got));
	CHECK(want == MPI_THREAD_SINGLE || got >= want);
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
	peer = rank ^ 1;
	exchange(1);
	if (want >= MPI_THREAD_FUNNELED)
		funneled();
	if (want == MPI_THREAD_SERIALIZED)
		crowd(1, serialized);
	exchange(2);
	OK(MPI_Finalize());
	OK(MPI_Finalized(&flag));
	CHECK_EQ(flag, 1);
	return 0;
}
