/* tool/bench_page.c - the page of the demo: reads JSON lines (of `kochab bench rendezvous --json`
 * and of dev/demo's compression) and writes one HTML file with everything inside: the figures of
 * "Fast rendezvous by polling and lightweight threads" redrawn with this machine's numbers, as SVG
 * bars on a logarithmic scale. No script, no network; light or dark as the reader's system is;
 * readable on a phone. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "bench.h"
#include "bench_chart.h"
#include "tool.h"

enum { ROWS = 512, MOST_THREADS = 100000000 };
#define LEAST 1e-3
#define MOST_NS 1e18

struct page {
	FILE *out;
	struct chart_row row[ROWS];
	unsigned rows;
	unsigned cores; /* threads of the figures that say "as many as cores" */
};

/* ---- reading ---- */

static void text_field(const char *line, const char *key, char *to, size_t size)
{
	char name[BENCH_WORD];
	const char *at;
	size_t n = 0;

	snprintf(name, sizeof name, "\"%s\": \"", key);
	at = strstr(line, name);
	for (at = at ? at + strlen(name) : ""; *at && *at != '"' && n + 1 < size; at++) {
		if (*at == '\\' && at[1])
			at++; /* the remaining escapes, \u...., stay as they stand */
		to[n++] = *at;
	}
	to[n] = 0;
}

/* Returns a number from LEAST to most; any other text counts as 0: nothing was measured. */
static double number_field(const char *line, const char *key, double most)
{
	char name[BENCH_WORD];
	const char *at;
	double x;

	snprintf(name, sizeof name, "\"%s\": ", key);
	at = strstr(line, name);
	x = at ? strtod(at + strlen(name), NULL) : 0;
	return x >= LEAST && x <= most ? x : 0;
}

static int load_rows(struct page *p, const char *path)
{
	char line[1024];
	FILE *in = fopen(path, "r");

	if (!in)
		return errno;
	while (p->rows < ROWS && fgets(line, sizeof line, in)) {
		struct chart_row *r = &p->row[p->rows];

		if (line[0] != '{')
			continue;
		text_field(line, "bench", r->bench, sizeof r->bench);
		text_field(line, "method", r->method, sizeof r->method);
		text_field(line, "note", r->note, sizeof r->note);
		r->threads = (unsigned)number_field(line, "threads", MOST_THREADS);
		r->vps = (unsigned)number_field(line, "vps", MOST_THREADS);
		r->median = number_field(line, "median", MOST_NS);
		p->rows++;
	}
	fclose(in);
	return 0;
}

static const struct chart_row *find_row(const struct page *p, const char *method, unsigned threads)
{
	for (const struct chart_row *r = p->row; r < p->row + p->rows; r++)
		if (r->threads == threads && strcmp(r->method, method) == 0 &&
			strcmp(r->bench, "rendezvous") == 0)
			return r;
	return NULL;
}

static double median_of_method(const struct page *p, const char *method, unsigned threads)
{
	const struct chart_row *r = find_row(p, method, threads);

	return r ? r->median : 0;
}

/* ---- the figures of the paper ---- */

static void figure_open(FILE *out, const char *number, const char *title, unsigned threads,
	const char *with)
{
	fprintf(out, "<figure><h3>%s%s</h3><p class=sub>%u threads %s</p>\n", number, title,
		threads, with);
}

static void figure_close(FILE *out, const char *said, const char *paper, const char *here)
{
	fprintf(out,
		"<figcaption>%s<span class=pair><span><b>%s</b> here</span><span><b>%s</b> in the "
		"paper</span>"
		"</span></figcaption></figure>\n",
		said, here, paper);
}

static void polling_figure(struct page *p, const char *number, unsigned threads, const char *with,
	const char *title, const char *paper)
{
	struct chart f = { 0 };
	char here[BENCH_WORD];

	chart_add(&f, find_row(p, "rtsig", threads), NULL);
	chart_add(&f, find_row(p, "poll", threads), NULL);
	chart_times(here, sizeof here, median_of_method(p, "rtsig", threads),
		median_of_method(p, "poll", threads));
	figure_open(p->out, number, title, threads, with);
	chart_draw(p->out, &f, title);
	figure_close(p->out, "Busy polling against the signal:", paper, here);
}

static void agent_figure(struct page *p, unsigned threads)
{
	struct chart f = { 0 };
	char here[BENCH_WORD];

	chart_add(&f, find_row(p, "rtsig", threads), NULL);
	chart_add(&f, find_row(p, "agent-rtsig", threads), NULL);
	chart_times(here, sizeof here, median_of_method(p, "rtsig", threads),
		median_of_method(p, "agent-rtsig", threads));
	figure_open(p->out, "Figure 6. ", "An agent polls for all, wakes by signal", threads,
		"(one more than cores)");
	chart_draw(p->out, &f, "polling agent");
	figure_close(p->out, "Agent and signal against the signal alone:", "as slow or slower", here);
}

static void proposal_figure(struct page *p, unsigned threads)
{
	struct chart f = { 0 };
	char agent[BENCH_WORD], signal[BENCH_WORD], free_pollers[BENCH_WORD];
	double one = median_of_method(p, "kochab-1", threads);

	chart_add(&f, find_row(p, "agent-rtsig", threads), NULL);
	chart_add(&f, find_row(p, "rtsig", threads), NULL);
	chart_add(&f, find_row(p, "kochab-1", threads), "Kochab, one poller (the paper's method)");
	chart_add(&f, find_row(p, "kochab", threads), NULL);
	chart_times(agent, sizeof agent, median_of_method(p, "agent-rtsig", threads), one);
	chart_times(signal, sizeof signal, median_of_method(p, "rtsig", threads), one);
	chart_times(
		free_pollers, sizeof free_pollers, median_of_method(p, "rtsig", threads),
		median_of_method(p, "kochab", threads));
	figure_open(p->out, "Figure 11. ", "The agent switches to the waiter itself", threads,
		"(one more than cores)");
	chart_draw(p->out, &f, "the proposed method");
	fprintf(p->out,
		"<figcaption>Against agent + signal:<span class=pair><span><b>%s</b> here</span>"
		"<span><b>5.95×&nbsp;faster</b> in the paper</span></span>"
		"Against the signal:<span class=pair><span><b>%s</b> here</span>"
		"<span><b>5.21×&nbsp;faster</b> in the paper</span></span>"
		"Kochab as it comes, every idle processor polling, against the signal: "
		"<b>%s</b>.</figcaption></figure>\n",
		agent, signal, free_pollers);
}

static void scale_figure(struct page *p)
{
	static const unsigned many[] = { 10, 100, 1000 };
	static const char *const method[] = { "rtsig", "kochab-1", "kochab" };
	struct chart f = { 0 };
	char here[BENCH_WORD], said[4 * BENCH_WORD];

	for (size_t t = 0; t < 3; t++)
		for (size_t m = 0; m < 3; m++) {
			char *words = f.words[f.rows];
			snprintf(words, sizeof f.words[0], "%u threads: %s", many[t], chart_name(method[m]));
			chart_add(&f, find_row(p, method[m], many[t]), words);
		}
	chart_times(here, sizeof here, median_of_method(p, "rtsig", 1000),
		median_of_method(p, "kochab", 1000));
	snprintf(said, sizeof said,
		"Kochab as it comes: <b>%s</b>. One poller, 1000 threads, against the signal:", here);
	chart_times(here, sizeof here, median_of_method(p, "rtsig", 1000),
		median_of_method(p, "kochab-1", 1000));
	fprintf(p->out,
		"<figure class=tall><h3>Figure 12. It stays so with many threads</h3>"
		"<p class=sub>10, 100 and 1000 threads</p>\n");
	chart_draw(p->out, &f, "many threads");
	figure_close(p->out, said, "5.24×&nbsp;faster", here);
}

static void all_figure(struct page *p, unsigned threads)
{
	struct chart f = { 0 };

	for (size_t i = 0; chart_names[i][0]; i++)
		chart_add(&f, find_row(p, chart_names[i][0], threads), NULL);
	if (!f.rows)
		return;
	fprintf(p->out, "<figure><h3>Every way of waiting</h3><p class=sub>%u threads</p>\n", threads);
	chart_draw(p->out, &f, "every way of waiting");
	fputs("</figure>\n", p->out);
}

/* ---- the real program ---- */

static void write_compression(struct page *p)
{
	const struct chart_row *kernel = NULL, *ours = NULL;
	double most;

	for (const struct chart_row *r = p->row; r < p->row + p->rows; r++)
		if (strcmp(r->bench, "compress") == 0)
			*(strcmp(r->method, "kochab") == 0 ? &ours : &kernel) = r;
	if (!kernel || !ours)
		return;
	most = fmax(fmax(kernel->median, ours->median), 1);
	fputs("<h2>An unmodified program</h2><p>", p->out);
	tool_html(p->out, ours->note);
	fprintf(p->out,
		"</p><figure class=one><svg viewBox='0 0 %d %d' role=img aria-label='compression times'>",
		CHART_WIDTH,
		2 * CHART_ROW_HEIGHT + CHART_TOP);
	for (int i = 0; i < 2; i++) {
		const struct chart_row *r = i ? ours : kernel;
		int y = CHART_TOP + i * CHART_ROW_HEIGHT;

		fprintf(p->out,
			"<text class='%s' x=0 y=%d>%s</text><text class=value x=%d y=%d>%.0f ms</text>"
			"<rect class=%s x=0 y=%d width=%.1f height=11 rx=2 />",
			i ? "name ours" : "name", y + 15, i ? "on Kochab" : "on kernel threads", CHART_WIDTH,
			y + 15, r->median, i ? "ours" : "other", y + 21, CHART_WIDTH * r->median / most);
	}
	fputs("</svg></figure>\n", p->out);
}

/* ---- the table ---- */

static unsigned thread_numbers(const struct page *p, unsigned *to)
{
	unsigned n = 0;

	for (const struct chart_row *r = p->row; r < p->row + p->rows; r++) {
		unsigned k = 0;
		if (strcmp(r->bench, "rendezvous") != 0)
			continue;
		while (k < n && to[k] != r->threads)
			k++;
		if (k == n && n < CHART_ROWS)
			to[n++] = r->threads;
	}
	return n;
}

static void write_ratio(FILE *out, double x)
{
	if (x >= 1)
		fprintf(out, "<br><small>%.*f×</small>", x < 10 ? 2 : 0, x);
	else
		fprintf(out, "<br><small>1/%.*f×</small>", x > 0.1 ? 2 : 0, 1 / x);
}

static void write_cell(FILE *out, const struct chart_row *r, double ref)
{
	char text[BENCH_WORD];

	if (!r || r->median <= 0) {
		fputs("<td class=none>", out);
		tool_html(out, r && r->note[0] ? r->note : "–");
		fputs("</td>", out);
		return;
	}
	chart_duration(text, sizeof text, r->median);
	fprintf(out, "<td>%s", text);
	if (ref > 0)
		write_ratio(out, ref / r->median);
	fputs("</td>", out);
}

static void write_table(struct page *p)
{
	unsigned threads[CHART_ROWS], n = thread_numbers(p, threads);

	fputs("<h2>All figures</h2><p>One-way latency, median of the runs; below it how many times "
		"faster than the real-time signal.</p><div class=wide><table><thead><tr><th>threads</th>",
		p->out);
	for (unsigned k = 0; k < n; k++)
		fprintf(p->out, "<th>%u</th>", threads[k]);
	fputs("</tr></thead><tbody>\n", p->out);
	for (size_t i = 0; chart_names[i][0]; i++) {
		fprintf(p->out, "<tr><th class='%s'>%s</th>",
			strncmp(chart_names[i][0], "kochab", 6) ? "" : "ours", chart_names[i][1]);
		for (unsigned k = 0; k < n; k++)
			write_cell(p->out, find_row(p, chart_names[i][0], threads[k]),
				median_of_method(p, "rtsig", threads[k]));
		fputs("</tr>\n", p->out);
	}
	fputs("</tbody></table></div>\n", p->out);
}

/* ---- the page around them ---- */

static const char style[] =
	"<style>:root{color-scheme:light "
	"dark;--paper:#fbfaf7;--ink:#1d2430;--soft:#5d6675;--line:#dcd9d0;"
	"--other:#9aa5b8;--ours:#c2410c;--card:#fff}"
	"@media(prefers-color-scheme:dark){:root{--paper:#12161f;--ink:#e8eaf0;--soft:#9aa3b5;"
	"--line:#2c3444;"
	"--other:#66738c;--ours:#ff9a5c;--card:#1a202c}}"
	"*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);"
	"font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
	"main{max-width:1080px;margin:0 auto;padding:32px 20px "
	"64px}h1{font-size:clamp(26px,5vw,40px);line-height:1.15;"
	"margin:0 0 12px;text-wrap:balance}h2{margin:48px 0 "
	"8px;font-size:22px}h3{margin:0;font-size:16px}"
	"p{margin:0 0 12px;max-width:68ch}.sub{color:var(--soft);font-size:14px;margin:0 0 6px}"
	".big{display:flex;flex-wrap:wrap;gap:12px 40px;margin:24px 0 8px}.big "
	"div{font-size:14px;color:var(--soft)}"
	".big "
	"b{display:block;font-size:34px;line-height:1.2;color:var(--ours);"
	"font-variant-numeric:tabular-nums}"
	".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));"
	"gap:20px;"
	"align-items:start}figure{margin:0;background:var(--card);border:1px solid "
	"var(--line);border-radius:8px;"
	"padding:16px}svg{display:block;width:100%;max-width:480px;height:auto;overflow:visible}"
	"svg text{font-size:12px;fill:var(--ink)}svg "
	".value{text-anchor:end;font-variant-numeric:tabular-nums}"
	"svg .tick{font-size:10px;fill:var(--soft)}svg .ours{fill:var(--ours)}svg "
	"text.ours{font-weight:600}"
	"svg .other{fill:var(--other)}.grid{stroke:var(--line);stroke-width:1}"
	"figcaption{margin-top:10px;font-size:14px;color:var(--soft)}figcaption b{color:var(--ink)}"
	".pair{display:flex;flex-wrap:wrap;gap:2px 20px;margin:2px 0 6px}.wide{overflow-x:auto}"
	"table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;width:100%}"
	"th,td{padding:6px 10px;text-align:right;border-bottom:1px solid "
	"var(--line);white-space:nowrap}"
	"tbody "
	"th{text-align:left;font-weight:400;white-space:normal;min-width:8em}.one{max-width:514px}"
	"tbody "
	"th.ours{color:var(--ours);font-weight:600}"
	"thead th:first-child{text-align:left}td small,.none{color:var(--soft)}footer{margin-top:48px;"
	"color:var(--soft);font-size:14px}</style>";

static void describe_machine(char *to, size_t size)
{
	char line[256], model[128] = "";
	struct utsname u;
	FILE *in = fopen("/proc/cpuinfo", "r");

	while (in && !model[0] && fgets(line, sizeof line, in))
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':'))
			snprintf(model, sizeof model, "%s", strchr(line, ':') + 2);
	if (in)
		fclose(in);
	model[strcspn(model, "\n")] = 0;
	if (uname(&u))
		memset(&u, 0, sizeof u);
	snprintf(to, size, "%s%s%s %s, %s %s", model, model[0] ? ", " : "", "", u.machine, u.sysname,
		u.release);
}

static void write_headline(struct page *p)
{
	char v[BENCH_WORD], r[BENCH_WORD];

	fputs("<h1>How long does a message take to a thread that waits?</h1><p>Threads stand in a "
		"ring; each waits for an 8-byte message, then sends the next one to its neighbour. What "
		"differs is how a waiting thread learns of its message. Kochab's lightweight threads wait "
		"by polling, and a poller that finds a message switches straight to the thread it is "
		"for.</p><div class=big>", p->out);
	chart_duration(v, sizeof v, median_of_method(p, "kochab", 1000));
	fprintf(p->out, "<div><b>%s</b>Kochab, 1000 threads</div>", v);
	chart_duration(v, sizeof v, median_of_method(p, "rtsig", 1000));
	fprintf(p->out, "<div><b>%s</b>real-time signal, 1000 threads</div>", v);
	chart_times(r, sizeof r, median_of_method(p, "rtsig", 1000),
		median_of_method(p, "kochab", 1000));
	fprintf(p->out, "<div><b>%s</b>than the signal (the paper: 5.24×)</div></div>\n", r);
}

static void write_page(struct page *p)
{
	char where[512];

	describe_machine(where, sizeof where);
	fprintf(p->out,
		"<!doctype html><html lang=en><head><meta charset=utf-8>"
		"<meta name=viewport content='width=device-width,initial-scale=1'>"
		"<title>Kochab: rendezvous on this machine</title>%s</head><body><main>\n",
		style);
	write_headline(p);
	fprintf(p->out,
		"<h2>The paper's figures, on this machine</h2><p>%u cores, ", p->cores);
	tool_html(p->out, where);
	fputs(". Logarithmic scales; shorter is better. Medians of runs taken in turns.</p><div "
	"class=figures>\n", p->out);
	polling_figure(p, "Figure 3. ", p->cores, "(as many as cores)",
		"Polling is fast while cores last", "19×&nbsp;faster");
	polling_figure(p, "Figure 4. ", p->cores + 1, "(one more than cores)",
		"One thread too many, and it collapses", "2,557×&nbsp;slower");
	agent_figure(p, p->cores + 1);
	proposal_figure(p, p->cores + 1);
	scale_figure(p);
	all_figure(p, 100);
	fputs("</div>\n", p->out);
	write_compression(p);
	write_table(p);
	fputs("<footer>The paper: Tamura, Nakashima, Yamamoto, Maeda (Fujitsu Laboratories), “Fast "
	      "rendezvous by polling "
	      "and lightweight threads”; its machine had 4 cores at 3.4 GHz and Linux 2.6.32. Made by "
	      "<code>make demo</code>.</footer></main></body></html>\n",
		p->out);
}

int bench_page(const char *lines, const char *path)
{
	static struct page p;
	int e;

	memset(&p, 0, sizeof p);
	e = load_rows(&p, lines);
	if (e) {
		fprintf(stderr, "kochab bench: cannot read '%s': %s\n", lines, strerror(e));
		return 1;
	}
	for (const struct chart_row *r = p.row; r < p.row + p.rows; r++)
		if (strcmp(r->bench, "rendezvous") == 0 && r->vps > p.cores)
			p.cores = r->vps;
	p.out = fopen(path, "w");
	if (!p.out) {
		fprintf(stderr, "kochab bench: cannot write '%s': %s\n", path, strerror(errno));
		return 1;
	}
	write_page(&p);
	return fclose(p.out) ? 1 : 0;
}
