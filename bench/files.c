/* bench/files.c - regular files. "pread": a thread reads blocks of 4 KiB, at random, of a file that
 * is in the page cache. "fsync": N threads write a block to a file of their own and make it safe,
 * again and again; time for each, all together, and processor time. "new file": the same with a
 * file that is made, and is gone when it is closed. The way a call takes is part of the question:
 * "kochab-handoff" is Kochab where io_uring is forbidden. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <kochab/io.h>

#include "crew.h"

enum { BLOCK = 4096, BLOCKS = 4096, SYNCS = 1024, SYNCS_LEAST = 16, FILES = 256, FILES_LEAST = 4 };

struct run {
	const struct bench_case *c;
	struct crew_attr attr;
	int fd;
	uint64_t n;
	uintptr_t *t;
	int *fds; /* a file for each thread */
	unsigned next;
};

CREW_INLINE void read_block(enum crew kind, int fd, char *b, unsigned i)
{
	ssize_t n = kind == CREW_PTHREAD ? pread(fd, b, BLOCK, (off_t)i * BLOCK) :
					   kb_io_pread(fd, b, BLOCK, (off_t)i * BLOCK, KB_FOREVER);

	if (n != BLOCK || b[0] != (char)i)
		bench_fail("block %u: %zd bytes", i, n);
}

#define READS(name, kind)                                                      \
	static void *name(void *arg)                                           \
	{                                                                      \
		struct run *r = arg;                                           \
		char b[BLOCK];                                                 \
		for (uint64_t i = 0; i < r->n; i++)                            \
			read_block(kind, r->fd, b, (unsigned)(i * 2654435761u >> 4) % BLOCKS); \
		return NULL;                                                   \
	}

READS(kochab_reads, CREW_LIGHT)
READS(posix_reads, CREW_PTHREAD)

CREW_INLINE void safe_block(enum crew kind, int fd, const char *b)
{
	if (kind == CREW_PTHREAD) {
		if (pwrite(fd, b, BLOCK, 0) != BLOCK || fdatasync(fd))
			bench_fail("%s", strerror(errno));
	} else if (kb_io_pwrite(fd, b, BLOCK, 0, KB_FOREVER) != BLOCK || kb_io_fdatasync(fd, KB_FOREVER)) {
		bench_fail("kb_io_fdatasync");
	}
}

static int new_file(void)
{
	char name[] = "./kochab-bench-XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0)
		bench_skip("a file here: %s", strerror(errno));
	unlink(name);
	return fd;
}

#define SYNCS_OF(name, kind)                                                    \
	static void *name(void *arg)                                            \
	{                                                                       \
		static const char b[BLOCK];                                     \
		struct run *r = arg;                                            \
		int fd = r->fds[__atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED)]; \
		for (uint64_t i = 0; i < r->n; i++)                             \
			safe_block(kind, fd, b);                                \
		return r;                                                       \
	}

SYNCS_OF(kochab_syncs, CREW_LIGHT)
SYNCS_OF(posix_syncs, CREW_PTHREAD)

CREW_INLINE void short_file(enum crew kind, const char *b, unsigned i)
{
	const int how = O_RDWR | O_CREAT | O_EXCL;
	char name[64];
	int fd;

	snprintf(name, sizeof name, "./kochab-bench-%d-%u", (int)getpid(), i);
	fd = kind == CREW_PTHREAD ? open(name, how, 0600) : kb_io_open(name, how, 0600, KB_FOREVER);
	if (fd < 0)
		bench_fail("%s", name);
	unlink(name);
	safe_block(kind, fd, b);
	if (kind == CREW_PTHREAD)
		close(fd);
	else
		kb_io_close(fd);
}

#define FILES_OF(name, kind)                                                    \
	static void *name(void *arg)                                            \
	{                                                                       \
		static const char b[BLOCK];                                     \
		struct run *r = arg;                                            \
		unsigned me = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED); \
		for (uint64_t i = 0; i < r->n; i++)                             \
			short_file(kind, b, me);                                \
		return r;                                                       \
	}

FILES_OF(kochab_files, CREW_LIGHT)
FILES_OF(posix_files, CREW_PTHREAD)

static double crew(struct run *r, unsigned n, void *(*fn)(void *))
{
	double start = bench_now();

	for (unsigned i = 0; i < n; i++)
		crew_create(&r->attr, r->attr.kind, &r->t[i], fn, r);
	for (unsigned i = 0; i < n; i++)
		crew_join(r->attr.kind, r->t[i], NULL);
	return bench_now() - start;
}

static double reads(void *arg, uint64_t n)
{
	struct run *r = arg;

	r->n = n;
	return crew(r, 1, r->attr.kind == CREW_PTHREAD ? posix_reads : kochab_reads);
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static unsigned among(const struct bench_case *c, unsigned all, unsigned least)
{
	return all / c->threads > least ? all / c->threads : least;
}

/* The threads are there, and have their kernel threads, before the clock starts. */
static void syncs(struct run *r, void *(*fn)(void *), void *(*files)(void *))
{
	const struct bench_case *c = r->c;
	double all, before;

	r->fds = bench_alloc(c->threads, sizeof *r->fds);
	for (unsigned i = 0; i < c->threads; i++)
		r->fds[i] = new_file();
	r->n = 1;
	crew(r, c->threads, fn);
	r->n = among(c, SYNCS, SYNCS_LEAST);
	all = (double)c->threads * (double)r->n;
	r->next = 0;
	before = cpu();
	bench_report("fsync", "us", crew(r, c->threads, fn) / all * 1e6);
	bench_report("fsync-cpu", "us", (cpu() - before) / all * 1e6);
	for (unsigned i = 0; i < c->threads; i++)
		close(r->fds[i]);
	r->n = among(c, FILES, FILES_LEAST);
	r->next = 0;
	bench_report("new-file", "us", crew(r, c->threads, files) / ((double)c->threads * (double)r->n) * 1e6);
}

static void run(const struct bench_case *c, enum crew kind)
{
	struct run r = { .c = c, .t = bench_alloc(c->threads, sizeof *r.t) };
	char b[BLOCK];

	r.fd = new_file();
	for (unsigned i = 0; i < BLOCKS; i++) {
		memset(b, (int)i, sizeof b);
		if (write(r.fd, b, sizeof b) != sizeof b)
			bench_skip("16 MiB of a file here: %s", strerror(errno));
	}
	crew_start(&r.attr, kind, c);
	bench_report("pread", "ns", bench_scale(c, reads, &r) * 1e9);
	if (kind == CREW_PTHREAD)
		syncs(&r, posix_syncs, posix_files);
	else
		syncs(&r, kochab_syncs, kochab_files);
	close(r.fd);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-handoff", crew_light, 0, "KOCHAB_IO_URING=0", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_files = {
	.name = "files",
	.question = "4 KiB of a file in the page cache, and of many files made safe, old ones and new ones",
	.methods = methods,
	.threads = "1,4,16,64",
	.vps = "1,cores",
	.reference = "nptl",
};
