/* tool/compare.h - shared by the files of `kochab compare`. A kind is a way to run the program: on
 * kernel threads, under `kochab run`, with --try under `kochab run` with more options. compare.c
 * reads the command line and goes round the kinds, compare_run.c makes a run of a kind,
 * compare_child.c starts and ends processes, compare_show.c judges and prints. */
#ifndef KOCHAB_TOOL_COMPARE_H
#define KOCHAB_TOOL_COMPARE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

enum { COMPARE_RUNS = 1000, COMPARE_KINDS = 8, COMPARE_TEXT = 4096 };
enum { COMPARE_LEAST = 4 }; /* with fewer runs the test of ranks never reaches 5 % */
enum { COMPARE_WALL, COMPARE_CPU, COMPARE_MEMORY, COMPARE_WAITS, COMPARE_FORCED, COMPARE_METRICS };

struct compare_kind {
	const char *name;
	const char *options;            /* added to the command line's options, in its syntax; "" */
	const char *variable, *value;   /* the same options as a variable of the environment, NULL */
	bool plain;                     /* kernel threads */
	bool over;                      /* no further run */
	bool has_status;
	int status;                     /* of its runs, as wait gives it */
	unsigned n;                     /* runs that are measured */
	double at[COMPARE_METRICS][COMPARE_RUNS]; /* s, s, bytes, switches */
	char wrong[COMPARE_TEXT];       /* why a run was wrong; "": none was */
	char note[COMPARE_TEXT];        /* a remark on its runs; "" */
	char difference[COMPARE_TEXT];  /* of its output from that on kernel threads; "" */
	char said[COMPARE_TEXT];        /* the end of the load's output in the last run */
};

struct compare {
	unsigned runs;
	bool check, json;
	const char *load, *ready;      /* commands of the shell; NULL: no server */
	const char *input;             /* the file that is the program's standard input; NULL */
	bool tries;                    /* more kinds */
	double ready_seconds, timeout; /* timeout 0: compare_run.c chooses the limit */
	char self[PATH_MAX];
	char **argv;                   /* the program and its arguments */
	unsigned n;
	struct compare_kind *kind;     /* the first is the plain kind */
	int reference;                 /* file with the first run's output, -1 */
	double longest;                /* longest plain run so far, s */
	bool unsteady;                 /* plain runs write different things */
	/* share of the machine's processors that other programs used while it was measured, 0 to 1 */
	double others;
	double start;                  /* result of compare_start_cost, s; 0: not measured */
};

/* ---- compare_child.c ---- */

struct compare_child {
	pid_t pid;
	double began; /* s, of tool_now */
	double took;
	int status;
	struct rusage usage;
	bool ended;
	unsigned left; /* processes that it left behind, which were ended */
};

/* To be called first: signals that end this command end its children, too; and so does its end. */
void compare_setup(void);
/* Returns the signal that has asked this command to end, 0. */
int compare_stopped(void);
/* Starts argv with these files as standard input, output and error. A plain kind: without Kochab;
 * else with the kind's variable in the environment, if it has a variable. Returns 0 or errno. */
int compare_start(struct compare_child *c, char *const *argv, const int file[3],
	const struct compare_kind *kind);
/* Waits for the child's end, at most so long. Returns false if it has not ended, or this command
 * was asked to end. */
bool compare_wait(struct compare_child *c, double seconds);
/* Ends the child and all processes that it has started. patience: seconds from SIGTERM to SIGKILL;
 * 0: SIGKILL at once. Returns false if SIGKILL was needed. */
bool compare_end(struct compare_child *c, double patience);
/* A file without a name for output, or -1. */
int compare_file(void);

/* ---- compare_run.c ---- */

/* Makes a run of a kind; counts: it is measured. If the run goes wrong, kind->wrong says why. */
void compare_run(struct compare *all, struct compare_kind *kind, bool counts);
/* Returns the processor time in u, s. */
double compare_cpu(const struct rusage *u);
/* Returns how much longer a small program takes with Kochab than without, s of wall time. */
double compare_start_cost(struct compare *all);

/* ---- compare_others.c ---- */

/* Sets all->others, between the two calls. It stays 0 where /proc does not tell. */
void compare_begin_others(struct compare *all);
void compare_end_others(struct compare *all);

/* ---- compare_show.c ---- */

/* Returns whether the output of the kinds is compared, and equal. */
bool compare_same(const struct compare *all);
/* Prints all and returns the exit code. */
int compare_show(const struct compare *all);

#endif
