/* tool/bench_cells.c - the table of cells to be measured: a cell for each question, method, number
 * of threads, number of processors and placement; and the questions and peers by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define BENCH(name) extern const struct bench bench_##name;
#include "list.def"
#undef BENCH

const struct bench *const bench_all[] = {
#define BENCH(name) &bench_##name,
#include "list.def"
#undef BENCH
	NULL,
};

#define PEER BENCH_PEER | BENCH_FREE_ONLY

/* Other runtimes, built by bench/shim/build. Runtimes with a single processor are asked for 1 VP
 * only. */
const struct bench_method bench_peers[] = {
	{ "argobots", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "massivethreads", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "qthreads", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "photon", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "boost-fiber", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "tbb", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "go", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "java", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "tokio", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "may", 0, 0, 0, PEER, 0, 0, 0, 0 },
	{ "pth", 0, 0, 0, PEER, 2000, "not tried", 0, 1 },
	{ "st", 0, 0, 0, PEER, 0, 0, 0, 1 },
	{ "iceoryx2", 0, 0, 0, PEER, 200, "not tried", 0, 0 },
	{ 0 },
};

/* Compares names; `asked` may be written as a C name, as in bench/limits.def. */
static int is_name(const char *name, const char *asked)
{
	while (*name && (*name == *asked || (*name == '-' && *asked == '_'))) {
		name++;
		asked++;
	}
	return *name == *asked;
}

const struct bench *bench_find(const char *name)
{
	for (const struct bench *const *b = bench_all; *b; b++)
		if (is_name((*b)->name, name))
			return *b;
	return NULL;
}

static const struct bench_method *find_method(const struct bench_method *m, const char *name)
{
	for (; m->name; m++)
		if (strcmp(m->name, name) == 0)
			return m;
	return NULL;
}

const struct bench_method *bench_method_find(const struct bench *b, const char *name)
{
	const struct bench_method *m = find_method(b->methods, name);

	return m || !b->peers ? m : find_method(bench_peers, name);
}

const struct bench_method *bench_method_in_processes(const struct bench_method *m)
{
	struct bench_method *copy;
	char *name, *settings;

	if (m->flags & (BENCH_KERNEL | BENCH_PEER) ||
		(m->settings && strstr(m->settings, "KOCHAB_BODY=")))
		return NULL;
	copy = malloc(sizeof *copy);
	if (!copy || asprintf(&name, "%s/process", m->name) < 0 ||
		asprintf(&settings, "%s%sKOCHAB_BODY=process", m->settings ? m->settings : "",
		m->settings ? " " : "") < 0)
		abort();
	*copy = *m;
	copy->name = name;
	copy->settings = settings;
	return copy;
}

struct bench_cell *bench_cell_find(
	const struct bench_cells *all, const char *bench, const char *method,
	const struct bench_case *c)
{
	for (size_t i = 0; i < all->count; i++) {
		struct bench_cell *cell = &all->cell[i];

		if (cell->c.threads == c->threads && cell->c.vps == c->vps && cell->c.spread == c->spread &&
			cell->c.size == c->size && is_name(cell->bench->name, bench) &&
			strcmp(cell->method->name, method) == 0)
			return cell;
	}
	return NULL;
}

/* Returns 0 if the method cannot be asked that. Kernel threads cannot have more CPUs than there
 * are. */
static int method_fits_case(const struct bench_method *m, const struct bench_case *c)
{
	if (c->spread && (m->flags & BENCH_FREE_ONLY || c->vps < 2))
		return 0;
	if (m->flags & BENCH_KERNEL && c->vps > bench_cpus())
		return 0;
	return c->vps >= m->vps_least && (!m->vps_most || c->vps <= m->vps_most);
}

struct bench_cell *bench_cell_add(
	struct bench_cells *all, const struct bench *b, const struct bench_method *m,
	struct bench_case c)
{
	unsigned most = m->flags & BENCH_CORES_1 ? c.vps + 1 : m->most;

	if (!method_fits_case(m, &c))
		return NULL;
	if (most && c.threads > most && m->flags & BENCH_CLAMP)
		c.threads = most;
	if (bench_cell_find(all, b->name, m->name, &c))
		return NULL;
	if ((all->count & (all->count - 1)) == 0) {
		size_t room = all->count ? 2 * all->count : 1;
		struct bench_cell *more = realloc(all->cell, room * sizeof *more);
		if (!more)
			abort();
		all->cell = more;
	}
	struct bench_cell *cell = &all->cell[all->count++];
	memset(cell, 0, sizeof *cell);
	cell->bench = b;
	cell->method = m;
	cell->c = c;
	cell->over = most && c.threads > most;
	if (cell->over)
		snprintf(cell->note, sizeof cell->note, "%s", m->beyond);
	return cell;
}

const struct bench_series *bench_series_find(const struct bench_cell *cell, const char *metric)
{
	for (size_t i = 0; cell && i < BENCH_METRICS; i++)
		if (cell->series[i].count && strcmp(cell->series[i].metric, metric) == 0)
			return &cell->series[i];
	return NULL;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double value_at_rank(const struct bench_series *s, double rank)
{
	double v[BENCH_RUNS];
	unsigned n = s->count;

	memcpy(v, s->value, n * sizeof *v);
	qsort(v, n, sizeof *v, compare_doubles);
	double at = rank * (n - 1);
	unsigned low = (unsigned)at;
	return low + 1 < n ? v[low] + (at - low) * (v[low + 1] - v[low]) : v[low];
}

double bench_min(const struct bench_series *s)
{
	return value_at_rank(s, 0);
}

double bench_median(const struct bench_series *s)
{
	return value_at_rank(s, 0.5);
}

double bench_max(const struct bench_series *s)
{
	return value_at_rank(s, 1);
}
