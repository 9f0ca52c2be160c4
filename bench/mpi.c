/* bench/mpi.c - threads that wait for MPI: two ranks of bench/mpi/load.c, for each MPI that load.c
 * was built for, on kernel threads, on the drop-in alone, and with the layer over MPI in between.
 * The measuring process starts mpirun, reads a line for each metric and ends mpirun when no line
 * comes for long: a row has all its metrics, or gives the reason.
 *
 * One thread: with MPI_Init, and (metrics with -mt) with MPI_THREAD_MULTIPLE, which all further
 * rows have.
 * round-trip: all threads at once each send a word to their partner in the second rank and get a
 * word back; wall time by threads.
 * hop: a word goes through all threads of both ranks. message: one way, in windows of 64.
 * compute-N: pieces of N us, after each an exchange with the partner: wall time divided by the time
 * of the work alone.
 * collective: an MPI_Allreduce on a communicator for each thread; wall time by threads.
 * halo: a sweep of a stencil with a thread a tile; halo-omp: by OpenMP's team with barriers. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "tool.h"

enum { RANKS = 2, FEW = 4, MANY = 32, ARGS = 32, LINE = 512 };
enum { SILENCE = 4, SILENCE_KOCHAB = 30, END = 5 }; /* s: without a line, and until mpirun has ended its ranks */

enum way { KERNEL, NOLAYER, KOCHAB };
static const char *const way_name[] = { "kernel", "nolayer", "kochab" };

static struct {
	const char *mpi;
	enum way way;
	const struct bench_case *c;
	pid_t mpirun;
	int from;
	char text[LINE], last[LINE]; /* the line read in part; the last line without a figure */
	size_t have;
} r;

/* ---- MPIs that are there --------------------------------------------------------------------- */

static void load_path(char *path, size_t size, const char *self, const char *mpi)
{
	const char *slash = strrchr(self, '/');

	snprintf(path, size, "%.*s/bench/mpi/load.%s", slash ? (int)(slash - self) : 1, slash ? self : ".", mpi);
}

static int in_path(const char *command)
{
	const char *path = getenv("PATH");

	for (const char *p = path; p && *p; p += strcspn(p, ":"), p += *p == ':') {
		char file[PATH_MAX];

		snprintf(file, sizeof file, "%.*s/%s", (int)strcspn(p, ":"), p, command);
		if (access(file, X_OK) == 0)
			return 1;
	}
	return 0;
}

static const char *why_absent(char *why, size_t size, const char *mpi, const char *self)
{
	char load[PATH_MAX], mpirun[BENCH_WORD];

	load_path(load, sizeof load, self, mpi);
	snprintf(mpirun, sizeof mpirun, "mpirun.%s", mpi);
	if (access(load, X_OK))
		snprintf(why, size, "%s skipped: its load is not built (make in the sources, with mpicc.%s)", mpi, mpi);
	else if (!in_path(mpirun))
		snprintf(why, size, "%s skipped: no %s", mpi, mpirun);
	else
		return NULL;
	return why;
}

static const char *absent(const struct bench_method *m, const char *self)
{
	static char openmpi[128], mpich[128];

	return m->name[0] == 'o' ? why_absent(openmpi, sizeof openmpi, "openmpi", self)
				 : why_absent(mpich, sizeof mpich, "mpich", self);
}

/* ---- starting it ----------------------------------------------------------------------------- */

/* A rank has its share of the virtual processors. More ranks than processors, and root, must be
 * allowed to Open MPI. */
static void set_environment(void)
{
	char vps[16];

	snprintf(vps, sizeof vps, "%u", r.c->vps / RANKS ? r.c->vps / RANKS : 1);
	if (r.way != KERNEL)
		setenv("KOCHAB_VPS", vps, 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
	setenv("OMPI_MCA_btl", "self,vader", 0);
	setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
}

static void exec_load(const char *level, const char *metrics)
{
	char self[PATH_MAX], load[PATH_MAX], mpirun[BENCH_WORD], threads[16], seconds[32];
	const char *argv[ARGS];
	int n = 0;

	if (!tool_self(self, sizeof self))
		_exit(127);
	load_path(load, sizeof load, self, r.mpi);
	snprintf(mpirun, sizeof mpirun, "mpirun.%s", r.mpi);
	snprintf(threads, sizeof threads, "%u", r.c->threads);
	snprintf(seconds, sizeof seconds, "%g", r.c->seconds / 6); /* there are many metrics */
	argv[n++] = mpirun;
	argv[n++] = "-n";
	argv[n++] = "2";
	if (r.way != KERNEL) {
		argv[n++] = self;
		argv[n++] = "run";
		argv[n++] = "--mpi";
		argv[n++] = r.way == NOLAYER ? "no" : "auto";
		argv[n++] = "--";
	}
	argv[n++] = load;
	argv[n++] = way_name[r.way];
	argv[n++] = level;
	argv[n++] = metrics;
	argv[n++] = threads;
	argv[n++] = seconds;
	argv[n] = NULL;
	set_environment();
	execvp(mpirun, (char **)(void *)argv);
	_exit(127);
}

static void start(const char *level, const char *metrics)
{
	int ends[2];
	pid_t parent = getpid();

	if (pipe2(ends, O_CLOEXEC) || (r.mpirun = fork()) < 0)
		bench_fail("cannot start mpirun: %s", strerror(errno));
	if (r.mpirun == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* it ends its ranks */
		if (getppid() != parent)
			_exit(127);
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		exec_load(level, metrics);
	}
	close(ends[1]);
	r.from = ends[0];
	r.have = 0;
	r.last[0] = 0;
}

/* Its exit status. */
static int finish(int signal)
{
	double end = bench_now() + END;
	int status = 0;

	if (signal)
		kill(r.mpirun, signal);
	while (waitpid(r.mpirun, &status, WNOHANG) == 0) {
		if (bench_now() > end)
			kill(r.mpirun, SIGKILL);
		usleep(1000);
	}
	close(r.from);
	return status;
}

/* ---- its lines ------------------------------------------------------------------------------- */

/* Takes a whole line out of r.text; 0: there is none yet. */
static int take_line(char *line)
{
	char *end = memchr(r.text, '\n', r.have);
	size_t n;

	if (!end && r.have < sizeof r.text - 1)
		return 0;
	n = end ? (size_t)(end - r.text) : r.have;
	memcpy(line, r.text, n);
	line[n] = 0;
	n += !!end;
	r.have -= n;
	memmove(r.text, r.text + n, r.have);
	return 1;
}

/* Kernel threads may take very long; the layer must not, but the machine may be busy. */
static int patience(void)
{
	return r.way == KOCHAB ? SILENCE_KOCHAB : SILENCE;
}

/* 0; ETIMEDOUT; ENODATA: no more. */
static int next_line(char *line)
{
	double end = bench_now() + patience();

	while (!take_line(line)) {
		struct pollfd p = { r.from, POLLIN, 0 };
		double left = end - bench_now();
		ssize_t n;

		if (left <= 0)
			return ETIMEDOUT;
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		n = read(r.from, r.text + r.have, sizeof r.text - 1 - r.have);
		if (n <= 0)
			return ENODATA;
		r.have += (size_t)n;
	}
	return 0;
}

/* "figure METRIC UNIT VALUE" or "none METRIC WHY" of the metric that is next. 1: it was. */
static int take_figure(const char *line, const char *metric)
{
	char name[BENCH_WORD], unit[BENCH_WORD];
	double value;
	int at = 0;

	if (sscanf(line, "figure %63s %63s %lf", name, unit, &value) == 3 && strcmp(name, metric) == 0 && value > 0) {
		bench_report(metric, unit, value);
		return 1;
	}
	if (sscanf(line, "none %63s %n", name, &at) == 1 && strcmp(name, metric) == 0) {
		bench_note("%s: %s", metric, line + at);
		return 1;
	}
	if (line[0])
		snprintf(r.last, sizeof r.last, "%s", line);
	return 0;
}

static void give_up(const char *metric)
{
	finish(SIGTERM);
	if (r.way == KOCHAB)
		bench_fail("%s: no end in %d s; it said: %s", metric, patience(), r.last[0] ? r.last : "nothing");
	bench_skip("%s: no end in %d s", metric, patience());
}

static void ask(const char *level, const char *metrics)
{
	char list[LINE], line[LINE], *rest = list, *metric;
	int status = 0, e = 0;

	snprintf(list, sizeof list, "%s", metrics);
	start(level, metrics);
	while ((metric = strsep(&rest, ",")) && !e) {
		while ((e = next_line(line)) == 0 && !take_figure(line, metric))
			;
		if (e == ETIMEDOUT)
			give_up(metric);
		if (e)
			break;
	}
	while (!e && (e = next_line(line)) == 0)
		snprintf(r.last, sizeof r.last, "%s", line);
	status = finish(e == ETIMEDOUT ? SIGTERM : 0);
	if (metric || status || e == ETIMEDOUT)
		bench_fail("%s: %s ended with %d: %s", metric ? metric : "at its end", r.mpi,
			WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), r.last[0] ? r.last : "no message");
}

static void measure(const struct bench_case *c, const char *mpi, enum way way)
{
	r.mpi = mpi;
	r.way = way;
	r.c = c;
	if (c->threads == 1) {
		ask("single", "round-trip,message");
		ask("multiple", "round-trip-mt,message-mt");
	} else if (c->threads >= FEW && c->threads <= MANY) {
		ask("multiple", "round-trip,compute-200,compute-20,compute-2,collective,halo,halo-omp,hop");
	} else {
		ask("multiple", "round-trip,hop");
	}
}

static void openmpi_nptl(const struct bench_case *c)
{
	measure(c, "openmpi", KERNEL);
}

static void openmpi_nolayer(const struct bench_case *c)
{
	measure(c, "openmpi", NOLAYER);
}

static void openmpi_kochab(const struct bench_case *c)
{
	measure(c, "openmpi", KOCHAB);
}

static void mpich_nptl(const struct bench_case *c)
{
	measure(c, "mpich", KERNEL);
}

static void mpich_nolayer(const struct bench_case *c)
{
	measure(c, "mpich", NOLAYER);
}

static void mpich_kochab(const struct bench_case *c)
{
	measure(c, "mpich", KOCHAB);
}

#define KERNELS BENCH_KERNEL | BENCH_FREE_ONLY

static const struct bench_method methods[] = {
	{ "openmpi-nptl", openmpi_nptl, 0, 0, KERNELS, 1000, "too many kernel threads", 0, 0 },
	{ "openmpi-nolayer", openmpi_nolayer, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "openmpi-kochab", openmpi_kochab, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "mpich-nptl", mpich_nptl, 0, 0, KERNELS, 1000, "too many kernel threads", 0, 0 },
	{ "mpich-nolayer", mpich_nolayer, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "mpich-kochab", mpich_kochab, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_mpi = {
	.name = "mpi",
	.question = "two ranks whose threads wait for MPI: on kernel threads, without the layer over MPI, with it",
	.methods = methods,
	.threads = "1,2,32,64,1000",
	.quick_threads = "1,64",
	.vps = "cores",
	.reference = "-nptl",
	.absent = absent,
};
