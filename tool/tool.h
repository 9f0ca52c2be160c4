/* tool/tool.h - shared by the parts of the command `kochab`. Functions that can fail print the
 * reason on standard error. */
#ifndef KOCHAB_TOOL_H
#define KOCHAB_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

/* exit codes; 126 and 127 are the shells' */
enum {
	TOOL_OK = 0,
	TOOL_FAILED = 1,
	TOOL_USAGE = 2,
	TOOL_CANNOT_RUN = 126,
	TOOL_NOT_FOUND = 127,
	/* no exit codes: the program runs without the drop-in; its children run with it, or, with
	 * TOOL_ALONE, without */
	TOOL_PLAINLY = 256,
	TOOL_ALONE,
};

/* The drop-in is for glibc. */
#ifdef __GLIBC__
enum { TOOL_HAS_DROP_IN = true };
#else
enum { TOOL_HAS_DROP_IN = false };
#endif

/* Each takes its own argv (argv[0] is the subcommand's name) and returns the exit code. */
int tool_run(int argc, char **argv);
int tool_options(int argc, char **argv);
int tool_doctor(int argc, char **argv);
int tool_dump(int argc, char **argv);
int tool_space(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_ps(int argc, char **argv);
int tool_stack(int argc, char **argv);
int tool_top(int argc, char **argv);
/* The program of tool_doctor_libc made a thread and ended well, on virtual processors that are
 * kernel threads, processes. */
enum { TOOL_RUNS_THREADS = 1, TOOL_RUNS_PROCESSES = 2 };
/* Asks about libc's inside, for tool_doctor, and tells each answer as a line. The second is the
 * subcommand that is run for that. */
typedef void tool_told(const char *name, bool found, const char *text);
unsigned tool_doctor_libc(tool_told *tell); /* returns TOOL_RUNS_* */
int tool_make_thread(void);
int kochab_bench(int argc, char **argv) __attribute__((weak));

/* Returns CLOCK_MONOTONIC in seconds. */
static inline double tool_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Prints "kochab: ..." on standard error. */
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Text from outside, made harmless for its destination: text.c. Tool_plain is for a terminal: in
 * `to`, bytes that a terminal would obey become \xNN. It reads at most `most` bytes and leaves out
 * what does not fit. Returns `to`. */
const char *tool_plain(char *to, size_t size, const char *text, size_t most);
/* Print a JSON string, quotes included, in which bytes that are no UTF-8 become U+FFFD; and a
 * number: null if JSON has no such number. */
void tool_json(FILE *out, const char *text);
void tool_json_string(const char *text);
void tool_json_number(FILE *out, double x);
/* Prints text for the body or an attribute of a page. */
void tool_html(FILE *out, const char *text);

/* Writes the command's own file to buf, also where there is no /proc. Returns false if it is not
 * known. */
bool tool_self(char *buf, size_t size);
/* Takes an option --name, --name=value or --name value at argv[*i]: it becomes a variable of the
 * environment. Returns false after printing the reason. */
bool tool_take_option(const char *command, int argc, char **argv, int *i);
/* Returns the heading of a tier of options in lists (enum kbi_option_tier). */
const char *tool_tier_heading(unsigned tier);
/* Checks that the program may use the processors of the option bind, which the library would only
 * check at the first thread; and warns of values that are probably mistakes. Returns false after
 * printing the reason. */
bool tool_check_options(const char *command);
/* Takes the drop-in out of LD_PRELOAD. */
void tool_drop_preload(void);
/* Writes the path of libkochab-posix.so.0 to buf. Returns false, after printing so, if there is
 * none. */
bool tool_find_drop_in(char *buf, size_t size);
/* Returns true if the program is linked with Kochab, itself or through a library; if linked
 * statically, as far as its symbols tell. */
bool tool_is_linked(const char *program);
/* Writes the path of the layer over the program's MPI, which lies beside the drop-in, to buf.
 * Returns false if there is none, or with --mpi no. */
bool tool_find_mpi(const char *program, const char *drop_in, char *buf, size_t size);
/* Sets the number of virtual processors, unless it is given, to a rank's share where the machine's
 * ranks may all run on all processors. Returns false if there is no memory. */
bool tool_share_processors(void);
/* Checks that `program` (a path) can run with the drop-in. Returns 0; or, after printing the
 * reason, TOOL_PLAINLY, TOOL_ALONE or the exit code. */
int tool_check_program(const char *program);
/* Writes the path that execvp would take to buf. Returns 0, or the exit code after printing the
 * reason. */
int tool_look_up(const char *name, char *buf, size_t size);
/* Returns true if PATH has a program of that name. */
bool tool_is_in_path(const char *name);

#endif
