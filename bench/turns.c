/* bench/turns.c - has each connection of a server its fair turn? N clients, kernel threads of this
 * process, each ask over a stream socket and ask again as soon as they have an answer. The server,
 * a process of its own, has a thread for each connection, which reads a question, computes and
 * answers. Its threads are kernel threads or the drop-in's, with one source. Server and clients use
 * one processor, or share two, or (placement "spread") each have a part of them.
 *
 * "p50" to "longest": the time from question to answer. "request": wall time of the window divided
 * by the answers of all clients, so a million divided by this value is the requests per second.
 * "behind", "ahead": how many answers less than the mean the least served client got, and how many
 * more the most served client, in per cent of the mean.
 *
 * A question is the number of steps to compute, which the clients' process has measured before:
 * both servers have equal work, and a thread that loses its processor meanwhile has not computed.
 * Every wait has an end: PATIENCE_S. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_child.h"
#include "compute.h"
#include "crew.h"
#include "latency.h"
#include "tool.h"

/* Of the clients; only WINDOW's answers are counted. The main thread says when. */
enum { WARM, WINDOW, OVER };

enum { PATIENCE_S = 15, LOOK_US = 20000, DESCRIPTORS = 64 /* beside the connections' */ };

/* In the environment of the server's process: the address to listen at. */
static const char address_name[] = "BENCH_TURNS_SERVE";
static const double warm = 0.1; /* seconds before the window */

struct client {
	_Alignas(128) int fd;
	int lost; /* errno of a call that failed; 0: it had all its answers */
	uint64_t served;
	struct latency seen;
};

static struct {
	const struct bench_case *c;
	struct crew_attr attr;
	uintptr_t *thread;
	struct crew_gate gate;
	struct client *client;
	uint32_t steps; /* of a question */
	unsigned phase; /* read by all clients */
	double seconds; /* the window's length as it was */
	pid_t server;
	int on_kochab;
} r;

/* An abstract name, which leaves no file behind. */
static socklen_t fill_address(struct sockaddr_un *a, const char *name)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1));
}

/* ---- the server's process -------------------------------------------------------------------- */

static void *answer_client(void *arg)
{
	int fd = (int)(intptr_t)arg;
	uint32_t steps;

	while (read(fd, &steps, sizeof steps) == sizeof steps) {
		compute_steps(steps);
		if (write(fd, &steps, sizeof steps) != sizeof steps)
			break;
	}
	close(fd);
	return NULL;
}

static void serve(const char *name)
{
	struct sockaddr_un a;
	socklen_t size = fill_address(&a, name);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&a, size) || listen(listener, (int)r.c->threads))
		bench_fail("the server cannot listen: %s", strerror(errno));
	crew_start(&r.attr, CREW_PTHREAD, r.c);
	for (unsigned i = 0; i < r.c->threads; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			bench_fail("the server accepts %u of %u clients: %s", i, r.c->threads, strerror(errno));
		crew_create(&r.attr, CREW_PTHREAD, &r.thread[i], answer_client, (void *)(intptr_t)fd);
	}
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(CREW_PTHREAD, r.thread[i], NULL);
	close(listener);
}

/* ---- starting it, and seeing it end ---------------------------------------------------------- */

/* Becomes the server. It does not outlive the thread that has forked it, which is the clients' main
 * thread. */
static void become_server(const char *name, pid_t parent, const cpu_set_t *cpus)
{
	const char *method = r.on_kochab ? "kochab-posix" : "nptl", *argv[16];
	char self[4096], threads[16], vps[16], size[16];
	int n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !tool_self(self, sizeof self) || sched_setaffinity(0, sizeof *cpus, cpus))
		_exit(BENCH_EXIT_WRONG);
	snprintf(threads, sizeof threads, "%u", r.c->threads);
	snprintf(vps, sizeof vps, "%d", CPU_COUNT(cpus));
	snprintf(size, sizeof size, "%u", r.c->size);
	setenv(address_name, name, 1);
	argv[n++] = self;
	if (r.on_kochab) {
		setenv("KOCHAB_VPS", vps, 1);
		argv[n++] = "run";
		argv[n++] = "--";
		argv[n++] = self;
	}
	argv[n++] = "bench";
	argv[n++] = "--measure";
	argv[n++] = "turns";
	argv[n++] = method;
	argv[n++] = threads;
	argv[n++] = vps;
	argv[n++] = "free";
	argv[n++] = "1";
	argv[n++] = size;
	argv[n] = NULL;
	execv(self, (char **)(void *)argv);
	_exit(127);
}

/* Ends this measurement if the server has ended with an error, and if it has ended at all: `early`.
 * 0: it runs. */
static int look_at_server(int early)
{
	int status;

	if (waitpid(r.server, &status, WNOHANG) != r.server)
		return 0;
	if (WIFSIGNALED(status))
		bench_fail("the server was killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == BENCH_EXIT_SKIP)
		_Exit(BENCH_EXIT_SKIP); /* it has said why */
	if (WEXITSTATUS(status) || early)
		bench_fail("the server ended %swith exit status %d", early ? "too early, " : "", WEXITSTATUS(status));
	return 1;
}

/* Kochab says at SIGQUIT where every thread stands. The server ends with this process. */
static void give_up_server(const char *what)
{
	if (r.on_kochab && kill(r.server, SIGQUIT) == 0)
		usleep(500000);
	bench_fail("the server %s within %d s", what, PATIENCE_S);
}

/* Waits at most `limit` seconds. `what`: the fault of a server that is still there afterwards. */
static void await_end_of_server(double limit, const char *what, int early)
{
	for (double end = bench_now() + limit; !look_at_server(early); usleep(1000))
		if (bench_now() > end)
			give_up_server(what);
}

/* ---- the clients ----------------------------------------------------------------------------- */

/* The wait of a client that was never served is counted, too: its last answer counts as a latency
 * although the window is over, and its first answer although the question is older. Only the phase
 * is passed on, so relaxed loads are enough. */
static void *ask_server(void *arg)
{
	struct client *me = arg;
	double asked, answered;
	unsigned phase;

	crew_gate_wait(&r.gate);
	for (asked = bench_now(); __atomic_load_n(&r.phase, __ATOMIC_RELAXED) != OVER; asked = answered) {
		uint32_t m = r.steps;
		ssize_t n = send(me->fd, &m, sizeof m, MSG_NOSIGNAL);

		if (n == sizeof m)
			n = recv(me->fd, &m, sizeof m, MSG_WAITALL);
		if (n != sizeof m || m != r.steps) {
			me->lost = n < 0 ? errno : ECONNRESET;
			break;
		}
		answered = bench_now();
		phase = __atomic_load_n(&r.phase, __ATOMIC_RELAXED);
		if (phase != WARM)
			latency_add(&me->seen, (uint64_t)((answered - asked) * 1e9));
		if (phase == WINDOW)
			__atomic_store_n(&me->served, me->served + 1, __ATOMIC_RELAXED); /* read by let_pass */
	}
	close(me->fd);
	return NULL;
}

/* Tries again until the server listens. */
static int connect_client(const struct sockaddr_un *a, socklen_t size, double end)
{
	struct timeval patience = { PATIENCE_S + (time_t)(warm + r.c->seconds), 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience))
		bench_skip("a socket: %s", strerror(errno));
	while (connect(fd, (const struct sockaddr *)a, size)) {
		if (errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN)
			bench_fail("connect: %s", strerror(errno));
		look_at_server(1);
		if (bench_now() > end)
			give_up_server("does not take all connections");
		usleep(1000);
	}
	return fd;
}

static uint64_t served_of_all(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r.c->threads; i++)
		sum += __atomic_load_n(&r.client[i].served, __ATOMIC_RELAXED);
	return sum;
}

/* So many seconds, and longer on a machine that is so busy that nobody was served; while the server
 * is there. */
static double let_pass(unsigned phase, double seconds)
{
	double start = bench_now(), now = start;

	__atomic_store_n(&r.phase, phase, __ATOMIC_RELAXED);
	while (now < start + seconds || (phase == WINDOW && !served_of_all() && now < start + seconds + PATIENCE_S)) {
		double left = start + seconds - now;

		usleep(left > 0 && left < LOOK_US * 1e-6 ? (useconds_t)(left * 1e6) : LOOK_US);
		look_at_server(1);
		now = bench_now();
	}
	return now - start;
}

static void ask_for_all(const char *name)
{
	struct sockaddr_un a;
	socklen_t size = fill_address(&a, name);
	unsigned n = r.c->threads;
	double end = bench_now() + PATIENCE_S;

	for (unsigned i = 0; i < n; i++)
		r.client[i].fd = connect_client(&a, size, end);
	crew_start(&r.attr, CREW_PTHREAD, r.c);
	crew_gate_init(&r.gate, CREW_PTHREAD, n + 1);
	for (unsigned i = 0; i < n; i++)
		crew_create(&r.attr, CREW_PTHREAD, &r.thread[i], ask_server, &r.client[i]);
	crew_gate_wait(&r.gate);
	let_pass(WARM, warm);
	r.seconds = let_pass(WINDOW, r.c->seconds);
	__atomic_store_n(&r.phase, OVER, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++)
		crew_join(CREW_PTHREAD, r.thread[i], NULL);
}

/* Its end may be seen a little later than its closed connections; after EAGAIN it has had its time. */
static void see_all_answered(void)
{
	unsigned lost = 0;
	int e = 0;

	for (unsigned i = 0; i < r.c->threads; i++)
		if (r.client[i].lost) {
			lost++;
			e = r.client[i].lost;
		}
	if (lost)
		fprintf(stderr, "kochab bench: %u of %u clients have no answer: %s\n", lost, r.c->threads, strerror(e));
	await_end_of_server(e == EAGAIN ? 0 : PATIENCE_S, lost ? "does not answer all" : "does not end", lost != 0);
}

static void report_all(void)
{
	struct latency all = { 0 };
	uint64_t least = UINT64_MAX, most = 0, sum = served_of_all();

	for (unsigned i = 0; i < r.c->threads; i++) {
		const struct client *client = &r.client[i];

		latency_merge(&all, &client->seen);
		least = client->served < least ? client->served : least;
		most = client->served > most ? client->served : most;
	}
	if (!sum)
		bench_fail("no answer in %.1f s", r.seconds);
	double mean = (double)sum / r.c->threads;

	bench_report("p50", "us", (double)latency_of(&all, 0.5) * 1e-3);
	bench_report("p99", "us", (double)latency_of(&all, 0.99) * 1e-3);
	bench_report("p99.9", "us", (double)latency_of(&all, 0.999) * 1e-3);
	bench_report("longest", "us", (double)all.longest * 1e-3);
	bench_report("request", "us", r.seconds / (double)sum * 1e6);
	bench_report("behind", "%", (1 - (double)least / mean) * 100);
	bench_report("ahead", "%", ((double)most / mean - 1) * 100);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The best of some pieces: nothing has disturbed that piece. */
static uint32_t steps_of(unsigned us)
{
	double best = 1;

	for (int i = 0; i < 100; i++) {
		double start = bench_now(), took;

		compute_piece();
		took = bench_now() - start;
		best = took < best ? took : best;
	}
	return (uint32_t)(us * 1e-6 / best * COMPUTE_STEPS);
}

static void allow_descriptors(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur >= r.c->threads + DESCRIPTORS)
		return;
	lim.rlim_cur = lim.rlim_max;
	if (lim.rlim_max < r.c->threads + DESCRIPTORS || setrlimit(RLIMIT_NOFILE, &lim))
		bench_skip("%u descriptors are not allowed", r.c->threads + DESCRIPTORS);
}

/* The processors of the server, and the clients' processors: `vps` in all. */
static void divide_cpus(cpu_set_t *servers, cpu_set_t *clients)
{
	unsigned n = r.c->vps, first = r.c->spread ? (n + 1) / 2 : n;

	if (n > bench_cpus())
		bench_skip("needs %u processors", n);
	CPU_ZERO(servers);
	CPU_ZERO(clients);
	for (unsigned i = 0; i < n; i++) {
		if (i < first)
			CPU_SET(bench_cpu(i), servers);
		if (i >= first || !r.c->spread)
			CPU_SET(bench_cpu(i), clients);
	}
}

static void run(const struct bench_case *c, int on_kochab)
{
	const char *address = getenv(address_name);
	cpu_set_t servers, clients;
	char name[64];
	pid_t me = getpid();

	r.c = c;
	r.on_kochab = on_kochab;
	r.thread = bench_alloc(c->threads, sizeof *r.thread);
	if (address) {
		if (on_kochab)
			bench_require_drop_in();
		serve(address);
		return;
	}
	allow_descriptors();
	divide_cpus(&servers, &clients);
	snprintf(name, sizeof name, "kochab-bench-turns-%d", me);
	r.client = bench_alloc(c->threads, sizeof *r.client);
	if (sched_setaffinity(0, sizeof clients, &clients))
		bench_skip("affinity: %s", strerror(errno));
	r.steps = steps_of(c->size);
	r.server = fork();
	if (r.server == 0)
		become_server(name, me, &servers);
	if (r.server < 0)
		bench_skip("a process for the server: %s", strerror(errno));
	ask_for_all(name);
	see_all_answered();
	report_all();
}

static void run_nptl(const struct bench_case *c)
{
	run(c, 0);
}

static void run_kochab(const struct bench_case *c)
{
	run(c, 1);
}

/* Neither is run under the drop-in by the driver: the clients are kernel threads. */
static const struct bench_method methods[] = {
	{ "nptl", run_nptl, 0, 0, BENCH_KERNEL, 10000, "too many kernel threads", 0, 0 },
	{ "kochab-posix", run_kochab, 0, 0, 0, 10000, "too many kernel threads that ask", 0, 0 },
	{ 0 },
};

const struct bench bench_turns = {
	.name = "turns",
	.question = "a busy server with a thread for each connection, its clients as neighbours: latency, fair turns",
	.methods = methods,
	.threads = "4,16,64,1000",
	.vps = "1,2",
	.reference = "nptl",
	.seconds = 1,
	.sizes = "5,50",
	.size_name = "%u us of work",
	.both_placements = 1,
	.quick_threads = "16",
	.quick_sizes = "50",
};
