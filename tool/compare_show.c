/* tool/compare_show.c - judges and prints the figures that tool/compare.c has measured. Two kinds
 * differ if the rank test of Mann and Whitney (two-sided, 5 %) says so, which a single slow run
 * more does not change, and if their medians differ by more than 2 %. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "compare.h"
#include "tool.h"

enum {
	MANY = 10,      /* with so many runs ranges may overlap: the test decides */
	/* the kinds' runs multiplied: up to this product the distribution of ranks is counted */
	EXACT = 400,
	COMMAND = 300,
};

static const double level = 0.05, least_difference = 1.02, least_cpu_difference = 1.1,
	/* others' share of the processors, from which on so much must be shown */
	busy = 0.1, busy_difference = 1.5;

static const struct metric {
	const char *name, *key;
	char unit; /* seconds, bytes, n */
} metrics[COMPARE_METRICS] = {
	[COMPARE_WALL] = { "time", "wall_s", 's' },
	[COMPARE_CPU] = { "processor time", "processor_s", 's' },
	[COMPARE_MEMORY] = { "peak memory", "peak_bytes", 'b' },
	[COMPARE_WAITS] = { "switches: waits", "voluntary_switches", 'n' },
	[COMPARE_FORCED] = { "switches: forced", "involuntary_switches", 'n' },
};

/* ---- figures ---- */

struct summary {
	double median, min, max;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct summary summary_of(const struct compare_kind *kind, unsigned metric)
{
	static double sorted[COMPARE_RUNS];
	unsigned n = kind->n;

	if (n == 0)
		return (struct summary){ NAN, NAN, NAN };
	memcpy(sorted, kind->at[metric], n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_size);
	return (struct summary){ (sorted[n / 2] + sorted[(n - 1) / 2]) / 2, sorted[0], sorted[n - 1] };
}

static double median_of(const struct compare_kind *kind, unsigned metric)
{
	return summary_of(kind, metric).median;
}

/* Returns the share of all orders of n and m values whose rank statistic U is at most u. The
 * coefficient of q^k in the product of (1 - q^(m+i)) / (1 - q^i), i from 1 to n, is the number of
 * orders with U = k. */
static double share_below(unsigned n, unsigned m, unsigned u)
{
	double ways[EXACT + 1] = { 1 }, all = 0, few = 0;
	unsigned most = n * m;

	for (unsigned i = 1; i <= n; i++) {
		for (unsigned k = most; k >= m + i; k--)
			ways[k] -= ways[k - m - i];
		for (unsigned k = i; k <= most; k++)
			ways[k] += ways[k - i];
	}
	for (unsigned k = 0; k <= most; k++) {
		all += ways[k];
		few += k <= u ? ways[k] : 0;
	}
	return few / all;
}

/* Returns the probability that two equal kinds differ at least as much by chance. */
static double rank_test_p_value(const struct compare_kind *a, const struct compare_kind *b,
	unsigned metric)
{
	double u = 0, most = (double)a->n * b->n, p;

	if (a->n == 0 || b->n == 0)
		return 1;
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned k = 0; k < b->n; k++) {
			double x = a->at[metric][i], y = b->at[metric][k];

			u += x < y ? 1 : x > y ? 0 : 0.5;
		}
	u = u < most - u ? u : most - u;
	if (most <= EXACT)
		p = 2 * share_below(a->n, b->n, (unsigned)ceil(u));
	else
		p = erfc((most / 2 - u) / sqrt(most * (a->n + b->n + 1) / 12.) / sqrt(2));
	return p < 1 ? p : 1;
}

/* Returns a's median divided by b's, or 1 if no difference is shown. */
static double ratio_of_medians(const struct compare_kind *a, const struct compare_kind *b,
	unsigned metric, double least)
{
	double x = median_of(a, metric), y = median_of(b, metric), r = x / y;

	if (!(x > 0 && y > 0) || a->n < COMPARE_LEAST || b->n < COMPARE_LEAST ||
		rank_test_p_value(a, b, metric) > level)
		return 1;
	return r > least || 1 / r > least ? r : 1;
}

/* Returns ratio_of_medians() of the wall times; *unsure: there is a difference that the runs do not
 * bear out, because their ranges overlap, or because others used the processors, where chance looks
 * like a difference. Then 1. */
static double sure_times(const struct compare *all, const struct compare_kind *a,
	const struct compare_kind *b, bool *unsure)
{
	double r = ratio_of_medians(a, b, COMPARE_WALL, least_difference);
	struct summary x = summary_of(a, COMPARE_WALL), y = summary_of(b, COMPARE_WALL);
	bool overlap = x.min <= y.max && y.min <= x.max;

	if (all->others >= busy)
		*unsure = r != 1 && (overlap || (r < busy_difference && 1 / r < busy_difference));
	else
		*unsure = r != 1 && overlap && (a->n < MANY || b->n < MANY);
	return *unsure ? 1 : r;
}

static const char *shown_times(double r, char *to, size_t size)
{
	snprintf(to, size, r < 1.2 ? "%.2f" : r < 10 ? "%.1f" : "%.0f", r);
	return to;
}

static void shown_value(double x, char unit, char *to, size_t size)
{
	if (unit == 's')
		snprintf(to, size, x >= 100 ? "%.0f s" : x >= 1 ? "%.3g s" : "%.3g ms",
			x >= 1 ? x : 1000 * x);
	else if (unit == 'b')
		snprintf(to, size, "%.1f MiB", x / (1 << 20));
	else
		snprintf(to, size, "%.0f", x);
}

/* ---- the verdict ---- */

bool compare_same(const struct compare *all)
{
	return all->unsteady || *all->kind[1].difference == '\0';
}

static int exit_code(const struct compare *all)
{
	bool same = compare_same(all) && !all->unsteady;

	return all->kind[0].over || all->kind[1].over || (all->check && !same) ? TOOL_FAILED : TOOL_OK;
}

/* Writes that there is no difference, and why, if the runs on kernel threads tell: the program
 * computes, or is idle. For a server they do not tell, because its processor time includes its
 * start. */
static void say_no_difference(const struct compare *all, bool unsure, char *to, size_t size)
{
	static const double computes = 0.9, seldom = 100, idle = 0.1;
	const struct compare_kind *plain = &all->kind[0];
	double wall = median_of(plain, COMPARE_WALL), share = median_of(plain, COMPARE_CPU) / wall;

	if (all->load == NULL && share >= computes && median_of(plain, COMPARE_WAITS) / wall < seldom)
		snprintf(to, size, "no difference: this program computes, it does not wait");
	else if (all->load == NULL && share < idle)
		snprintf(to, size,
			"no difference: this program is idle most of its time, it uses %.2g %% of a processor",
			100 * share);
	else if (unsure && all->others >= busy)
		snprintf(to, size,
			"no difference is certain: others used %.0f %% of the processors; measure when they do "
			"not, or with -n 20", 100 * all->others);
	else if (unsure)
		snprintf(to, size, "no difference is certain: the times overlap; -n 20 may tell");
	else
		snprintf(to, size, "no difference: within the noise");
}

static void add_cpu(const struct compare *all, char *to, size_t size)
{
	double r = ratio_of_medians(&all->kind[1], &all->kind[0], COMPARE_CPU,
		least_cpu_difference);
	size_t n = strlen(to);
	char text[32];

	if (r > 1)
		snprintf(to + n, size - n, ", with %s times the processor time",
			shown_times(r, text, sizeof(text)));
	else if (r < 1)
		snprintf(to + n, size - n, ", with %.0f %% less processor time", 100 * (1 - r));
}

static void write_verdict(const struct compare *all, char *to, size_t size)
{
	const struct compare_kind *plain = &all->kind[0], *ours = &all->kind[1];
	bool unsure;
	double r = sure_times(all, plain, ours, &unsure);
	char text[32];

	if (plain->over)
		snprintf(to, size, "nothing is compared: on kernel threads it fails");
	else if (ours->over)
		snprintf(to, size, "it does not work the same way on Kochab");
	else if (all->check && !compare_same(all))
		snprintf(to, size, "it does not write the same on Kochab");
	else if (all->runs < COMPARE_LEAST)
		snprintf(to, size, "too few runs to tell, -n %d is the least: %.2f times as fast",
			COMPARE_LEAST, median_of(plain, COMPARE_WALL) / median_of(ours, COMPARE_WALL));
	else if (r > 1)
		snprintf(to, size, "Kochab is %s times as fast", shown_times(r, text, sizeof(text)));
	else if (r < 1)
		snprintf(to, size, "Kochab takes %s times as long", shown_times(1 / r, text, sizeof(text)));
	else
		say_no_difference(all, unsure, to, size);
	if (!plain->over && !ours->over && ours->n >= COMPARE_LEAST)
		add_cpu(all, to, size);
}

/* Returns the fastest kind of --try; *by: how many times as fast it is as the kind without more
 * options. NULL: no kind is faster. */
static const struct compare_kind *best_try(const struct compare *all, double *by)
{
	const struct compare_kind *best = NULL;

	*by = 1;
	for (unsigned k = 2; k < all->n; k++) {
		const struct compare_kind *kind = &all->kind[k];
		bool unsure;
		double r = kind->over || *kind->difference != '\0' ? 1 :
			sure_times(all, &all->kind[1], kind, &unsure);

		if (r > *by) {
			*by = r;
			best = kind;
		}
	}
	return best;
}

static void write_hint(const struct compare *all, char *to, size_t size)
{
	double by;
	const struct compare_kind *best = best_try(all, &by);
	char text[32];

	*to = '\0';
	if (all->kind[0].over || all->kind[1].over)
		return;
	if (best != NULL)
		snprintf(to, size, "%s is %s times as fast as without it", best->options,
			shown_times(by, text, sizeof(text)));
	else if (all->tries)
		snprintf(to, size, "none of the other options was faster");
	else if (ratio_of_medians(&all->kind[0], &all->kind[1], COMPARE_WALL, least_difference)
		<= 1)
		snprintf(to, size, "--try measures other options, too");
}

/* ---- as text ---- */

/* Prints lines that other programs wrote. A line that was overwritten after carriage returns, as
 * progress is, is printed as it was in the end. */
static void print_lines(const char *indent, const char *text)
{
	enum { MOST = 1024 };

	for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
		char shown[4 * MOST + 8];
		size_t end, from;

		n = end = strcspn(text, "\n");
		while (end > 0 && text[end - 1] == '\r')
			end--;
		for (from = end; from > 0 && text[from - 1] != '\r';)
			from--;
		printf("%s%s\n", indent, tool_plain(shown, sizeof(shown), text + from,
			end - from < MOST ? end - from : MOST));
	}
}

static void print_command(const struct compare *all)
{
	char command[COMMAND] = "", shown[4 * COMMAND + 8];

	for (char **word = all->argv; *word != NULL; word++) {
		size_t n = strlen(command);

		snprintf(command + n, sizeof(command) - n, "%s%s", n > 0 ? " " : "", *word);
	}
	printf("%s: %u run%s of each, in turns\n",
		tool_plain(shown, sizeof(shown), command, sizeof(command)), all->runs,
		all->runs == 1 ? "" : "s");
}

static void print_metric(const struct compare *all, unsigned metric)
{
	const char *name = all->load == NULL ? metrics[metric].name : metric == COMPARE_WALL ?
		"time of the load" : metrics[metric].name;

	putchar('\n');
	for (unsigned k = 0; k < all->n; k++) {
		const struct compare_kind *kind = &all->kind[k];
		struct summary s = summary_of(kind, metric);
		char median[32], min[32], max[32], unit = metrics[metric].unit;

		if (kind->n == 0)
			continue;
		shown_value(s.median, unit, median, sizeof(median));
		shown_value(s.min, unit, min, sizeof(min));
		shown_value(s.max, unit, max, sizeof(max));
		printf("%-18s %-24s %12s   (%s .. %s)\n", k == 0 ? name : "", kind->name, median, min, max);
	}
}

static void print_kind(const struct compare *all, const struct compare_kind *kind)
{
	if (*kind->said != '\0') {
		printf("\n%s: the load wrote\n", kind->name);
		print_lines("  ", kind->said);
	}
	if (*kind->wrong != '\0') {
		printf("\n%s:\n", kind->name);
		print_lines("  ", kind->wrong);
	}
	if (*kind->note != '\0') {
		printf("\n%s:\n", kind->name);
		print_lines("  ", kind->note);
	}
	if (*kind->difference != '\0' && !all->unsteady) {
		printf("\n%s%s:\n", all->check ? "" : "warning, ", kind->name);
		print_lines("  ", kind->difference);
	}
}

static void print_sentence(const char *text)
{
	printf("%c%s.\n", toupper((unsigned char)*text), text + 1);
}

static void print_text(const struct compare *all)
{
	char text[256];

	print_command(all);
	if (!all->kind[0].over && all->kind[0].n > 0)
		for (unsigned metric = 0; metric < COMPARE_METRICS; metric++)
			print_metric(all, metric);
	for (unsigned k = 0; k < all->n; k++)
		print_kind(all, &all->kind[k]);
	putchar('\n');
	if (all->unsteady)
		printf("Its output is not compared: on kernel threads, too, it differs from run to run.\n");
	else if (all->load == NULL && !all->kind[0].over && !all->kind[1].over &&
		*all->kind[1].difference == '\0')
		printf("Exit status %d and output are the same.\n", WEXITSTATUS(all->kind[0].status));
	write_verdict(all, text, sizeof(text));
	print_sentence(text);
	if (all->others >= busy)
		printf("The machine was busy: others used %.0f %% of its processors meanwhile.\n",
			100 * all->others);
	if (all->start > 0)
		printf("Starting on Kochab costs %.1f ms, measured with a program that ends at once.\n",
			1000 * all->start);
	write_hint(all, text, sizeof(text));
	if (*text != '\0')
		print_sentence(text);
}

/* ---- as JSON ---- */

static void json_text(const char *key, const char *text)
{
	printf(", \"%s\": ", key);
	if (*text != '\0')
		tool_json_string(text);
	else
		printf("null");
}

static void json_number(const char *before, double x)
{
	printf("%s", before);
	tool_json_number(stdout, x);
}

static void json_kind(const struct compare *all, const struct compare_kind *kind)
{
	printf("{\"kind\": \"%s\", \"options\": \"%s\", \"runs\": %u",
		kind->plain ? "kernel threads" : "kochab", kind->options, kind->n);
	if (!kind->has_status)
		printf(", \"exit_status\": null");
	else if (WIFSIGNALED(kind->status))
		printf(", \"signal\": %d", WTERMSIG(kind->status));
	else
		printf(", \"exit_status\": %d", WEXITSTATUS(kind->status));
	for (unsigned metric = 0; metric < COMPARE_METRICS; metric++) {
		struct summary s = summary_of(kind, metric);

		printf(", \"%s\": ", metrics[metric].key);
		json_number("{\"median\": ", s.median);
		json_number(", \"min\": ", s.min);
		json_number(", \"max\": ", s.max);
		printf("}");
	}
	json_text("wrong", kind->wrong);
	json_text("note", kind->note);
	json_text("difference", all->unsteady ? "" : kind->difference);
	if (all->load != NULL)
		json_text("load_wrote", kind->said);
	printf("}\n");
}

static void print_json(const struct compare *all)
{
	char text[256];

	for (unsigned k = 0; k < all->n; k++)
		json_kind(all, &all->kind[k]);
	write_verdict(all, text, sizeof(text));
	printf("{\"verdict\": ");
	tool_json_string(text);
	json_number(", \"times_as_fast\": ",
		    median_of(&all->kind[0], COMPARE_WALL) / median_of(&all->kind[1], COMPARE_WALL));
	json_number(", \"by_chance\": ",
		rank_test_p_value(&all->kind[0], &all->kind[1], COMPARE_WALL));
	printf(", \"output\": \"%s\"",
		all->load != NULL || all->kind[0].over || all->kind[1].over ? "not compared" :
		all->unsteady ? "unsteady" : compare_same(all) ? "same" : "different");
	json_number(", \"others_share\": ", all->others);
	json_number(", \"start_s\": ", all->start > 0 ? all->start : NAN);
	write_hint(all, text, sizeof(text));
	json_text("hint", text);
	printf("}\n");
}

int compare_show(const struct compare *all)
{
	(all->json ? print_json : print_text)(all);
	return exit_code(all);
}
