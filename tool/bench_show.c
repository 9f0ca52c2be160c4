/* tool/bench_show.c - measured cells as a table for people (with ratios to the reference method
 * and, on request, bars on a logarithmic scale) and as JSON lines for programs. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "tool.h"

enum { BAR = 32 };

static int same_group(const struct bench_cell *a, const struct bench_cell *b)
{
	return a->bench == b->bench && a->c.threads == b->c.threads && a->c.vps == b->c.vps &&
	       a->c.spread == b->c.spread && a->c.size == b->c.size;
}

/* Returns the reference's median for that metric in the group, 0 if there is none. */
static double reference_median(const struct bench_cells *all, const struct bench_cell *of,
	const char *metric)
{
	const char *word = of->bench->reference, *own = of->method->name, *last = strrchr(own, '-');
	char name[BENCH_WORD];

	if (!word)
		return 0;
	snprintf(name, sizeof name, "%.*s%s", word[0] == '-' && last ? (int)(last - own) : 0, own,
		word);
	const struct bench_cell *cell = bench_cell_find(all, of->bench->name, name, &of->c);
	const struct bench_series *s = bench_series_find(cell, metric);

	return s ? bench_median(s) : 0;
}

static void print_number(FILE *out, double v)
{
	int digits = v < 10 ? 2 : v < 100 ? 1 : 0;

	fprintf(out, " %11.*f", digits, v);
}

static void print_ratio(FILE *out, double ref, double v)
{
	double x = v > 0 ? ref / v : 0;

	if (ref <= 0)
		fprintf(out, "%10s", "");
	else if (x >= 1)
		fprintf(out, "%9.*fx", x < 100 ? 1 : 0, x);
	else
		fprintf(out, "   1/%.*fx", 1 / x < 100 ? 1 : 0, 1 / x);
}

static void print_bar(FILE *out, double v, double least, double most)
{
	double range = log(most / least);
	int n = range > 0 ? 1 + (int)((BAR - 1) * log(v / least) / range + 0.5) : 1;

	fputs("  ", out);
	while (n-- > 0)
		fputs("█", out);
}

static void print_group_head(FILE *out, const struct bench_cell *g)
{
	char size[BENCH_WORD] = "";

	if (g->c.size)
		snprintf(size, sizeof size, g->bench->size_name, g->c.size);
	fprintf(out, "\n%s: %u thread%s, %u VP%s%s%s%s - %s\n", g->bench->name, g->c.threads,
		g->c.threads == 1 ? "" : "s", g->c.vps, g->c.vps == 1 ? "" : "s",
		g->c.spread ? ", neighbours on different VPs" : "", g->c.size ? ", " : "", size,
		g->bench->question);
	fprintf(out, "  %-22s %-12s %-6s%11s %11s %11s", "method", "metric", "unit", "min",
		"median", "max");
	if (g->bench->reference)
		fprintf(out, "  vs %s", g->bench->reference + (g->bench->reference[0] == '-'));
	fputc('\n', out);
}

static void print_cell_rows(
	const struct bench_cells *all, const struct bench_cell *cell, FILE *out,
	double least, double most)
{
	int any = 0;

	for (const struct bench_series *s = cell->series; s < cell->series + BENCH_METRICS && s->count;
		s++, any++) {
		fprintf(out, "  %-22s %-12s %-5s", any ? "" : cell->method->name, s->metric, s->unit);
		print_number(out, bench_min(s));
		print_number(out, bench_median(s));
		print_number(out, bench_max(s));
		if (cell->bench->reference)
			print_ratio(out, reference_median(all, cell, s->metric), bench_median(s));
		if (most > 0)
			print_bar(out, bench_median(s), least, most);
		if (!cell->note[0] || s[1].count)
			fputc('\n', out);
		else
			fprintf(out, "  %s\n", cell->note);
	}
	if (!any)
		fprintf(out, "  %-22s %s\n", cell->method->name, cell->note[0] ? cell->note : "no result");
}

static void print_cell_group(const struct bench_cells *all, size_t first, int bars, FILE *out)
{
	const struct bench_cell *g = &all->cell[first];
	double least = INFINITY, most = 0;

	for (size_t i = first; bars && i < all->count; i++)
		if (same_group(g, &all->cell[i]) && all->cell[i].series[0].count) {
			least = fmin(least, bench_median(&all->cell[i].series[0]));
			most = fmax(most, bench_median(&all->cell[i].series[0]));
		}
	print_group_head(out, g);
	for (size_t i = first; i < all->count; i++)
		if (same_group(g, &all->cell[i]))
			print_cell_rows(all, &all->cell[i], out, least / 2, most);
}

void bench_show_table(const struct bench_cells *all, int bars, FILE *out)
{
	for (size_t i = 0; i < all->count; i++) {
		size_t first = 0;
		while (!same_group(&all->cell[first], &all->cell[i]))
			first++;
		if (first == i)
			print_cell_group(all, i, bars, out);
	}
	fflush(out);
}

/* Prints a line's head. "by": whose method it is. The figures of methods that are not ours show how
 * the machine has changed between two files. */
static void json_head(const struct bench_cell *c, FILE *out)
{
	const char *by = c->method->flags & BENCH_PEER ? "peer" : c->method->flags & BENCH_KERNEL ?
		"kernel" : "kochab";

	fprintf(out,
		"{\"bench\": \"%s\", \"method\": \"%s\", \"threads\": %u, \"vps\": %u, \"placement\": "
		"\"%s\", "
		"\"by\": \"%s\"",
		c->bench->name, c->method->name, c->c.threads, c->c.vps,
		c->c.spread ? "spread" : "free", by);
	if (c->c.size)
		fprintf(out, ", \"size\": %u", c->c.size);
}

static void json_figure(FILE *out, const char *key, double x)
{
	if (isfinite(x))
		fprintf(out, ", \"%s\": %.6g", key, x);
	else
		fprintf(out, ", \"%s\": null", key);
}

void bench_show_json(const struct bench_cells *all, FILE *out)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct bench_cell *c = &all->cell[i];

		for (const struct bench_series *s = c->series; s < c->series + BENCH_METRICS && s->count;
			s++) {
			json_head(c, out);
			fprintf(out, ", \"metric\": \"%s\", \"unit\": \"%s\"", s->metric, s->unit);
			json_figure(out, "min", bench_min(s));
			json_figure(out, "median", bench_median(s));
			json_figure(out, "max", bench_max(s));
			fprintf(out, ", \"runs\": %u}\n", s->count);
		}
		if (c->note[0]) {
			json_head(c, out);
			fprintf(out,
				", \"metric\": \"none\", \"unit\": \"\", \"min\": null, \"median\": null, "
				"\"max\": null, \"runs\": 0, \"note\": ");
			tool_json(out, c->note);
			fputs("}\n", out);
		}
	}
	fflush(out);
}
