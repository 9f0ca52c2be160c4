/* bench/socket.c - an 8-byte message through a socketpair, there and back between two threads: time
 * per message. "bare" is one kernel thread that makes these system calls in this order: send, a
 * receive that finds nothing, a receive. Blocking descriptors, as plain threads use them. More
 * threads are more pairs. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <kochab/io.h>

#include "crew.h"

struct pair {
	int fd[2];
	uint64_t rounds;
};

struct run {
	const struct bench_case *c;
	struct crew_attr attr;
	struct pair *pair;
	uintptr_t *t;
};

CREW_INLINE void pass(enum crew kind, int fd, uint64_t m)
{
	ssize_t n = kind == CREW_PTHREAD ? write(fd, &m, sizeof m) : kb_io_send(fd, &m, sizeof m, 0, KB_FOREVER);

	if (n != sizeof m)
		bench_fail("sent %zd", n);
}

CREW_INLINE void get(enum crew kind, int fd, uint64_t want)
{
	uint64_t m;
	ssize_t n = kind == CREW_PTHREAD ? read(fd, &m, sizeof m) : kb_io_recv(fd, &m, sizeof m, 0, KB_FOREVER);

	if (n != sizeof m || m != want)
		bench_fail("received %zd bytes, %llu instead of %llu", n, (unsigned long long)m, (unsigned long long)want);
}

#define CALLS(name, kind)                                                \
	static void *name##_asks(void *arg)                              \
	{                                                                \
		struct pair *p = arg;                                    \
		for (uint64_t i = 0; i < p->rounds; i++) {               \
			pass(kind, p->fd[0], i);                         \
			get(kind, p->fd[0], i + 1);                      \
		}                                                        \
		return NULL;                                             \
	}                                                                \
	static void *name##_answers(void *arg)                           \
	{                                                                \
		struct pair *p = arg;                                    \
		for (uint64_t i = 0; i < p->rounds; i++) {               \
			get(kind, p->fd[1], i);                          \
			pass(kind, p->fd[1], i + 1);                     \
		}                                                        \
		return NULL;                                             \
	}

CALLS(kochab, CREW_LIGHT)
CALLS(posix, CREW_PTHREAD)

static void open_pairs(struct run *r)
{
	unsigned n = (r->c->threads + 1) / 2;

	r->pair = bench_alloc(n, sizeof *r->pair);
	r->t = bench_alloc(2 * n, sizeof *r->t);
	for (unsigned i = 0; i < n; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, r->pair[i].fd))
			bench_skip("socketpair %u: %s", i, strerror(errno));
}

static double once(void *arg, uint64_t rounds)
{
	struct run *r = arg;
	unsigned n = (r->c->threads + 1) / 2;
	int posix = r->attr.kind == CREW_PTHREAD;
	double start = bench_now();

	for (unsigned i = 0; i < n; i++) {
		r->pair[i].rounds = rounds;
		crew_create(&r->attr, r->attr.kind, &r->t[2 * i], posix ? posix_asks : kochab_asks, &r->pair[i]);
		crew_create(&r->attr, r->attr.kind, &r->t[2 * i + 1], posix ? posix_answers : kochab_answers, &r->pair[i]);
	}
	for (unsigned i = 0; i < 2 * n; i++)
		crew_join(r->attr.kind, r->t[i], NULL);
	return bench_now() - start;
}

static void run(const struct bench_case *c, enum crew kind)
{
	struct run r = { .c = c };

	crew_start(&r.attr, kind, c);
	open_pairs(&r);
	bench_report("one-way", "ns", bench_scale(c, once, &r) / (2 * ((c->threads + 1) / 2)) * 1e9);
}

CREW_WAYS(run)

/* One message: the sender's call, the receiver's call that finds nothing, and the call that gets
 * the message. */
static double bare_once(void *arg, uint64_t rounds)
{
	struct run *r = arg;
	double start = bench_now();

	for (uint64_t i = 0; i < 2 * rounds; i++) {
		const int *fd = r->pair->fd, from = fd[i % 2], to = fd[1 - i % 2];
		uint64_t m = i;

		if (send(from, &m, sizeof m, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof m)
			bench_fail("send");
		if (recv(from, &m, sizeof m, MSG_DONTWAIT) >= 0)
			bench_fail("a message from nowhere");
		if (recv(to, &m, sizeof m, MSG_DONTWAIT) != sizeof m || m != i)
			bench_fail("recv");
	}
	return bench_now() - start;
}

static void bare(const struct bench_case *c)
{
	struct run r = { .c = c };

	open_pairs(&r);
	bench_report("one-way", "ns", bench_scale(c, bare_once, &r) / 2 * 1e9);
}

static const struct bench_method methods[] = {
	{ "bare", bare, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 2, "no threads", 0, 1 },
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_socket = {
	.name = "socket",
	.question = "a message through a socketpair, there and back between two threads",
	.methods = methods,
	.threads = "2,100",
	.vps = "1,cores",
	.reference = "bare",
	.peers = 1,
};
