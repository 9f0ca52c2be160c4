/* tool/bench_run.c - measures cells: starts a process for each measurement, reads its JSON lines,
 * and goes round all cells in each run (run 1 of every method, run 2 of every method ...), so that
 * a noisy moment of the machine does not fall on a single method. A measurement that does not end
 * in time is killed, and the cell is noted as not finishing.
 * Caller: tool/bench.c; a single kernel thread. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "bench_child.h"

enum { WORDS = 16, OUTPUT = 4096 };

static const double patience = 60; /* seconds, beside a multiple of the measurement */

/* ---- the child's side of fork ---- */

int bench_confine(unsigned cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < cpus; i++)
		CPU_SET(bench_cpu(i), &set);
	return sched_setaffinity(0, sizeof set, &set) ? errno : 0;
}

static void set_environment(const struct bench_cell *cell)
{
	char settings[4 * BENCH_WORD], vps[16];
	char *rest = settings, *word;

	if (cell->method->flags & BENCH_KERNEL)
		return;
	snprintf(vps, sizeof vps, "%u", cell->c.vps);
	setenv("KOCHAB_VPS", vps, 1);
	snprintf(settings, sizeof settings, "%s", cell->method->settings ? cell->method->settings : "");
	while ((word = strsep(&rest, " ")))
		if (strchr(word, '=')) {
			*strchr(word, '=') = 0;
			setenv(word, word + strlen(word) + 1, 1);
		}
}

static void peer_path(char *path, size_t size, const char *self, const char *peer)
{
	const char *slash = strrchr(self, '/');

	snprintf(path, size, "%.*s/shim/%s", slash ? (int)(slash - self) : 1, slash ? self : ".", peer);
}

int bench_peer_there(const char *self, const char *peer)
{
	char path[4096];

	peer_path(path, sizeof path, self, peer);
	return access(path, X_OK) == 0;
}

static void start_measurement(const struct bench_cell *cell, double seconds, const char *self)
{
	char threads[16], vps[16], size[16], length[32], method[BENCH_WORD], peer[4096];
	const char *argv[WORDS] = { self };
	int n = 0;

	snprintf(threads, sizeof threads, "%u", cell->c.threads);
	snprintf(vps, sizeof vps, "%u", cell->c.vps);
	snprintf(size, sizeof size, "%u", cell->c.size);
	snprintf(length, sizeof length, "%g", seconds);
	/* without the part that the environment tells: "/process" */
	snprintf(method, sizeof method, "%.*s", (int)strcspn(cell->method->name, "/"),
		cell->method->name);
	set_environment(cell);
	if (cell->method->flags & BENCH_KERNEL)
		bench_confine(cell->c.vps);
	if (cell->method->flags & BENCH_PEER) {
		peer_path(peer, sizeof peer, self, cell->method->name);
		/* its messages are not ours */
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		execl(peer, peer, cell->bench->name, threads, vps, length, (char *)NULL);
		_exit(127);
	}
	n = 1;
	if (cell->method->as) {
		argv[n++] = "run";
		argv[n++] = "--";
		argv[n++] = self;
	}
	argv[n++] = "bench";
	argv[n++] = "--measure";
	argv[n++] = cell->bench->name;
	argv[n++] = method;
	argv[n++] = threads;
	argv[n++] = vps;
	argv[n++] = cell->c.spread ? "spread" : "free";
	argv[n++] = length;
	argv[n++] = size;
	argv[n] = NULL;
	execv(self, (char **)(void *)argv);
	_exit(127);
}

/* ---- the parent's side ---- */

/* Reads to the end of the pipe. Returns 0, or ETIMEDOUT after `limit` seconds. */
static int read_all(int fd, char *buf, size_t size, double limit)
{
	double end = bench_now() + limit;
	size_t have = 0;

	for (;;) {
		struct pollfd p = { fd, POLLIN, 0 };
		double left = end - bench_now();

		if (left <= 0)
			return ETIMEDOUT;
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		ssize_t n = read(fd, buf + have, size - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
		buf[have] = 0;
	}
	return 0;
}

/* Waits for the child, at most 2 s after its output has ended. */
static int reap_measurement(pid_t pid, int *status)
{
	for (int i = 0; i < 2000; i++) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return 0;
		usleep(1000);
	}
	return ETIMEDOUT;
}

static const char *json_text_of(const char *line, const char *key, char *out, size_t size)
{
	const char *at = strstr(line, key);
	size_t n = 0;

	out[0] = 0;
	if (!at)
		return NULL;
	for (at += strlen(key); *at == ':' || *at == ' ' || *at == '"'; at++)
		;
	while (at[n] && at[n] != '"' && at[n] != '\n' && n + 1 < size)
		n++;
	memcpy(out, at, n);
	out[n] = 0;
	return out;
}

static void take_line(struct bench_cell *cell, const char *line)
{
	char metric[BENCH_WORD], unit[BENCH_WORD], value[BENCH_WORD];
	struct bench_series *s = cell->series;

	if (json_text_of(line, "\"note\"", cell->note, sizeof cell->note))
		return;
	if (!json_text_of(line, "\"metric\"", metric, sizeof metric) ||
		!json_text_of(line, "\"value\"", value, sizeof value))
		return;
	json_text_of(line, "\"unit\"", unit, sizeof unit);
	for (; s < cell->series + BENCH_METRICS; s++)
		if (s->count == 0 || strcmp(s->metric, metric) == 0)
			break;
	if (s == cell->series + BENCH_METRICS || s->count == BENCH_RUNS)
		return;
	snprintf(s->metric, sizeof s->metric, "%s", metric);
	snprintf(s->unit, sizeof s->unit, "%s", unit);
	s->value[s->count++] = strtod(value, NULL);
}

static void take_output(struct bench_cell *cell, char *out)
{
	char *line;

	while ((line = strsep(&out, "\n")))
		if (line[0] == '{')
			take_line(cell, line);
}

static void judge_measurement(struct bench_cell *cell, int late, int status, const char *why)
{
	if (late) {
		snprintf(cell->note, sizeof cell->note, "%s", why);
		cell->failed = !(cell->method->flags & BENCH_CORES_1);
	} else if (WIFSIGNALED(status)) {
		snprintf(cell->note, sizeof cell->note, "killed by signal %d", WTERMSIG(status));
		cell->failed = 1;
	} else if (WEXITSTATUS(status) == BENCH_EXIT_SKIP) {
		if (!cell->note[0])
			snprintf(cell->note, sizeof cell->note, "not possible here");
	} else if (WEXITSTATUS(status)) {
		snprintf(cell->note, sizeof cell->note, "failed with exit status %d", WEXITSTATUS(status));
		cell->failed = 1;
	}
	cell->over = late || WIFSIGNALED(status) || WEXITSTATUS(status);
	if (cell->method->flags & BENCH_PEER)
		cell->failed = 0; /* shown in the table, not an error of this run */
}

static void measure_once(struct bench_cell *cell, double seconds, const char *self)
{
	double limit = patience + 20 * seconds;
	char out[OUTPUT] = "", why[BENCH_WORD];
	int fd[2], late, status = 0;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) || (pid = fork()) < 0) {
		snprintf(cell->note, sizeof cell->note, "cannot start a process: %s", strerror(errno));
		cell->over = cell->failed = 1;
		return;
	}
	if (pid == 0) {
		setpgid(0, 0);
		dup2(fd[1], STDOUT_FILENO);
		start_measurement(cell, seconds, self);
	}
	close(fd[1]);
	late = read_all(fd[0], out, sizeof out, limit);
	snprintf(why, sizeof why, "no end within %.0f s", limit);
	if (late || reap_measurement(pid, &status)) {
		if (!late)
			snprintf(why, sizeof why, "did not exit after its result");
		late = 1;
		if (!(cell->method->flags & (BENCH_KERNEL | BENCH_PEER)) && kill(pid, SIGQUIT) == 0)
			usleep(500000); /* Kochab prints on standard error where every thread stands */
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	close(fd[0]);
	take_output(cell, out);
	judge_measurement(cell, late, status, why);
}

static void say_progress(const struct bench_cell *cell, unsigned run, unsigned runs)
{
	if (cell)
		fprintf(stderr, "\r\033[Krun %u of %u: %s %s, %u threads, %u VPs", run + 1, runs,
			cell->bench->name, cell->method->name, cell->c.threads, cell->c.vps);
	else
		fputs("\r\033[K", stderr);
	fflush(stderr);
}

void bench_measure(struct bench_cells *all, unsigned runs, double seconds, int say,
	const char *self)
{
	for (unsigned run = 0; run < runs; run++)
		for (size_t i = 0; i < all->count; i++) {
			struct bench_cell *cell = &all->cell[i];

			if (cell->over)
				continue;
			if (say)
				say_progress(cell, run, runs);
			measure_once(cell,
				cell->bench->seconds > seconds ? cell->bench->seconds : seconds, self);
		}
	if (say)
		say_progress(NULL, 0, 0);
}
