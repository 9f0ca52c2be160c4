/* tool/compare_run.c - makes a run of a kind: a program to its end, or a server under a load.
 * Judges whether exit status and output are the same as on kernel threads. Called by
 * tool/compare.c. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare.h"
#include "tool.h"

enum { WORDS = 4096, CHUNK = 65536, LINE = 80, TAIL = 1200 };

static const double for_ever = 1e8, /* s */
	patience = 60, factor = 20, /* limit of a run on Kochab: s, plus times the longest plain run */
	server_patience = 10,       /* after SIGTERM, s */
	between = 0.02;             /* between questions whether the server is ready, s */

/* Appends to a text. */
static void __attribute__((format(printf, 2, 3))) append_text(char text[COMPARE_TEXT],
	const char *format, ...)
{
	size_t n = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + n, COMPARE_TEXT - n, format, args);
	va_end(args);
}

/* Reads the end of a file, whole lines if there are any. */
static void read_tail(int fd, char to[TAIL])
{
	off_t size = lseek(fd, 0, SEEK_END), at = size > TAIL - 1 ? size - (TAIL - 1) : 0;
	ssize_t n = size > 0 ? pread(fd, to, TAIL - 1, at) : 0;
	char *line;

	to[n > 0 ? n : 0] = '\0';
	line = at > 0 ? strchr(to, '\n') : NULL;
	if (line != NULL && line[1] != '\0')
		memmove(to, line + 1, strlen(line));
}

static void add_tail(char text[COMPARE_TEXT], const char *title, int fd)
{
	char tail[TAIL];

	read_tail(fd, tail);
	if (*tail != '\0')
		append_text(text, "\n%s:\n%s", title, tail);
}

static const char *ended_how(int status, char *to, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(to, size, "ended by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		snprintf(to, size, "exit status %d", WEXITSTATUS(status));
	return to;
}

double compare_cpu(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
		1e-6 * (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static void take_figures(struct compare_kind *kind, double wall, const struct rusage *u)
{
	kind->at[COMPARE_WALL][kind->n] = wall;
	kind->at[COMPARE_CPU][kind->n] = compare_cpu(u);
	kind->at[COMPARE_MEMORY][kind->n] = 1024. * (double)u->ru_maxrss;
	kind->at[COMPARE_WAITS][kind->n] = (double)u->ru_nvcsw;
	kind->at[COMPARE_FORCED][kind->n] = (double)u->ru_nivcsw;
	kind->n++;
}

/* ---- the output ---- */

/* Returns the line that has byte `at` of a file, as it may be shown. */
static const char *line_at(int fd, off_t at, char *shown, size_t size)
{
	off_t from = at > LINE / 2 ? at - LINE / 2 : 0;
	char text[LINE + 1], *begin = text;
	ssize_t n = pread(fd, text, LINE, from);

	text[n > 0 ? n : 0] = '\0';
	if (n <= at - from)
		return "(its end)";
	for (char *c = text; c < text + (at - from); c++)
		begin = *c == '\n' ? c + 1 : begin;
	n -= begin - text;
	tool_plain(shown, size, begin, strcspn(begin, "\n"));
	return shown;
}

/* Appends to `text` where two files differ. Returns false if they are the same. */
static bool find_difference(int one, int other, char text[COMPARE_TEXT])
{
	static char a[CHUNK], b[CHUNK];
	char one_line[4 * LINE + 8], other_line[4 * LINE + 8];
	unsigned long line = 1;
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(one, a, CHUNK, at), m = pread(other, b, CHUNK, at), i = 0;

		if (n < 0 || m < 0) {
			append_text(text, "cannot be read again: %s", strerror(errno));
			return true;
		}
		for (; i < n && i < m && a[i] == b[i]; i++)
			line += a[i] == '\n';
		at += i;
		if (i < n || i < m)
			break;
		if (n == 0)
			return false;
	}
	append_text(text,
	"standard output differs from byte %lld, line %lu, on\n  kernel threads: %s\n"
	"  Kochab:         %s", (long long)at + 1, line, line_at(one, at, one_line, sizeof(one_line)),
	line_at(other, at, other_line, sizeof(other_line)));
	return true;
}

/* Compares a run's output with the first run's. Closes `out`, or keeps it as the reference for all
 * later runs. */
static void judge_output(struct compare *all, struct compare_kind *kind, int out)
{
	char text[COMPARE_TEXT] = "";

	if (all->reference < 0) {
		all->reference = out;
		return;
	}
	if (kind->plain)
		all->unsteady |= !all->unsteady && find_difference(all->reference, out, text);
	else if (*kind->difference == '\0')
		find_difference(all->reference, out, kind->difference);
	close(out);
}

/* ---- a program ---- */

static void judge_status(struct compare *all, struct compare_kind *kind, int status, int err)
{
	char this[128], other[128];

	if (!kind->has_status) {
		kind->has_status = true;
		kind->status = status;
	}
	ended_how(status, this, sizeof(this));
	if (status != kind->status)
		append_text(kind->wrong, "%s, in a run before %s", this,
			ended_how(kind->status, other, sizeof(other)));
	else if (status != all->kind[0].status)
		append_text(kind->wrong, "%s, on kernel threads %s", this,
			ended_how(all->kind[0].status, other, sizeof(other)));
	else if (WIFSIGNALED(status))
		append_text(kind->wrong, "%s", this);
	if (*kind->wrong != '\0')
		add_tail(kind->wrong, "it wrote to standard error", err);
}

static double limit_of(const struct compare *all, const struct compare_kind *kind)
{
	if (all->timeout > 0)
		return all->timeout;
	return kind->plain ? for_ever : patience + factor * all->longest;
}

/* Ends a program that has not ended in time. On Kochab, SIGQUIT makes it print where its threads
 * are. */
static void end_late_program(struct compare_child *c, struct compare_kind *kind, double limit,
	int err)
{
	if (!kind->plain) {
		kill(c->pid, SIGQUIT);
		compare_wait(c, 1);
	}
	compare_end(c, 0);
	append_text(kind->wrong, "no end within %.3g s", limit);
	add_tail(kind->wrong, "it wrote to standard error", err);
}

static int open_input(const struct compare *all)
{
	return open(all->input != NULL ? all->input : "/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Sets argv to the program's words, behind `kochab run --` where it is on Kochab. */
static bool command_of(const struct compare *all, const struct compare_kind *kind,
	char *argv[WORDS])
{
	size_t n = 0;

	if (!kind->plain) {
		argv[n++] = (char *)(void *)all->self;
		argv[n++] = "run";
		argv[n++] = "--";
	}
	for (char **word = all->argv; *word != NULL; word++) {
		if (n == WORDS - 1)
			return false;
		argv[n++] = *word;
	}
	argv[n] = NULL;
	return true;
}

static bool start_program(struct compare *all, struct compare_kind *kind, struct compare_child *c,
	const int file[3])
{
	char *argv[WORDS];
	int e = E2BIG;

	for (int i = 0; i < 3; i++)
		if (file[i] < 0) {
			append_text(kind->wrong, "%s: %s",
				i == 0 ? all->input : "a file for its output", strerror(errno));
			return false;
		}
	if (command_of(all, kind, argv))
		e = compare_start(c, argv, file, kind);
	if (e != 0)
		append_text(kind->wrong, "%s: %s", all->argv[0], strerror(e));
	return e == 0;
}

static void run_program(struct compare *all, struct compare_kind *kind, bool counts)
{
	int file[3] = { open_input(all), compare_file(), compare_file() };
	double limit = limit_of(all, kind);
	struct compare_child c;
	bool keeps = false;

	if (start_program(all, kind, &c, file)) {
		if (compare_wait(&c, limit)) {
			judge_status(all, kind, c.status, file[2]);
			if (*kind->wrong == '\0') {
				judge_output(all, kind, file[1]);
				keeps = true;
			}
			if (c.left > 0 && *kind->note == '\0')
				append_text(kind->note,
					"leaves processes behind, which were ended");
			if (kind->plain && c.took > all->longest)
				all->longest = c.took;
			if (counts)
				take_figures(kind, c.took, &c.usage);
		} else if (compare_stopped()) {
			compare_end(&c, 0);
		} else {
			end_late_program(&c, kind, limit, file[2]);
		}
	}
	close(file[0]);
	close(file[2]);
	if (!keeps)
		close(file[1]);
}

/* ---- a server under a load ---- */

static const struct compare_kind plainly = { .plain = true };

static int start_shell(struct compare_child *c, const char *command, int out)
{
	char *argv[] = { "/bin/sh", "-c", (char *)(void *)command, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), e;

	e = null < 0 ? errno : compare_start(c, argv,
		(int[]){ null, out < 0 ? null : out, out < 0 ? null : out }, &plainly);
	close(null);
	return e;
}

static void server_ended(struct compare_kind *kind, const char *when, int status, int said)
{
	char text[128];

	append_text(kind->wrong, "the server ended %s: %s", when,
		ended_how(status, text, sizeof(text)));
	add_tail(kind->wrong, "it wrote", said);
}

static bool await_ready_server(struct compare *all, struct compare_kind *kind,
	struct compare_child *server, int said)
{
	double end = tool_now() + all->ready_seconds;
	struct compare_child ask;

	while (!compare_stopped()) {
		double left = end - tool_now();

		if (compare_wait(server, 0)) {
			server_ended(kind, "before it was ready", server->status, said);
			return false;
		}
		if (left <= 0) {
			append_text(kind->wrong, "the server was not ready within %.3g s",
				all->ready_seconds);
			add_tail(kind->wrong, "it wrote", said);
			return false;
		}
		if (start_shell(&ask, all->ready, -1) != 0) {
			append_text(kind->wrong, "/bin/sh: cannot be started");
			return false;
		}
		if (!compare_wait(&ask, left))
			compare_end(&ask, 0);
		else if (ask.status == 0)
			return true;
		compare_wait(server, between);
	}
	return false;
}

/* Runs the load, keeps the end of its output in kind->said, and returns its time, s. Negative:
 * wrong, or stopped. */
static double run_load(struct compare *all, struct compare_kind *kind,
	struct compare_child *server, int said)
{
	double limit = limit_of(all, kind), end = tool_now() + limit, took = -1;
	int out = compare_file(), e = out < 0 ? errno : 0;
	struct compare_child c;
	char text[128];

	if (e == 0)
		e = start_shell(&c, all->load, out);
	if (e != 0) {
		append_text(kind->wrong, "the load: %s", strerror(e));
		close(out);
		return took;
	}
	while (!compare_wait(&c, 0.2) && !compare_stopped() && !compare_wait(server, 0) &&
		tool_now() < end)
		;
	if (c.ended && c.status == 0 && !compare_wait(server, 0)) {
		took = c.took;
		*kind->said = '\0';
		read_tail(out, kind->said);
	} else if (!compare_stopped()) {
		if (server->ended) {
			server_ended(kind, "during the load", server->status, said);
		} else if (!c.ended) {
			kill(server->pid, SIGQUIT); /* on Kochab it says where its threads are */
			compare_wait(server, 1);
			append_text(kind->wrong, "the load: no end within %.3g s", limit);
			add_tail(kind->wrong, "the server wrote", said);
		} else {
			append_text(kind->wrong, "the load: %s",
				ended_how(c.status, text, sizeof(text)));
		}
		add_tail(kind->wrong, "the load wrote", out);
	}
	compare_end(&c, 0);
	close(out);
	return took;
}

/* Servers end that way when they get SIGTERM. */
static bool is_sigterm_end(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGTERM;
	return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 128 + SIGTERM;
}

static void judge_server(struct compare *all, struct compare_kind *kind,
	const struct compare_child *server, bool willing)
{
	char this[128], other[128];

	if (!kind->has_status) {
		kind->has_status = true;
		kind->status = server->status;
	}
	if (*kind->note != '\0')
		return;
	if (!willing)
		append_text(kind->note, "did not end within %.3g s of SIGTERM: was killed",
			server_patience);
	else if (server->status != all->kind[0].status)
		append_text(kind->note, "after SIGTERM: %s, on kernel threads: %s",
			ended_how(server->status, this, sizeof(this)),
			ended_how(all->kind[0].status, other, sizeof(other)));
	else if (!is_sigterm_end(server->status))
		append_text(kind->note, "the server ended after SIGTERM with %s",
			ended_how(server->status, this, sizeof(this)));
}

static void run_server(struct compare *all, struct compare_kind *kind, bool counts)
{
	int said = compare_file(), file[3] = { open_input(all), said, said };
	struct compare_child server;
	double took = -1;
	bool willing;

	if (start_program(all, kind, &server, file)) {
		if (await_ready_server(all, kind, &server, said))
			took = run_load(all, kind, &server, said);
		willing = compare_end(&server, server_patience);
		if (took >= 0) {
			judge_server(all, kind, &server, willing);
			if (kind->plain && took > all->longest)
				all->longest = took;
			if (counts)
				take_figures(kind, took, &server.usage);
		}
	}
	close(file[0]);
	close(said);
}

/* ---- */

void compare_run(struct compare *all, struct compare_kind *kind, bool counts)
{
	if (all->load != NULL)
		run_server(all, kind, counts);
	else
		run_program(all, kind, counts);
	kind->over = *kind->wrong != '\0';
}

double compare_start_cost(struct compare *all)
{
	enum { ROUNDS = 5 };
	char *plain[] = { all->self, "--version", NULL },
		*ours[] = { all->self, "run", "--", all->self, "--version", NULL };
	static const struct compare_kind kochab = { .plain = false };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), file[3] = { null, null, null };
	double least[2] = { for_ever, for_ever };

	for (int i = 0; i < 2 * ROUNDS && null >= 0 && !compare_stopped(); i++) {
		struct compare_child c;

		if (compare_start(&c, i % 2 ? ours : plain, file, i % 2 ? &kochab : &plainly) != 0)
			break;
		if (!compare_wait(&c, patience))
			compare_end(&c, 0);
		if (c.took < least[i % 2])
			least[i % 2] = c.took;
	}
	close(null);
	return least[0] < for_ever && least[1] < for_ever ? least[1] - least[0] : 0;
}
