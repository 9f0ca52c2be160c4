/* bench/files.c - regular files. "pread": a thread reads blocks of 4 KiB, at random, of a file that is in the page
 * cache. "fsync": N threads write a block to a file of their own and make it safe; time for each, all together.
 * The way a call takes is part of the question: "kochab-handoff" is Kochab where io_uring is forbidden. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <kochab/io.h>

#include "crew.h"

enum { BLOCK = 4096, BLOCKS = 4096, SYNCS = 4 };

struct run {
	const struct bench_case *c;
	struct crew_attr attr;
	int fd;
	uint64_t n;
	uintptr_t *t;
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

#define SYNCS_OF(name, kind)                                     \
	static void *name(void *arg)                             \
	{                                                        \
		static const char b[BLOCK];                      \
		struct run *r = arg;                             \
		int fd = new_file();                             \
		for (unsigned i = 0; i < SYNCS; i++)             \
			safe_block(kind, fd, b);                 \
		close(fd);                                       \
		return r;                                        \
	}

SYNCS_OF(kochab_syncs, CREW_LIGHT)
SYNCS_OF(posix_syncs, CREW_PTHREAD)

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
	bench_report("fsync", "us", crew(&r, c->threads, kind == CREW_PTHREAD ? posix_syncs : kochab_syncs) /
					    (c->threads * SYNCS) * 1e6);
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
	.question = "4 KiB of a file in the page cache, and of many files made safe",
	.methods = methods,
	.threads = "16",
	.vps = "1,cores",
	.reference = "nptl",
};
