/* bench/blocked.c - N threads stay in the kernel, in flock or in a read that Kochab does not see
 * (on x86-64 the bare instruction), and a further thread computes. "lost": its loss of speed, in
 * per cent; the best of some windows of several quanta while they are blocked, against the best
 * before and after. "away": from the first thread's creation until a thread that naps has seen that
 * each has gone to its call; on a single processor it sees this when the last thread has let go. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compute.h"
#include "crew.h"

static const double window = 0.05; /* seconds: five quanta */

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t *thread;
	char file[32];
	int holder, pipe[2];
	unsigned arrived;
	double best; /* of the windows */
} r;

static long bare_read(int fd, char *c)
{
#if defined(__x86_64__)
	long n;

	__asm__ volatile("syscall" : "=a"(n) : "a"(SYS_read), "D"(fd), "S"(c), "d"(1) : "rcx", "r11", "memory");
	return n;
#else
	return syscall(SYS_read, fd, c, 1);
#endif
}

static void *in_read(void *unused)
{
	char c;

	__atomic_fetch_add(&r.arrived, 1, __ATOMIC_RELAXED);
	long n = bare_read(r.pipe[0], &c);
	if (n != 1)
		bench_fail("read: %ld", n);
	return unused;
}

static void *in_flock(void *unused)
{
	int fd = open(r.file, O_RDWR | O_CLOEXEC);

	__atomic_fetch_add(&r.arrived, 1, __ATOMIC_RELAXED);
	if (fd < 0 || flock(fd, LOCK_EX))
		bench_fail("flock: %s", strerror(errno));
	close(fd);
	return unused;
}

/* Seconds for a piece. */
static void *computes(void *unused)
{
	unsigned windows = 3 + (unsigned)(r.c->seconds * 20);

	r.best = 0;
	for (unsigned i = 0; i < windows; i++) {
		double start = bench_now(), end = start + window, now;
		unsigned n = 0;

		do {
			compute_piece();
			n++;
		} while ((now = bench_now()) < end);
		r.best = i && r.best < (now - start) / n ? r.best : (now - start) / n;
	}
	return unused;
}

static double piece(void)
{
	uintptr_t t;

	crew_create(&r.attr, CREW_PTHREAD, &t, computes, NULL);
	crew_join(CREW_PTHREAD, t, NULL);
	return r.best;
}

static void beside(void *(*fn)(void *), const char *lost, const char *away, void (*let_go)(void))
{
	double alone = piece(), start = bench_now();

	r.arrived = 0;
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_create(&r.attr, CREW_PTHREAD, &r.thread[i], fn, NULL);
	while (__atomic_load_n(&r.arrived, __ATOMIC_RELAXED) < r.c->threads)
		usleep(1000);
	bench_report(away, "ms", (bench_now() - start) * 1e3);
	double with = piece();
	let_go();
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(CREW_PTHREAD, r.thread[i], NULL);
	double again = piece(); /* the machine may have become slower meanwhile, or faster */
	alone = again < alone ? again : alone;
	bench_report(lost, "%", (1 - alone / with) * 100);
}

static void write_all(void)
{
	for (unsigned i = 0; i < r.c->threads; i++)
		if (write(r.pipe[1], "x", 1) != 1)
			bench_fail("write: %s", strerror(errno));
}

static void unlock(void)
{
	flock(r.holder, LOCK_UN);
}

static void run(const struct bench_case *c)
{
	char name[] = "./kochab-bench-XXXXXX";

	r.c = c;
	r.thread = bench_alloc(c->threads, sizeof *r.thread);
	crew_start(&r.attr, CREW_PTHREAD, c);
	r.holder = mkstemp(name);
	if (r.holder < 0 || unlink(name) || flock(r.holder, LOCK_EX) || pipe2(r.pipe, O_CLOEXEC))
		bench_skip("a locked file here and a pipe: %s", strerror(errno));
	snprintf(r.file, sizeof r.file, "/proc/self/fd/%d", r.holder); /* opened anew by each */
	beside(in_read, "read-lost", "read-away", write_all);
	beside(in_flock, "flock-lost", "flock-away", unlock);
	close(r.pipe[0]);
	close(r.pipe[1]);
	close(r.holder);
	free(r.thread);
}

static const struct bench_method methods[] = {
	{ "nptl", run, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_blocked = {
	.name = "blocked",
	.question = "what a computing thread loses to threads that are blocked in the kernel",
	.methods = methods,
	.threads = "64",
	.vps = "1",
	.reference = NULL,
};
