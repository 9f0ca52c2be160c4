/* tool/bench.h - shared by the bench questions, the bench driver and the writer of the page. A
 * question (bench/NAME.c) is a `struct bench` with a row for each method; it is listed in
 * bench/list.def.
 * Every single measurement runs in a process of its own: the driver starts this program again with
 * `bench --measure ...`, in the environment that the method wants, and reads its results from a
 * pipe. Each run goes round all methods once, so that noise of the machine hits all of them
 * alike. */
#ifndef KOCHAB_TOOL_BENCH_H
#define KOCHAB_TOOL_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- for a question (in the measuring process) ----------------------------------------------- */

struct bench_case {
	unsigned threads;
	unsigned vps;   /* virtual processors, or CPUs that kernel threads may use */
	unsigned size;  /* varied by the question beside threads: struct bench, sizes; 0: nothing */
	int spread;     /* neighbours on different processors */
	double seconds; /* a measurement should take about this long */
};

enum {
	BENCH_KERNEL = 1,    /* kernel threads: confined to `vps` CPUs; never starts Kochab */
	BENCH_PEER = 2,      /* another runtime: a program of its own from bench/shim */
	BENCH_FREE_ONLY = 4, /* cannot place its threads */
	BENCH_CLAMP = 8,     /* above `most` threads: measured with `most` */
	BENCH_CORES_1 = 16,  /* `most` is the number of processors + 1 */
};

struct bench_method {
	const char *name;
	void (*run)(const struct bench_case *c); /* reports with bench_report */
	const char *as;                          /* this method's pthread code, run under the drop-in */
	const char *settings;                    /* "NAME=value NAME=value" added to the environment */
	unsigned flags;
	unsigned most;                /* threads; 0: any number */
	const char *beyond;           /* text of the table above `most` */
	unsigned vps_least, vps_most; /* 0: any */
};

struct bench {
	const char *name;
	const char *question;
	const struct bench_method *methods; /* ends with a row without a name */
	const char *threads;                /* defaults, written like the options: "cores,cores+1,10" */
	const char *vps;
	/* method that the table compares with; may be NULL. "-word": the method's own name with this as
	 * its last word */
	const char *reference;
	int peers;             /* the peers' shims answer the question, too */
	/* Returns why a method cannot be asked on this machine, "NAME skipped: ..."; NULL: it can.
	 * Pointer NULL: all can. */
	const char *(*absent)(const struct bench_method *m, const char *self);
	double seconds;        /* least length of a measurement; 0: any */
	const char *sizes;     /* sizes that the question varies, as threads; NULL: none */
	const char *size_name; /* printf format of a size */
	int reads_file;        /* takes --file: BENCH_FILE in the environment */
	/* asked with threads and with processes as virtual processors, unless --body chooses */
	int both_bodies;
	int both_placements;   /* asked free and spread, unless --placement chooses */
	const char *quick_threads, *quick_sizes; /* defaults of --quick; NULL: as above */
};

/* Reports a result of this measurement; metrics and units are constants of the question. */
void bench_report(const char *metric, const char *unit, double value);
/* Adds a line to the row: why a metric is missing. */
void bench_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* End the measurement as failed (a wrong result), or as not possible here. */
void bench_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void bench_skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
double bench_now(void);
unsigned bench_cpus(void);
/* Returns the CPU number of the i-th CPU that this process may use (modulo their number). */
int bench_cpu(unsigned i);
/* Confines the calling process, and processes that it makes, to the first `cpus` of these. Returns
 * 0 or errno. */
int bench_confine(unsigned cpus);
/* Calls once(arg, n), which returns seconds, with growing n until it takes c->seconds. Returns
 * seconds per n. The first call only warms up. */
double bench_scale(const struct bench_case *c, double (*once)(void *arg, uint64_t n), void *arg);
void *bench_alloc(size_t count, size_t size);
/* Fails unless pthread_create makes threads of the drop-in. */
void bench_require_drop_in(void);

/* ---- shared by the driver's own files -------------------------------------------------------- */

enum { BENCH_METRICS = 8, BENCH_RUNS = 101, BENCH_WORD = 64 };

struct bench_series {
	char metric[BENCH_WORD];
	char unit[BENCH_WORD];
	unsigned count;
	double value[BENCH_RUNS];
};

/* A row of the result: a method in a setting, with the reports of its runs. */
struct bench_cell {
	const struct bench *bench;
	const struct bench_method *method;
	struct bench_case c;
	char note[2 * BENCH_WORD]; /* why there is no figure, or a remark */
	int over;                  /* no further run: impossible or failed */
	int failed;
	struct bench_series series[BENCH_METRICS];
};

struct bench_cells {
	struct bench_cell *cell;
	size_t count;
};

extern const struct bench *const bench_all[]; /* NULL-ended */
extern const struct bench_method bench_peers[];

const struct bench *bench_find(const char *name);
const struct bench_method *bench_method_find(const struct bench *b, const char *name);
/* Adds the cell. Returns NULL if it is there, or the method cannot be asked that. */
struct bench_cell *bench_cell_add(
	struct bench_cells *all, const struct bench *b, const struct bench_method *m,
	struct bench_case c);
/* Returns the method with processes as virtual processors, its name followed by "/process"; NULL:
 * it has none. */
const struct bench_method *bench_method_in_processes(const struct bench_method *m);
/* Finds the cell with the threads, VPs, placement and size of `c`. */
struct bench_cell *bench_cell_find(
	const struct bench_cells *all, const char *bench, const char *method,
	const struct bench_case *c);
const struct bench_series *bench_series_find(const struct bench_cell *cell, const char *metric);
double bench_min(const struct bench_series *s);
double bench_median(const struct bench_series *s);
double bench_max(const struct bench_series *s);

/* Measures every cell `runs` times, round after round. `self` is this program's path. */
void bench_measure(struct bench_cells *all, unsigned runs, double seconds, int say,
	const char *self);
int bench_peer_there(const char *self, const char *peer);
void bench_show_table(const struct bench_cells *all, int bars, FILE *out);
void bench_show_json(const struct bench_cells *all, FILE *out);
/* Adds the cells that have limits. The second prints every figure against its limit and returns the
 * number of misses. */
void bench_limits_cells(struct bench_cells *all);
unsigned bench_limits_show(const struct bench_cells *all, FILE *out);
/* Writes the page from JSON lines. Returns 0, or 1 after printing the reason. */
int bench_page(const char *lines, const char *page);

#endif
