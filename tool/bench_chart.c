/* tool/bench_chart.c - horizontal bars on a logarithmic scale as inline SVG, and durations, ratios
 * and the methods in words. The drawing is narrow (360 units) so that its text can be read on a
 * phone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_chart.h"
#include "tool.h"

/* ---- words ---- */

const char *const chart_names[][2] = {
	{ "rtsig", "real-time signal" },
	{ "agent-rtsig", "polling agent + signal" },
	{ "condvar", "condition variable" },
	{ "sem", "semaphore" },
	{ "futex", "futex" },
	{ "pipe", "pipe" },
	{ "poll", "busy polling" },
	{ "kochab", "Kochab" },
	{ "kochab-own", "Kochab, own TLS" },
	{ "kochab-1", "Kochab, one poller" },
	{ "kochab-posix", "Kochab, unmodified condvar code" },
	{ "kochab-posix-sem", "Kochab, unmodified sem code" },
	{ NULL, NULL },
};

const char *chart_name(const char *method)
{
	for (size_t i = 0; chart_names[i][0]; i++)
		if (strcmp(chart_names[i][0], method) == 0)
			return chart_names[i][1];
	return method;
}

void chart_duration(char *to, size_t size, double ns)
{
	static const char *const unit[] = { "ns", "µs", "ms", "s" };
	int u = 0;

	for (; u < 3 && ns >= 999.5; u++)
		ns /= 1000;
	snprintf(to, size, "%.*f %s", ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0, ns, unit[u]);
}

/* Writes "25.2× faster", "1,006× slower". */
void chart_times(char *to, size_t size, double ref, double v)
{
	double x = ref > 0 && v > 0 ? ref / v : 0;
	int slower = x < 1;

	if (x <= 0) {
		snprintf(to, size, "not measured");
		return;
	}
	x = fmin(slower ? 1 / x : x, 999999999);
	if (x >= 1000)
		snprintf(to, size, "%d,%03d×&nbsp;%s", (int)(x + 0.5) / 1000, (int)(x + 0.5) % 1000,
			slower ? "slower" : "faster");
	else
		snprintf(to, size, "%.*f×&nbsp;%s",
			x < 10    ? 2
			: x < 100 ? 1
				  : 0,
			x, slower ? "slower" : "faster");
}

/* ---- bars ---- */

void chart_add(struct chart *f, const struct chart_row *r, const char *label)
{
	if (!r || f->rows == CHART_ROWS)
		return;
	f->row[f->rows] = r;
	f->label[f->rows++] = label ? label : chart_name(r->method);
	if (r->median > 0) {
		double low = pow(10, floor(log10(r->median / 1.5))), high = pow(10, ceil(log10(r->median)));
		f->least = f->least > 0 ? fmin(f->least, low) : low;
		f->most = fmax(f->most, high);
	}
}

static double x_of_value(const struct chart *f, double v)
{
	return CHART_WIDTH * log(v / f->least) / log(f->most / f->least);
}

static void draw_axis(FILE *out, const struct chart *f, int bottom)
{
	char text[CHART_WORD];

	for (double v = f->least; v > 0 && v <= f->most * 1.001; v *= 10) {
		double x = x_of_value(f, v);
		int n = snprintf(text, sizeof text, "%g %s",
			v >= 1e6   ? v / 1e6
			: v >= 1e3 ? v / 1e3
				   : v,
			v >= 1e6   ? "ms"
			: v >= 1e3 ? "µs"
				   : "ns");

		fprintf(out, "<line class=grid x1=%.1f x2=%.1f y1=%d y2=%d />", x, x, CHART_TOP, bottom);
		if (n > 0)
			fprintf(out, "<text class=tick x=%.1f y=%d text-anchor=%s>%s</text>", x, bottom + 14,
				x < 12                 ? "start"
				: x > CHART_WIDTH - 12 ? "end"
						       : "middle",
				text);
	}
}

void chart_draw(FILE *out, const struct chart *f, const char *what)
{
	int bottom = CHART_TOP + (int)f->rows * CHART_ROW_HEIGHT;
	char text[CHART_WORD];

	fprintf(out, "<svg viewBox='0 0 %d %d' role=img aria-label='%s'>", CHART_WIDTH,
		bottom + CHART_AXIS, what);
	draw_axis(out, f, bottom);
	for (unsigned i = 0; i < f->rows; i++) {
		const struct chart_row *r = f->row[i];
		int y = CHART_TOP + (int)i * CHART_ROW_HEIGHT, ours = strncmp(r->method, "kochab", 6) == 0;

		chart_duration(text, sizeof text, r->median);
		fprintf(out, "<text class='%s' x=0 y=%d>", ours ? "name ours" : "name", y + 15);
		tool_html(out, f->label[i]);
		fprintf(out, "</text><text class=value x=%d y=%d>", CHART_WIDTH, y + 15);
		tool_html(out, r->median > 0 ? text : r->note);
		fputs("</text>", out);
		if (r->median > 0)
			fprintf(out, "<rect class=%s x=0 y=%d width=%.1f height=11 rx=2 />",
				ours ? "ours" : "other", y + 21, fmax(2, x_of_value(f, r->median)));
	}
	fputs("</svg>\n", out);
}
