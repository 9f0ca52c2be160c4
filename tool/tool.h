/* tool/tool.h - what the parts of the command `kochab` share. */
#ifndef KOCHAB_TOOL_H
#define KOCHAB_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

/* Exit codes; 126 and 127 are the shells'. */
enum {
	TOOL_OK = 0,
	TOOL_FAILED = 1,
	TOOL_USAGE = 2,
	TOOL_CANNOT_RUN = 126,
	TOOL_NOT_FOUND = 127,
	/* no exit codes: the program runs without the drop-in, and its children run with it, or without, too */
	TOOL_PLAINLY = 256,
	TOOL_ALONE,
};

/* The drop-in is for glibc. */
#ifdef __GLIBC__
enum { TOOL_HAS_DROP_IN = true };
#else
enum { TOOL_HAS_DROP_IN = false };
#endif

/* Each takes its own argv (argv[0] is the command's name) and returns the exit code. */
int tool_run(int argc, char **argv);
int tool_options(int argc, char **argv);
int tool_doctor(int argc, char **argv);
int tool_dump(int argc, char **argv);
int tool_space(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_ps(int argc, char **argv);
int tool_stack(int argc, char **argv);
int tool_top(int argc, char **argv);
/* Made a thread and ended well, on virtual processors that are kernel threads, processes. */
enum { TOOL_RUNS_THREADS = 1, TOOL_RUNS_PROCESSES = 2 };
/* The questions about libc's inside, for tool_doctor: a line each. And the command that is run to that end. */
typedef void tool_told(const char *name, bool found, const char *text);
unsigned tool_doctor_libc(tool_told *tell); /* TOOL_RUNS_* */
int tool_make_thread(void);
int kochab_bench(int argc, char **argv) __attribute__((weak));

/* CLOCK_MONOTONIC, s. */
static inline double tool_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* "kochab: ..." on standard error. */
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Text from outside, made harmless for its destination: text.c. For a terminal, in `to`: bytes that a terminal would
 * obey are \xNN, at most `most` bytes are read, and the rest that does not fit is left out. Returns `to`. */
const char *tool_plain(char *to, size_t size, const char *text, size_t most);
/* As a JSON string, quotes included; bytes that are no UTF-8 are U+FFFD. And a number: null if JSON has no such number. */
void tool_json(FILE *out, const char *text);
void tool_json_string(const char *text);
void tool_json_number(FILE *out, double x);
/* In the text or an attribute of a page. */
void tool_html(FILE *out, const char *text);

/* The command's own file in buf, also where there is no /proc; false: nobody knows. */
bool tool_self(char *buf, size_t size);
/* argv[*i] is --name, --name=value or --name value: the knob becomes a variable of the environment. False: said why not. */
bool tool_take_option(const char *command, int argc, char **argv, int *i);
/* May the program use the processors of the option bind? The library would say so only at the first thread. False: said.
 * And warns of values that were hardly meant. */
bool tool_check_options(const char *command);
/* Takes the drop-in out of LD_PRELOAD. */
void tool_drop_preload(void);
/* Path of libkochab-posix.so.0 in buf; false: it is nowhere (said on standard error). */
bool tool_find_drop_in(char *buf, size_t size);
/* The program is linked with Kochab, itself or through a library; linked statically, as far as its symbols tell. */
bool tool_is_linked(const char *program);
/* The layer over the MPI that the program is linked with, beside the drop-in, in buf. False: there is none, or --mpi no. */
bool tool_find_mpi(const char *program, const char *drop_in, char *buf, size_t size);
/* Where a rank may run on all processors, as the machine's other ranks, its virtual processors are its share, unless the
 * number is given. False: no memory. */
bool tool_share_processors(void);
/* 0; or, after saying why `program` (a path) cannot run with the drop-in, TOOL_PLAINLY, TOOL_ALONE or the exit code. */
int tool_check_program(const char *program);
/* The path that execvp would take, in buf; 0, or the exit code after saying what is wrong. */
int tool_look_up(const char *name, char *buf, size_t size);
/* PATH has a program of that name. */
bool tool_is_in_path(const char *name);

#endif
