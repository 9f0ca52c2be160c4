/* mpi/deadline - kb_mpi_wait and kb_mpi_waitall: they give up at the deadline and leave the
 * requests as they were, with a single thread and with many, persistent collective and partitioned
 * ones among them; a word that comes in time is received, at the deadline once, by that wait or a
 * later wait.
 * matrix: run-only */
#include <dlfcn.h>
#include <kochab/mpi.h>

#include "crowd.h"

#if MPI_VERSION >= 4
#define ALLREDUCE_INIT MPI_Allreduce_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#if OMPI_HAVE_MPI_EXT_PCOLLREQ
#define ALLREDUCE_INIT MPIX_Allreduce_init
#endif
#endif

enum { THREADS = 12, ROUNDS = 400, STARTS = 5, PARTS = 4 };

static MPI_Comm own[THREADS + 1];

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

/* Two that are complete and are used again, or null where this MPI has no such. */
struct again {
	MPI_Request r[3];
	int mine, sum, out[PARTS], in[PARTS];
};

static void make(struct again *a, int id)
{
	for (int i = 0; i < 3; i++)
		a->r[i] = MPI_REQUEST_NULL;
#ifdef ALLREDUCE_INIT
	OK(ALLREDUCE_INIT(&a->mine, &a->sum, 1, MPI_INT, MPI_SUM, own[id], MPI_INFO_NULL, &a->r[0]));
#endif
#if MPI_VERSION >= 4
	OK(MPI_Psend_init(a->out, PARTS, 1, MPI_INT, peer, 300 + id, MPI_COMM_WORLD, MPI_INFO_NULL, &a->r[1]));
	OK(MPI_Precv_init(a->in, PARTS, 1, MPI_INT, peer, 300 + id, MPI_COMM_WORLD, MPI_INFO_NULL, &a->r[2]));
#else
	(void)id;
#endif
}

static void start(struct again *a, int value)
{
	a->mine = value;
	a->sum = -1;
	for (int k = 0; k < PARTS; k++)
		a->out[k] = value + k, a->in[k] = -1;
	for (int i = 0; i < 3; i++)
		if (a->r[i] != MPI_REQUEST_NULL)
			OK(MPI_Start(&a->r[i]));
#if MPI_VERSION >= 4
	for (int k = 0; k < PARTS; k++)
		OK(MPI_Pready(k, a->r[1]));
#endif
}

static void check(const struct again *a, int value)
{
	if (a->r[0] != MPI_REQUEST_NULL)
		CHECK_EQ(a->sum, value * ranks);
	for (int k = 0; k < PARTS && a->r[2] != MPI_REQUEST_NULL; k++)
		CHECK_EQ(a->in[k], value + k);
}

/* A receive whose word is late lets the wait for all time out, though the rest is complete; which
 * is waited for later. */
static void *persistent(void *arg)
{
	int id = (int)(intptr_t)arg, in, other;
	struct again a = { .sum = 0 };
	MPI_Request r[4];
	MPI_Status s[4];

	make(&a, id);
	for (int i = 0; i < STARTS; i++) {
		int at = i % 2 ? 3 : 0; /* the late request is the first or the last */
		MPI_Request *late = &r[at], *rest = &r[at ? 0 : 1];

		start(&a, id + i);
		in = -1;
		memcpy(rest, a.r, sizeof(a.r));
		OK(MPI_Irecv(&in, 1, MPI_INT, peer, 400 + id, MPI_COMM_WORLD, late));
		CHECK_EQ(wait_all(4, r, s, now() + 5000000), KB_MPI_TIMEDOUT);
		CHECK(*late != MPI_REQUEST_NULL && !memcmp(rest, a.r, sizeof(a.r)));
		OK(MPI_Sendrecv(&i, 1, MPI_INT, peer, 200 + id, &other, 1, MPI_INT, peer, 200 + id, MPI_COMM_WORLD, s));
		OK(MPI_Send(&i, 1, MPI_INT, peer, 400 + id, MPI_COMM_WORLD));
		OK(wait_all(4, r, i % 3 ? s : MPI_STATUSES_IGNORE, now() + 60000000000));
		CHECK_EQ(in, i);
		CHECK(*late == MPI_REQUEST_NULL && !memcmp(rest, a.r, sizeof(a.r)));
		if (i % 3)
			CHECK_EQ(s[at].MPI_TAG, 400 + id);
		check(&a, id + i);
	}
	for (int i = 0; i < 3; i++)
		if (a.r[i] != MPI_REQUEST_NULL)
			OK(MPI_Request_free(&a.r[i]));
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
	for (int i = 0; i <= THREADS; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
	late((void *)(intptr_t)50);
	persistent((void *)(intptr_t)THREADS);
	crowd(THREADS, late);
	crowd(THREADS, persistent);
	crowd(THREADS, race);
	end();
	return 0;
}
