/* bench/rendezvous_ipc.c - an 8-byte message from a thread of one program to a thread of a second
 * program that waits for it: time per message, there and back. More threads are more pairs: 2
 * threads are one pair. The second program is a fork of the first, made before anything else runs.
 * With 2 processors each program has its own. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kochab/space.h>

#include "bench.h"

enum way { WAY_SPACE, WAY_CHAN, WAY_PIPE, WAY_SOCKET, WAY_EVENTFD, WAY_MQ };

struct seat {
	struct ipc *ipc;
	kb_space_event_t *in, *out;
	kb_space_chan_t *chan_in, *chan_out;
	int from, to;
	uintptr_t thread;
};

/* Memory shared by both programs. */
struct common {
	uint64_t rounds; /* of the next lap; 0: the end */
	uint32_t begin, end;
};

struct ipc {
	enum way way;
	int first; /* asks */
	unsigned pairs;
	struct common *common;
	struct seat *seat;
	kb_space_t *space;
	kb_space_barrier_t *meet;
};

static void check(int e, const char *what)
{
	if (e)
		bench_fail("%s: %s", what, strerror(e));
}

/* ---- one message ----------------------------------------------------------------------------- */

static inline void put(const struct seat *s, enum way way, uint64_t m)
{
	switch (way) {
	case WAY_SPACE: check(kb_space_event_notify(s->out, m), "notify"); break;
	case WAY_CHAN: check(kb_space_chan_send(s->chan_out, &m, KB_FOREVER), "send"); break;
	case WAY_MQ: check(mq_send(s->to, (const char *)&m, sizeof m, 0) ? errno : 0, "mq_send"); break;
	default: check(write(s->to, &m, sizeof m) == sizeof m ? 0 : errno, "write");
	}
}

static inline void get(const struct seat *s, enum way way, uint64_t want)
{
	uint64_t m = 0;

	switch (way) {
	case WAY_SPACE: check(kb_space_event_wait(s->in, &m, KB_FOREVER), "wait"); break;
	case WAY_CHAN: check(kb_space_chan_recv(s->chan_in, &m, KB_FOREVER), "recv"); break;
	case WAY_MQ: check(mq_receive(s->from, (char *)&m, sizeof m, NULL) == sizeof m ? 0 : errno, "mq_receive"); break;
	default: check(read(s->from, &m, sizeof m) == sizeof m ? 0 : errno, "read");
	}
	if (m != want)
		bench_fail("received %llu instead of %llu", (unsigned long long)m, (unsigned long long)want);
}

static void *sit(void *arg)
{
	const struct seat *s = arg;
	uint64_t rounds = s->ipc->common->rounds;

	for (uint64_t i = 1; i <= rounds; i++) {
		if (s->ipc->first)
			put(s, s->ipc->way, i);
		get(s, s->ipc->way, i);
		if (!s->ipc->first)
			put(s, s->ipc->way, i);
	}
	return NULL;
}

/* ---- a lap: all pairs, so many rounds -------------------------------------------------------- */

static void lap(struct ipc *x)
{
	for (unsigned i = 0; i < x->pairs; i++) {
		uintptr_t *t = &x->seat[i].thread;

		check(x->space ? kb_thread_create((kb_thread_t *)t, NULL, sit, &x->seat[i]) :
				 pthread_create((pthread_t *)t, NULL, sit, &x->seat[i]), "a thread");
	}
	for (unsigned i = 0; i < x->pairs; i++)
		x->space ? kb_thread_join((kb_thread_t)x->seat[i].thread, NULL) : pthread_join((pthread_t)x->seat[i].thread, NULL);
}

/* The two programs begin each lap together. */
static void meet(uint32_t *count, uint32_t until)
{
	__atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < until)
		usleep(50);
}

static double once(void *arg, uint64_t n)
{
	static uint32_t laps;
	struct ipc *x = arg;
	double start;

	x->common->rounds = (n + x->pairs - 1) / x->pairs;
	meet(&x->common->begin, 2 * ++laps);
	start = bench_now();
	lap(x);
	return (bench_now() - start) / (double)(2 * x->common->rounds * x->pairs) * (double)n;
}

static void answer(struct ipc *x)
{
	for (uint32_t laps = 1;; laps++) {
		meet(&x->common->begin, 2 * laps);
		if (!x->common->rounds)
			_exit(0);
		lap(x);
	}
}

/* ---- the ways -------------------------------------------------------------------------------- */

/* The system counts queues, 256 at most by default. A namespace of its own has a limit of its own. */
static void raise_queue_limit(unsigned queues)
{
	FILE *f = unshare(CLONE_NEWIPC) ? NULL : fopen("/proc/sys/fs/mqueue/queues_max", "w");

	if (!f)
		return;
	fprintf(f, "%u\n", queues);
	fclose(f);
}

/* Each queue holds one message at most; the system limits the bytes of all queues together, too. */
static void open_queue(unsigned i, int *end)
{
	struct mq_attr a = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char name[64];

	snprintf(name, sizeof name, "/kochab-bench-%d-%u", getpid(), i);
	*end = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
	if (*end < 0)
		bench_skip("mq_open of queue %u: %s (limits: fs.mqueue.queues_max, ulimit -q)", i, strerror(errno));
	mq_unlink(name);
}

/* Before the fork: fd[0] leads from the first to the second. */
static void open_pair(struct ipc *x, unsigned i, int there[2], int back[2])
{
	int bad = 0;

	switch (x->way) {
	case WAY_PIPE: bad = pipe(there) || pipe(back); break;
	case WAY_SOCKET:
		bad = socketpair(AF_UNIX, SOCK_STREAM, 0, there);
		back[0] = back[1] = -1;
		break;
	case WAY_EVENTFD:
		there[0] = there[1] = eventfd(0, 0);
		back[0] = back[1] = eventfd(0, 0);
		bad = there[0] < 0 || back[0] < 0;
		break;
	default:
		open_queue(2 * i, &there[0]);
		open_queue(2 * i + 1, &back[0]);
		there[1] = there[0];
		back[1] = back[0];
	}
	if (bad)
		bench_skip("pair %u: %s", i, strerror(errno));
}

static void open_descriptors(struct ipc *x, int (*fds)[4])
{
	if (x->way == WAY_MQ)
		raise_queue_limit(2 * x->pairs);
	for (unsigned i = 0; i < x->pairs; i++) {
		int there[2], back[2];

		open_pair(x, i, there, back);
		if (x->way == WAY_SOCKET) {
			fds[i][0] = fds[i][1] = there[0];
			fds[i][2] = fds[i][3] = there[1];
			continue;
		}
		fds[i][0] = there[1]; /* the first writes */
		fds[i][1] = back[0];  /* and reads */
		fds[i][2] = back[1];
		fds[i][3] = there[0];
	}
}

static void open_space(struct ipc *x, const char *name)
{
	check(kb_init(), "kb_init");
	if (x->first)
		check(kb_space_create(&x->space, name, NULL), "kb_space_create");
	else
		check(kb_space_attach(&x->space, name, 0), "kb_space_attach");
	for (unsigned i = 0; i < x->pairs; i++)
		for (unsigned back = 0; back < 2; back++) {
			int sends = x->first == !back;
			unsigned end = sends ? KB_SPACE_SEND : KB_SPACE_RECV;
			struct seat *s = &x->seat[i];
			char object[32];

			snprintf(object, sizeof object, "%s%u", back ? "back" : "there", i);
			if (x->way == WAY_SPACE)
				check(kb_space_event_open(x->space, object, end, sends ? &s->out : &s->in), "event");
			else
				check(kb_space_chan_open(x->space, object, 8, 4, end, sends ? &s->chan_out : &s->chan_in), "channel");
		}
}

static void place(const struct bench_case *c, int second)
{
	cpu_set_t set;

	if (c->vps < 2)
		return;
	CPU_ZERO(&set);
	CPU_SET(bench_cpu(second), &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void run(const struct bench_case *c, enum way way)
{
	struct ipc x = { .way = way, .pairs = c->threads / 2 };
	int kochab = way <= WAY_CHAN, (*fds)[4];
	char name[64];
	pid_t pid;

	if (!x.pairs)
		bench_skip("a pair is two threads");
	snprintf(name, sizeof name, "bench.%d", getpid());
	x.seat = bench_alloc(x.pairs, sizeof *x.seat);
	fds = bench_alloc(x.pairs, sizeof *fds);
	x.common = mmap(NULL, sizeof *x.common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!kochab)
		open_descriptors(&x, fds);
	else
		setenv("KOCHAB_VPS", "1", 1); /* of each */
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		bench_skip("fork: %s", strerror(errno));
	x.first = pid != 0;
	if (!x.first)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	place(c, !x.first);
	for (unsigned i = 0; i < x.pairs; i++) {
		x.seat[i].ipc = &x;
		x.seat[i].to = fds[i][x.first ? 0 : 2];
		x.seat[i].from = fds[i][x.first ? 1 : 3];
	}
	if (kochab && x.first)
		open_space(&x, name);
	meet(&x.common->end, 2);
	if (kochab && !x.first)
		open_space(&x, name);
	meet(&x.common->end, 4);
	if (!x.first)
		answer(&x);
	if (kochab)
		kb_space_unlink(name);
	bench_report("one-way", "ns", bench_scale(c, once, &x) * 1e9);
	x.common->rounds = 0;
	__atomic_add_fetch(&x.common->begin, 1, __ATOMIC_RELEASE);
	waitpid(pid, NULL, 0);
}

static void by_space(const struct bench_case *c) { run(c, WAY_SPACE); }
static void by_chan(const struct bench_case *c) { run(c, WAY_CHAN); }
static void by_pipe(const struct bench_case *c) { run(c, WAY_PIPE); }
static void by_socket(const struct bench_case *c) { run(c, WAY_SOCKET); }
static void by_eventfd(const struct bench_case *c) { run(c, WAY_EVENTFD); }
static void by_mq(const struct bench_case *c) { run(c, WAY_MQ); }

static const struct bench_method methods[] = {
	{ "kochab", by_space, 0, 0, 0, 0, 0, 0, 0 },
	{ "kochab-chan", by_chan, 0, 0, 0, 0, 0, 0, 0 },
	{ "pipe", by_pipe, 0, 0, BENCH_KERNEL, 20000, "too many kernel threads", 0, 0 },
	{ "socket", by_socket, 0, 0, BENCH_KERNEL, 20000, "too many kernel threads", 0, 0 },
	{ "eventfd", by_eventfd, 0, 0, BENCH_KERNEL, 20000, "too many kernel threads", 0, 0 },
	{ "mqueue", by_mq, 0, 0, BENCH_KERNEL, 20000, "too many kernel threads", 0, 0 },
	{ 0 },
};

const struct bench bench_rendezvous_ipc = {
	.name = "rendezvous-ipc",
	.question = "one-way latency of an 8-byte message between threads of two programs, in pairs",
	.methods = methods,
	.threads = "2,20,200,2000",
	.vps = "cores",
	.reference = "pipe",
	.peers = 1,
};
