/* bench/mpi/halo.c - a square stencil: each number is the mean of its four neighbours, and the
 * ranks lie above each other. Two forms: a thread a tile, which exchanges its edges with the
 * neighbours' threads by MPI, in its own rank, too; and all rows by a team of OpenMP, which waits
 * at a barrier while its first thread exchanges the rank's edge. Both results are compared with a
 * single thread's numbers before anything is measured. libgomp is called by the entries that gcc
 * calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gomp.h"
#include "load.h"

enum { SIDE = 64, WIDE = SIDE + 2, CHECKED = 3 };
enum { UP, DOWN, LEFT, RIGHT, SIDES };

/* Tiles of a rank, and its numbers, edges included. */
static struct {
	int across, down;
	int columns, rows;
} grid;

static double mean(const double *at, long wide)
{
	return (at[-wide] + at[wide] + at[-1] + at[1]) / 4;
}

static double first(int row, int column)
{
	return (row * 13 + column * 7) % 101;
}

/* As square as the number of threads allows. */
static void lay_out(void)
{
	grid.across = 1;
	for (int i = 2; i * i <= load.threads; i++)
		if (load.threads % i == 0)
			grid.across = i;
	grid.down = load.threads / grid.across;
	grid.columns = grid.across * SIDE;
	grid.rows = grid.down * SIDE;
}

static double *field(int rows, int columns)
{
	double *f = calloc((size_t)(rows + 2) * (size_t)(columns + 2), sizeof(*f));

	load_need(!!f, "no memory");
	return f;
}

/* ---- a single thread, whole stencil ---------------------------------------------------------- */

/* Both ranks' numbers after so many sweeps. */
static double *serial(int sweeps)
{
	int rows = LOAD_RANKS * grid.rows, wide = grid.columns + 2;
	double *from = field(rows, grid.columns), *to = field(rows, grid.columns), *other;

	for (int y = 1; y <= rows; y++)
		for (int x = 1; x <= grid.columns; x++)
			from[y * wide + x] = first(y - 1, x - 1);
	for (int i = 0; i < sweeps; i++) {
		for (int y = 1; y <= rows; y++)
			for (int x = 1; x <= grid.columns; x++)
				to[y * wide + x] = mean(&from[y * wide + x], wide);
		other = from;
		from = to;
		to = other;
	}
	free(to);
	return from;
}

/* ---- a thread a tile ------------------------------------------------------------------------- */

static struct tile {
	double *now, *next;
	double out[2][SIDE], in[2][SIDE]; /* columns: left, right */
	int rank[SIDES], id[SIDES];       /* neighbours; rank MPI_PROC_NULL: there is none */
} *tiles;

static void find_neighbours(struct tile *t, int id)
{
	int x = id % grid.across, y = id / grid.across + load.rank * grid.down, all = LOAD_RANKS * grid.down;
	static const int dx[SIDES] = { 0, 0, -1, 1 }, dy[SIDES] = { -1, 1, 0, 0 };

	for (int s = 0; s < SIDES; s++) {
		int nx = x + dx[s], ny = y + dy[s];

		t->rank[s] = nx < 0 || nx >= grid.across || ny < 0 || ny >= all ? MPI_PROC_NULL : ny / grid.down;
		t->id[s] = t->rank[s] == MPI_PROC_NULL ? 0 : ny % grid.down * grid.across + nx;
	}
}

/* The numbers as they are at first; nothing is measured yet. */
static void fill(struct tile *t, int id)
{
	int x0 = id % grid.across * SIDE, y0 = (id / grid.across + load.rank * grid.down) * SIDE;

	for (int y = 1; y <= SIDE; y++)
		for (int x = 1; x <= SIDE; x++)
			t->now[y * WIDE + x] = first(y0 + y - 1, x0 + x - 1);
}

/* A tile's edge that a message carries: rows lie as they are, columns are copied. */
static double *edge(struct tile *t, int side, int inner)
{
	if (side == UP)
		return &t->now[(inner ? 1 : 0) * WIDE + 1];
	if (side == DOWN)
		return &t->now[(inner ? SIDE : SIDE + 1) * WIDE + 1];
	return inner ? t->out[side - LEFT] : t->in[side - LEFT];
}

static void copy_columns(struct tile *t, int out)
{
	for (int s = LEFT; s <= RIGHT; s++)
		for (int y = 0; y < SIDE; y++) {
			double *at = &t->now[(y + 1) * WIDE + (s == LEFT ? !!out : out ? SIDE : SIDE + 1)];

			if (out)
				t->out[s - LEFT][y] = *at;
			else if (t->rank[s] != MPI_PROC_NULL)
				*at = t->in[s - LEFT][y];
		}
}

static void exchange(struct tile *t, int id)
{
	MPI_Request request[2 * SIDES];
	int n = 0, e = 0;

	copy_columns(t, 1);
	for (int s = 0; s < SIDES; s++)
		e |= MPI_Irecv(edge(t, s, 0), SIDE, MPI_DOUBLE, t->rank[s], id * SIDES + s, MPI_COMM_WORLD, &request[n++]);
	/* a row that goes up comes from below */
	for (int s = 0; s < SIDES; s++)
		e |= MPI_Isend(edge(t, s, 1), SIDE, MPI_DOUBLE, t->rank[s], t->id[s] * SIDES + (s ^ 1), MPI_COMM_WORLD,
			       &request[n++]);
	e |= MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	load_need(e == MPI_SUCCESS, "an exchange of edges failed");
	copy_columns(t, 0);
}

static void sweep_tile(int id, uint64_t n)
{
	struct tile *t = &tiles[id];

	for (; n; n--) {
		double *now = t->now;

		exchange(t, id);
		for (int y = 1; y <= SIDE; y++)
			for (int x = 1; x <= SIDE; x++)
				t->next[y * WIDE + x] = mean(&now[y * WIDE + x], WIDE);
		t->now = t->next;
		t->next = now;
	}
}

static void check_tiles(void)
{
	double *want = serial(CHECKED);
	int wide = grid.columns + 2;

	load_together(sweep_tile, CHECKED);
	for (int id = 0; id < load.threads; id++)
		for (int y = 1; y <= SIDE; y++)
			load_need(memcmp(&tiles[id].now[y * WIDE + 1],
					 &want[(load.rank * grid.rows + id / grid.across * SIDE + y) * wide + id % grid.across * SIDE + 1],
					 SIDE * sizeof(double)) == 0, "a tile's numbers are not those of one thread alone");
	free(want);
}

void load_halo(const char *metric)
{
	lay_out();
	tiles = calloc((size_t)load.threads, sizeof(*tiles));
	load_need(!!tiles, "no memory");
	for (int id = 0; id < load.threads; id++) {
		tiles[id].now = field(SIDE, SIDE);
		tiles[id].next = field(SIDE, SIDE);
		find_neighbours(&tiles[id], id);
		fill(&tiles[id], id);
	}
	check_tiles();
	load_report(metric, "us", load_scale(sweep_tile) * 1e6);
	for (int id = 0; id < load.threads; id++) {
		free(tiles[id].now);
		free(tiles[id].next);
	}
	free(tiles);
}

/* ---- OpenMP ---------------------------------------------------------------------------------- */

static struct gomp omp;

static struct {
	double *now, *next;
	uint64_t n;
} all;

/* The row between the ranks, both ways. */
static void exchange_rows(void)
{
	int wide = grid.columns + 2, inner = load.rank == 0 ? grid.rows : 1, outer = load.rank == 0 ? grid.rows + 1 : 0;

	load_need(MPI_Sendrecv(&all.now[inner * wide + 1], grid.columns, MPI_DOUBLE, load.peer, 0, &all.now[outer * wide + 1],
			       grid.columns, MPI_DOUBLE, load.peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS,
		  "MPI_Sendrecv");
}

static void sweep_team(void *unused)
{
	int me = omp.thread(), team = omp.team(), wide = grid.columns + 2;
	int from = 1 + (int)((long)grid.rows * me / team), to = 1 + (int)((long)grid.rows * (me + 1) / team);

	(void)unused;
	for (uint64_t i = 0; i < all.n; i++) {
		if (me == 0)
			exchange_rows();
		omp.barrier();
		for (int y = from; y < to; y++)
			for (int x = 1; x <= grid.columns; x++)
				all.next[y * wide + x] = mean(&all.now[y * wide + x], wide);
		omp.barrier();
		if (me == 0) {
			double *was = all.now;

			all.now = all.next;
			all.next = was;
		}
	}
}

/* Called by the first thread, which is the team's. */
static void sweep_omp(int id, uint64_t n)
{
	(void)id;
	all.n = n;
	omp.parallel(sweep_team, NULL, (unsigned)grid.across * (unsigned)grid.down, 0);
}

static void check_team(void)
{
	double *want = serial(CHECKED);
	int wide = grid.columns + 2;

	load_together(sweep_omp, CHECKED);
	for (int y = 1; y <= grid.rows; y++)
		load_need(memcmp(&all.now[y * wide + 1], &want[(load.rank * grid.rows + y) * wide + 1],
				 (size_t)grid.columns * sizeof(double)) == 0,
			  "a team's numbers are not those of one thread alone");
	free(want);
}

void load_halo_omp(const char *metric)
{
	const char *missing = gomp_load(&omp);
	int threads = load.threads;
	char why[64];

	if (missing) {
		snprintf(why, sizeof(why), "no %s", missing);
		load_lack(metric, why);
		return;
	}
	omp.dynamic(0);
	lay_out();
	all.now = field(grid.rows, grid.columns);
	all.next = field(grid.rows, grid.columns);
	for (int y = 1; y <= grid.rows; y++)
		for (int x = 1; x <= grid.columns; x++)
			all.now[y * (grid.columns + 2) + x] = first(load.rank * grid.rows + y - 1, x - 1);
	load.threads = 1;
	check_team();
	load_report(metric, "us", load_scale(sweep_omp) * 1e6);
	load.threads = threads;
	free(all.now);
	free(all.next);
}
