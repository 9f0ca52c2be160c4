/* tool/bench_limits.c - holds the measured figures against bench/limits.def: adds the cells that
 * have limits, then prints every limit with the figure, the verdict and the best of the runs. */
#include <string.h>

#include "bench.h"

struct limit {
	const char *bench, *method;
	unsigned threads, vps, size;
	int spread;
	const char *metric, *than;
	unsigned than_vps;
	double bound;
};

enum { FREE, SPREAD };

static const struct limit limits[] = {
#define AT_MOST(b, m, t, v, p, metric, bound) { #b, m, t, v, 0, p, metric, NULL, 0, bound },
#define FASTER(b, m, t, v, p, metric, than, tv, times) { #b, m, t, v, 0, p, metric, \
	than, tv, times },
#define AT_MOST_SIZE(b, m, t, v, s, metric, bound) { #b, m, t, v, s, FREE, metric, NULL, 0, bound },
#define FASTER_SIZE(b, m, t, v, s, metric, than, times) { #b, m, t, v, s, FREE, metric, \
	than, v, times },
#include "limits.def"
#undef AT_MOST
#undef FASTER
#undef AT_MOST_SIZE
#undef FASTER_SIZE
};

enum { LIMITS = sizeof limits / sizeof *limits };

static void add_limit_cell(struct bench_cells *all, const struct limit *l, const char *method,
	unsigned vps)
{
	const struct bench *b = bench_find(l->bench);
	const struct bench_method *m = b ? bench_method_find(b, method) : NULL;
	struct bench_case c = { .threads = l->threads, .vps = vps, .spread = l->spread,
		.size = l->size };

	if (m)
		bench_cell_add(all, b, m, c);
}

void bench_limits_cells(struct bench_cells *all)
{
	for (const struct limit *l = limits; l < limits + LIMITS; l++) {
		add_limit_cell(all, l, l->method, l->vps);
		if (l->than)
			add_limit_cell(all, l, l->than, l->than_vps);
	}
}

static const struct bench_series *series_of_limit(
	const struct bench_cells *all, const struct limit *l, const char *method, unsigned vps)
{
	struct bench_case c = { .threads = l->threads, .vps = vps, .spread = l->spread,
		.size = l->size };
	const struct bench_cell *cell = bench_cell_find(all, l->bench, method, &c);

	return cell && !cell->failed ? bench_series_find(cell, l->metric) : NULL;
}

static int show_times(
	const struct limit *l, const struct bench_series *s, const struct bench_series *than, FILE *out)
{
	double times = bench_median(than) / bench_median(s), best = bench_min(than) / bench_min(s);

	fprintf(out, "%8.*f x %s", times < 100 ? 2 : 0, times, l->than);
	if (strcmp(l->than, l->method) == 0)
		fprintf(out, " on %u VP", l->than_vps);
	fprintf(out, " (limit %.4g x; minima %.*f x)", l->bound, best < 100 ? 2 : 0, best);
	return times >= l->bound;
}

static int show_most(const struct limit *l, const struct bench_series *s, FILE *out)
{
	double v = bench_median(s);

	fprintf(out, "%8.*f %s (limit %.6g; min %.4g)", v < 100 ? 1 : 0, v, s->unit, l->bound,
		bench_min(s));
	return v <= l->bound;
}

static int show_limit(const struct bench_cells *all, const struct limit *l, FILE *out)
{
	const struct bench_series *s = series_of_limit(all, l, l->method, l->vps);
	const struct bench_series *than =
		l->than ? series_of_limit(all, l, l->than, l->than_vps) : NULL;
	int ok = 0;

	char size[16] = "";

	if (l->size)
		snprintf(size, sizeof size, "size %u", l->size);
	fprintf(out, "  %-10s %-16s %7u threads %u VP %-7s ", l->bench, l->method, l->threads, l->vps,
		l->spread ? "spread" : size);
	if (!s || (l->than && !than))
		fprintf(out, "       - no figure of %s", s ? l->than : l->method);
	else
		ok = l->than ? show_times(l, s, than, out) : show_most(l, s, out);
	fputs(ok ? "  reached\n" : "  MISSED\n", out);
	return ok;
}

/* Returns whether the method misses something here, so that its rows have been removed. */
static int is_absent(const struct bench_cells *all, const struct limit *l)
{
	struct bench_case c = { .threads = l->threads, .vps = l->vps, .spread = l->spread,
		.size = l->size };

	return bench_find(l->bench)->absent && !bench_cell_find(all, l->bench, l->method, &c);
}

/* Returns whether the limit applies. A comparison with a peer that is not built, or cannot do that,
 * does not; bench/report asks the questions that are not ours. */
static int limit_applies(const struct bench_cells *all, const struct limit *l)
{
	const struct bench *b = bench_find(l->bench);
	const struct bench_method *m = l->than && b ? bench_method_find(b, l->than) : NULL;

	return b && !is_absent(all, l) && (!m || !(m->flags & BENCH_PEER) ||
		series_of_limit(all, l, l->than, l->than_vps));
}

unsigned bench_limits_show(const struct bench_cells *all, FILE *out)
{
	unsigned missed = 0, asked = 0;

	fputs("\nAgainst the limits (medians; ratios within this run):\n", out);
	for (const struct limit *l = limits; l < limits + LIMITS; l++)
		if (limit_applies(all, l)) {
			asked++;
			missed += !show_limit(all, l, out);
		}
	fprintf(out, "%u of %u limits reached", asked - missed, asked);
	if (asked < LIMITS)
		fprintf(out, "; %u are not asked here, or of absent peers", (unsigned)LIMITS - asked);
	fputc('\n', out);
	fflush(out);
	return missed;
}
