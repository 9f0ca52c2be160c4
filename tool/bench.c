/* tool/bench.c - `kochab bench`: reads the options, lays out the cells, measures, shows. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bench_child.h"
#include "tool.h"

int kochab_bench(int argc, char **argv);

enum { LIST = 32 };

struct plan {
	const struct bench *bench; /* NULL: all */
	const char *methods, *threads, *vps, *sizes, *file;
	int free, spread, body_threads, body_processes, peers, quick, bars, json, limits, strict;
	unsigned runs;
	double seconds;
	const char *json_file;
};

static const char usage[] =
	"usage: kochab bench NAME|all|limits [options]\n"
	"  --threads N,N,...      numbers of threads; 'cores' and 'cores+1' are allowed\n"
	"  --vps N,N,...          virtual processors (kernel threads: CPUs they may use)\n"
	"  --sizes N,N,...        of a question that varies something else: radix, bits of a digit;\n"
	"                         turns, microseconds of work\n"
	"  --file FILE            radix: the bytes of this file are the keys\n"
	"  --methods a,b,...      ways to compare (default: all but the peers)\n"
	"  --body thread|process|both     what virtual processors are (default thread;\n"
	"                         radix, distribute: both)\n"
	"  --peers                the peers built by bench/shim/build as well\n"
	"  --placement free|spread|both   spread: neighbours bound to different processors\n"
	"                         (default free; turns: both)\n"
	"  --runs R               measurements of each method, interleaved (default 5)\n"
	"  --seconds S            length of one measurement (default 0.3; turns: 1 at least, idle: 2)\n"
	"  --quick                short measurements, 3 runs; turns: 16 threads, 50 us\n"
	"  --format table|bars|json       what standard output gets\n"
	"  --json FILE            the JSON lines as well\n"
	"  --strict               exit status 1 if a limit is missed\n"
	"  --page FILE.html LINES.jsonl   writes the page of the demo from JSON lines\n"
	"kochab bench report [options]    measures all, several times, and writes a page: report "
	"--help\n"
	"kochab bench programs [options]  servers and other programs on kernel threads and on Kochab: "
	"programs --help\n"
	"kochab bench alloc [options]     allocators under the same loads (make bench-alloc builds "
	"them): alloc --help\n"
	"Every measurement is a process of its own; run 1 of every method, then run 2, ...\n";

static int report_bad_value(const char *what, const char *value)
{
	fprintf(stderr, "kochab bench: %s '%s'\n", what, value);
	return EINVAL;
}

/* Reads numbers such as "10,cores+1". Returns their count; 0: it cannot be read. */
static unsigned parse_numbers(const char *text, unsigned *out)
{
	unsigned n = 0;

	for (const char *p = text; n < LIST; p++) {
		char *end;
		unsigned long v;

		if (strncmp(p, "cores", 5) == 0) {
			v = bench_cpus();
			end = (char *)(uintptr_t)p + 5;
			if (*end == '+')
				v += strtoul(end + 1, &end, 10);
		} else {
			v = strtoul(p, &end, 10);
		}
		if (end == p || v == 0 || v > 100000000)
			return 0;
		out[n++] = (unsigned)v;
		if (*end == 0)
			return n;
		if (*end != ',')
			return 0;
		p = end;
	}
	return 0;
}

static int is_in_list(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, name, n) == 0 && (p[n] == 0 || p[n] == ','))
			return 1;
	return 0;
}

static void add_methods(struct bench_cells *all, const struct plan *p, const struct bench *b,
	const struct bench_method *m, int wanted, struct bench_case c)
{
	int body_asked = p->body_threads || p->body_processes;
	int in_processes = body_asked ? p->body_processes : b->both_bodies;

	for (; m->name; m++) {
		const struct bench_method *also = in_processes ? bench_method_in_processes(m) : NULL;

		if (!(p->methods ? is_in_list(p->methods, m->name) : wanted))
			continue;
		if (!also || !body_asked || p->body_threads)
			bench_cell_add(all, b, m, c);
		if (also)
			bench_cell_add(all, b, also, c);
	}
}

static void add_cases(struct bench_cells *all, const struct plan *p, const struct bench *b,
	struct bench_case c)
{
	add_methods(all, p, b, b->methods, 1, c);
	if (b->peers)
		add_methods(all, p, b, bench_peers, p->peers, c);
}

static const char *choose_numbers(const struct plan *p, const char *asked, const char *quick,
	const char *usual)
{
	return asked ? asked : p->quick && quick ? quick : usual;
}

static int add_bench(struct bench_cells *all, const struct plan *p, const struct bench *b)
{
	unsigned threads[LIST], vps[LIST], sizes[LIST] = { 0 };
	int free = p->free || !p->spread, spread = p->spread || (!p->free && b->both_placements);
	unsigned nt =
		parse_numbers(choose_numbers(p, p->threads, b->quick_threads, b->threads), threads);
	unsigned nv = parse_numbers(p->vps ? p->vps : b->vps, vps);
	unsigned nz = b->sizes ?
		parse_numbers(choose_numbers(p, p->sizes, b->quick_sizes, b->sizes), sizes) : 1;

	if (!nt)
		return report_bad_value("cannot read the numbers of threads", p->threads);
	if (!nv)
		return report_bad_value("cannot read the numbers of virtual processors", p->vps);
	if (!nz)
		return report_bad_value("cannot read the sizes", p->sizes);
	for (unsigned v = 0; v < nv; v++)
		for (int apart = !free; apart <= spread; apart++)
			for (unsigned t = 0; t < nt; t++)
				for (unsigned z = 0; z < nz; z++) {
					struct bench_case c = { threads[t], vps[v], sizes[z], apart, 0 };

					add_cases(all, p, b, c);
				}
	return 0;
}

static int check_methods(const struct plan *p)
{
	char list[1024], *rest = list, *word;

	if (!p->methods)
		return 0;
	snprintf(list, sizeof list, "%s", p->methods);
	while ((word = strsep(&rest, ","))) {
		int found = 0;
		for (const struct bench *const *b = bench_all; *b; b++)
			if ((!p->bench || p->bench == *b) && bench_method_find(*b, word))
				found = 1;
		if (!found)
			return report_bad_value("no such method", word);
	}
	return 0;
}

/* Prints each reason once. */
static void say_absent(const char *why, char *said, size_t size)
{
	size_t n = strlen(said);

	if (strstr(said, why))
		return;
	fprintf(stderr, "kochab bench: %s\n", why);
	snprintf(said + n, size - n, "%s\n", why);
}

/* Removes the rows of peers that are not built, and of methods that miss something here, and prints
 * a line for each reason. Returns the number of rows of such methods. */
static size_t drop_absent(struct bench_cells *all, const char *self)
{
	size_t kept = 0, missing = 0;
	char said[256] = "";

	for (const struct bench_method *m = bench_peers; m->name; m++) {
		int asked = 0;
		for (size_t i = 0; i < all->count; i++)
			asked |= all->cell[i].method == m;
		if (asked && !bench_peer_there(self, m->name))
			fprintf(stderr, "kochab bench: %s skipped: not built (bench/shim/build says why)\n",
				m->name);
	}
	for (size_t i = 0; i < all->count; i++) {
		const struct bench_cell *c = &all->cell[i];
		const char *why = c->bench->absent ? c->bench->absent(c->method, self) : NULL;

		missing += !!why;
		if (why)
			say_absent(why, said, sizeof said);
		else if (!(c->method->flags & BENCH_PEER) || bench_peer_there(self, c->method->name))
			all->cell[kept++] = *c;
	}
	all->count = kept;
	return missing;
}

/* Lays out all cells. If all are missing on this machine that is printed, and is no error. */
static int lay_out_cells(struct bench_cells *all, const struct plan *p, const char *self)
{
	int e = check_methods(p);
	size_t missing;

	for (const struct bench *const *b = bench_all; *b && !e; b++)
		if (p->bench ? p->bench == *b : !p->limits)
			e = add_bench(all, p, *b);
	if (!e && !p->bench)
		bench_limits_cells(all);
	missing = drop_absent(all, self);
	if (!e && !all->count && !missing) {
		fputs("kochab bench: nothing to measure with these options\n", stderr);
		e = EINVAL;
	}
	return e;
}

static int show_results(const struct bench_cells *all, const struct plan *p)
{
	unsigned missed = 0, failed = 0;

	if (p->json)
		bench_show_json(all, stdout);
	else
		bench_show_table(all, p->bars, stdout);
	if (p->json_file) {
		FILE *f = fopen(p->json_file, "w");
		if (!f)
			return report_bad_value("cannot write", p->json_file);
		bench_show_json(all, f);
		fclose(f);
	}
	if (!p->bench)
		missed = bench_limits_show(all, p->json ? stderr : stdout);
	for (size_t i = 0; i < all->count; i++)
		failed += (unsigned)all->cell[i].failed;
	if (failed)
		fprintf(stderr, "kochab bench: %u of %zu measurements failed\n", failed, all->count);
	return failed || (missed && p->strict);
}

static int parse_placement(struct plan *p, const char *v)
{
	p->free = strcmp(v, "free") == 0 || strcmp(v, "both") == 0;
	p->spread = strcmp(v, "spread") == 0 || strcmp(v, "both") == 0;
	return p->free || p->spread ? 0 : report_bad_value("unknown placement", v);
}

static int parse_body(struct plan *p, const char *v)
{
	p->body_threads = strcmp(v, "thread") == 0 || strcmp(v, "both") == 0;
	p->body_processes = strcmp(v, "process") == 0 || strcmp(v, "both") == 0;
	return p->body_threads || p->body_processes ? 0 : report_bad_value("unknown body", v);
}

static int parse_format(struct plan *p, const char *v)
{
	p->json = strcmp(v, "json") == 0;
	p->bars = strcmp(v, "bars") == 0;
	return p->json || p->bars || strcmp(v, "table") == 0 ? 0 :
		report_bad_value("unknown format", v);
}

static int parse_runs(struct plan *p, const char *v)
{
	char *end;
	unsigned long n = strtoul(v, &end, 10);

	p->runs = (unsigned)n;
	return *end == 0 && n >= 1 && n <= BENCH_RUNS ? 0 :
		report_bad_value("cannot use this number of runs", v);
}

static int parse_seconds(struct plan *p, const char *v)
{
	char *end;

	p->seconds = strtod(v, &end);
	return *end == 0 && p->seconds > 0 && p->seconds <= 60 ? 0 :
		report_bad_value("cannot use this length", v);
}

static const struct option options[] = {
	{ "threads", 1, 0, 't' },
	{ "vps", 1, 0, 'v' },
	{ "sizes", 1, 0, 'z' },
	{ "file", 1, 0, 'F' },
	{ "methods", 1, 0, 'm' },
	{ "body", 1, 0, 'b' },
	{ "peers", 0, 0, 'p' },
	{ "placement", 1, 0, 'l' },
	{ "runs", 1, 0, 'r' },
	{ "seconds", 1, 0, 's' },
	{ "quick", 0, 0, 'q' },
	{ "format", 1, 0, 'f' },
	{ "json", 1, 0, 'j' },
	{ "strict", 0, 0, 'S' },
	{ "help", 0, 0, 'h' },
	{ 0 },
};

/* The file name is relative to the current folder: so a bad name is reported here and now. */
static int parse_file(struct plan *p, const char *v)
{
	if (access(v, R_OK)) {
		fprintf(stderr, "kochab bench: cannot read '%s': %s\n", v, strerror(errno));
		return EINVAL;
	}
	p->file = v;
	return setenv("BENCH_FILE", v, 1);
}

static int parse_plan_option(struct plan *p, int opt, const char *v)
{
	switch (opt) {
	case 't':
		p->threads = v;
		return 0;
	case 'v':
		p->vps = v;
		return 0;
	case 'z':
		p->sizes = v;
		return 0;
	case 'F':
		return parse_file(p, v);
	case 'm':
		p->methods = v;
		return 0;
	case 'b':
		return parse_body(p, v);
	case 'p':
		p->peers = 1;
		return 0;
	case 'q':
		p->quick = 1;
		return 0;
	case 'S':
		p->strict = 1;
		return 0;
	case 'j':
		p->json_file = v;
		return 0;
	case 'l':
		return parse_placement(p, v);
	case 'r':
		return parse_runs(p, v);
	case 's':
		return parse_seconds(p, v);
	case 'f':
		return parse_format(p, v);
	default:
		return EINVAL;
	}
}

static int parse_plan(struct plan *p, int argc, char **argv)
{
	int opt, e = 0;

	optind = 1;
	while (!e && (opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		e = parse_plan_option(p, opt, optarg);
	if (!e && optind + 1 != argc)
		e = report_bad_value("one question is needed (see kochab bench --help), not",
			optind < argc ? argv[optind + 1] : "");
	if (e)
		return e;
	p->limits = strcmp(argv[optind], "limits") == 0;
	if (!p->limits && strcmp(argv[optind], "all") != 0 && !(p->bench = bench_find(argv[optind])))
		return report_bad_value("no such question:", argv[optind]);
	if ((p->sizes && p->bench && !p->bench->sizes) ||
		(p->file && !(p->bench && p->bench->reads_file)))
		return report_bad_value(p->file ? "--file is not for" : "--sizes is not for",
			argv[optind]);
	if (!p->runs)
		p->runs = p->quick ? 3 : 5;
	if (p->seconds <= 0)
		p->seconds = p->quick ? 0.05 : 0.3;
	return 0;
}

static void print_question(const struct bench *b, FILE *out)
{
	fprintf(out, "\n%s: %s\n  ", b->name, b->question);
	for (const struct bench_method *m = b->methods; m->name; m++)
		fprintf(out, " %s", m->name);
	fputc('\n', out);
}

static int print_bench_help(FILE *out)
{
	fputs(usage, out);
	for (const struct bench *const *b = bench_all; *b; b++)
		print_question(*b, out);
	return out == stdout ? 0 : 2;
}

static int print_help_about(const char *name)
{
	const struct bench *b = bench_find(name);

	if (!b && (strcmp(name, "all") == 0 || strcmp(name, "limits") == 0))
		return print_bench_help(stdout);
	if (!b) {
		report_bad_value("no such question:", name);
		return 2;
	}
	fputs(usage, stdout);
	print_question(b, stdout);
	return 0;
}

/* Runs a program of bench/, which lies in the sources, beside the build directory, or where it was
 * installed. */
static int run_bench_program(const char *name, char **argv, const char *self)
{
	static const char *const places[] = { "../bench", "../share/kochab/bench" };
	const char *slash = strrchr(self, '/');

	setenv("KOCHAB_BIN", self, 1);
	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof path, "%.*s/%s/%s", (int)(slash - self), self, places[i], name);
		if (access(path, X_OK) == 0)
			execv(path, argv);
	}
	fprintf(stderr, "kochab bench: %s: its program is not there, or there is no python3\n",
		argv[0]);
	return 2;
}

int kochab_bench(int argc, char **argv)
{
	struct plan plan = { 0 };
	struct bench_cells all = { 0 };
	char self[PATH_MAX];
	int status;

	if (argc > 1 && strcmp(argv[1], "--measure") == 0)
		return bench_child(argc - 2, argv + 2);
	if (argc == 4 && strcmp(argv[1], "--page") == 0)
		return bench_page(argv[3], argv[2]);
	if (argc < 2)
		return print_bench_help(stderr);
	if (strcmp(argv[1], "--help") == 0)
		return print_bench_help(stdout);
	if (!tool_self(self, sizeof self))
		return 2;
	if (strcmp(argv[1], "report") == 0)
		return run_bench_program("report", argv + 1, self);
	if (strcmp(argv[1], "programs") == 0)
		return run_bench_program("programs/run", argv + 1, self);
	if (strcmp(argv[1], "alloc") == 0)
		return run_bench_program("alloc/run", argv + 1, self);
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0)
			return print_help_about(argv[1]);
	if (parse_plan(&plan, argc, argv))
		return 2;
	if (lay_out_cells(&all, &plan, self))
		return 2;
	bench_measure(&all, plan.runs, plan.seconds, isatty(STDERR_FILENO), self);
	status = show_results(&all, &plan);
	free(all.cell);
	return status;
}
