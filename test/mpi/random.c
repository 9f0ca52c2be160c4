/* mpi/random - many threads of four ranks exchange messages of random sizes by random calls, and
 * make random collective calls on communicators of their own; each word that arrives is checked.
 * Thread i of each rank follows the same script, drawn from the seed.
 * ranks: 4
 * soak: yes */
#include "crowd.h"

enum { THREADS = 64, SOME_THREADS = 16, LARGEST = 40000, MANY = 6, ROUNDS_A_LOOK = 16, MOST_RANKS = 64, TAGS = 128 };

static MPI_Comm own[THREADS];
static uint64_t seed;
static double limit;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

struct script {
	int id;
	unsigned round;
	uint64_t state;
	int *in, *out;
};

/* The same number on all ranks. */
static unsigned draw(struct script *s, unsigned n)
{
	s->state = mix(s->state + 0x632be59bd9b4e019u);
	return (unsigned)(s->state >> 33) % n;
}

static int word(const struct script *s, int from, int i)
{
	return (int)mix(seed ^ (uint64_t)(unsigned)s->id << 40 ^ (uint64_t)s->round << 16 ^ (uint64_t)(unsigned)from << 8 ^
			(uint64_t)(unsigned)i * 0x100000001b3u);
}

static void fill(const struct script *s, int n)
{
	for (int i = 0; i < n; i++) {
		s->out[i] = word(s, rank, i);
		s->in[i] = 0;
	}
}

static void check(const struct script *s, int from, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(s->in[i], word(s, from, i));
}

/* No rank is TAGS rounds ahead of another: is_over. */
static int tag_of(const struct script *s)
{
	return s->id + THREADS * (int)(s->round % TAGS);
}

/* By `step` around the ring of ranks. */
static void shift(struct script *s)
{
	static const int sizes[] = { 0, 1, 2, 17, 300, 2000, 9000, LARGEST };
	int n = sizes[draw(s, 8)], step = 1 + (int)draw(s, (unsigned)ranks - 1), got = -1;
	int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
	MPI_Comm c = draw(s, 2) ? own[s->id] : MPI_COMM_WORLD;
	MPI_Request r[2];
	int tag = tag_of(s);
	MPI_Message message;
	MPI_Status status;

	fill(s, n);
	switch (draw(s, 6)) {
	case 0:
		OK(MPI_Sendrecv(s->out, n, MPI_INT, to, tag, s->in, n, MPI_INT, from, tag, c, &status));
		break;
	case 1:
		OK(MPI_Irecv(s->in, n, MPI_INT, from, tag, c, &r[0]));
		OK(MPI_Ssend(s->out, n, MPI_INT, to, tag, c));
		OK(MPI_Wait(&r[0], &status));
		break;
	case 2:
		OK(MPI_Isend(s->out, n, MPI_INT, to, tag, c, &r[0]));
		OK(MPI_Probe(from, tag, c, &status));
		OK(MPI_Recv(s->in, n, MPI_INT, from, tag, c, &status));
		OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
		break;
	case 3:
		OK(MPI_Isend(s->out, n, MPI_INT, to, tag, c, &r[0]));
		OK(MPI_Mprobe(MPI_ANY_SOURCE, tag, c, &message, &status));
		OK(MPI_Mrecv(s->in, n, MPI_INT, &message, &status));
		OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
		break;
	case 4:
		OK(MPI_Isend(s->out, n, MPI_INT, to, tag, c, &r[0]));
		OK(MPI_Irecv(s->in, n, MPI_INT, from, tag, c, &r[1]));
		OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		check(s, from, n);
		return;
	default:
		memcpy(s->in, s->out, (size_t)n * sizeof(int));
		OK(MPI_Sendrecv_replace(s->in, n, MPI_INT, to, tag, from, tag, c, &status));
		break;
	}
	CHECK_EQ(status.MPI_SOURCE, from);
	OK(MPI_Get_count(&status, MPI_INT, &got));
	CHECK_EQ(got, n);
	check(s, from, n);
}

/* Several at once, waited for as they come. */
static void several(struct script *s)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, some = (int)draw(s, 2), tag = tag_of(s);
	int left = 2 * MANY, index[2 * MANY];
	MPI_Request r[2 * MANY];

	fill(s, MANY);
	for (int i = 0; i < MANY; i++) {
		OK(MPI_Irecv(&s->in[i], 1, MPI_INT, from, tag + i * TAGS * THREADS, own[s->id], &r[i]));
		OK(MPI_Isend(&s->out[i], 1, MPI_INT, to, tag + i * TAGS * THREADS, own[s->id], &r[MANY + i]));
	}
	while (left > 0) {
		int n = 1;

		if (some)
			OK(MPI_Waitsome(2 * MANY, r, &n, index, MPI_STATUSES_IGNORE));
		else
			OK(MPI_Waitany(2 * MANY, r, index, MPI_STATUS_IGNORE));
		CHECK(n > 0 && index[0] != MPI_UNDEFINED);
		left -= n;
	}
	CHECK_EQ(left, 0);
	check(s, from, MANY);
}

static void together(struct script *s)
{
	int root = (int)draw(s, (unsigned)ranks), mine, all[MOST_RANKS], got = 0;
	unsigned sum = 0, result = 0, add;
	MPI_Comm c = own[s->id];

	mine = word(s, rank, 0);
	add = (unsigned)mine;
	for (int i = 0; i < ranks; i++)
		sum += (unsigned)word(s, i, 0);
	switch (draw(s, 5)) {
	case 0:
		OK(MPI_Barrier(c));
		break;
	case 1:
		got = rank == root ? mine : 0;
		OK(MPI_Bcast(&got, 1, MPI_INT, root, c));
		CHECK_EQ(got, word(s, root, 0));
		break;
	case 2:
		OK(MPI_Allreduce(&add, &result, 1, MPI_UNSIGNED, MPI_SUM, c));
		CHECK_EQ(result, sum);
		break;
	case 3:
		OK(MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, c));
		for (int i = 0; i < ranks; i++)
			CHECK_EQ(all[i], word(s, i, 0));
		break;
	default:
		OK(MPI_Reduce(&add, &result, 1, MPI_UNSIGNED, MPI_SUM, root, c));
		if (rank == root)
			CHECK_EQ(result, sum);
		break;
	}
}

/* All ranks say so. */
static int is_over(const struct script *s)
{
	int mine = now() >= limit, all = 0;

	OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, own[s->id]));
	return all;
}

static void *follow(void *arg)
{
	struct script s = { .id = (int)(intptr_t)arg };

	s.state = seed ^ (uint64_t)s.id;
	s.in = malloc(LARGEST * sizeof(int));
	s.out = malloc(LARGEST * sizeof(int));
	CHECK(s.in && s.out);
	do {
		for (int i = 0; i < ROUNDS_A_LOOK; i++, s.round++) {
			unsigned what = draw(&s, 4);

			(what < 2 ? shift : what == 2 ? several : together)(&s);
		}
	} while (!is_over(&s));
	free(s.in);
	free(s.out);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *seconds = getenv("SOAK_SECONDS");
	int threads = seconds ? THREADS : SOME_THREADS;

	begin(&argc, &argv);
	CHECK(ranks <= MOST_RANKS);
	seed = rank == 0 ? test_seed() : 0;
	OK(MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
	limit = now() + (seconds ? atof(seconds) : 3);
	for (int i = 0; i < threads; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
	crowd(threads, follow);
	for (int i = 0; i < threads; i++)
		OK(MPI_Comm_free(&own[i]));
	end();
	return 0;
}
