/* tool/bench_chart.h - the bars of the demo's page. */
#ifndef KOCHAB_TOOL_BENCH_CHART_H
#define KOCHAB_TOOL_BENCH_CHART_H

#include <stdio.h>

enum {
	CHART_ROWS = 16,
	CHART_WORD = 64,
	CHART_WIDTH = 360,
	CHART_ROW_HEIGHT = 38,
	CHART_TOP = 6,
	CHART_AXIS = 22,
};

/* A JSON line of a bench: ns, except where the bench says otherwise. */
struct chart_row {
	char bench[CHART_WORD], method[CHART_WORD], note[2 * CHART_WORD];
	unsigned threads, vps;
	double median; /* 0: none */
};

struct chart {
	const struct chart_row *row[CHART_ROWS];
	const char *label[CHART_ROWS];
	char words[CHART_ROWS][2 * CHART_WORD];
	unsigned rows;
	double least, most; /* ends of the axis, powers of ten */
};

extern const char *const chart_names[][2]; /* a method and its name on the page; ends with NULL */

const char *chart_name(const char *method);
/* Writes "12.3 ns", "4.56 ms". */
void chart_duration(char *to, size_t size, double ns);
/* Writes "25.2x faster", "1,006x slower", compared with ref. */
void chart_times(char *to, size_t size, double ref, double v);
/* Adds a row. label NULL: the method's name; the label is kept, not copied. r NULL: nothing is
 * added. */
void chart_add(struct chart *f, const struct chart_row *r, const char *label);
void chart_draw(FILE *out, const struct chart *f, const char *what);

#endif
