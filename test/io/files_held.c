/* kb_io_*: calls on files that last, as if a disk did not answer, where no io_uring can wait
 * for them: writes with O_DSYNC or O_SYNC, all transfers with O_DIRECT, fsync and its kin,
 * close of a deleted file. While a thread is in such a call another thread of the same
 * virtual processor goes on.
 * matrix: vps=1 sched=rotator,steal */
#include "core/held.h"

#include <fcntl.h>
#include <kochab/io.h>
#include <kochab/kochab.h>

enum { BLOCK = 4096 };

static char buffer[BLOCK] __attribute__((aligned(BLOCK)));
static char name[64];
static int fd;

static long i_write(void) { return kb_io_write(fd, buffer, BLOCK, KB_FOREVER); }
static long i_pwrite(void) { return kb_io_pwrite(fd, buffer, BLOCK, BLOCK, KB_FOREVER); }
static long i_read(void) { return kb_io_read(fd, buffer, BLOCK, KB_FOREVER); }
static long i_pread(void) { return kb_io_pread(fd, buffer, BLOCK, 0, KB_FOREVER); }
static long i_fsync(void) { return kb_io_fsync(fd, KB_FOREVER); }
static long i_fdatasync(void) { return kb_io_fdatasync(fd, KB_FOREVER); }
static long i_close(void) { return kb_io_close(fd); }

static const struct row {
	const char *what;
	long (*call)(void);
	long result;
	int flags;
} rows[] = {
	{ "kb_io_write, O_DSYNC", i_write, BLOCK, O_DSYNC },
	{ "kb_io_write, O_DIRECT", i_write, BLOCK, O_DIRECT },
	{ "kb_io_pwrite, O_SYNC", i_pwrite, BLOCK, O_SYNC },
	{ "kb_io_pwrite, O_DIRECT", i_pwrite, BLOCK, O_DIRECT },
	{ "kb_io_read, O_DIRECT", i_read, BLOCK, O_DIRECT },
	{ "kb_io_pread, O_DIRECT", i_pread, BLOCK, O_DIRECT },
	{ "kb_io_fsync", i_fsync, 0, 0 },
	{ "kb_io_fdatasync", i_fdatasync, 0, 0 },
	{ "kb_io_close", i_close, 0, 0 },
};

static const int calls[] = {
	SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_read, SYS_readv,
		SYS_pread64, SYS_preadv, SYS_preadv2, SYS_fsync, SYS_fdatasync, SYS_close,
};

static void *calls_it(void *arg)
{
	const struct row *r = arg;

	CHECK_EQ(r->call(), r->result);
	return NULL;
}

/* Prepares the file. False: the file system has no such files. */
static bool prepare(const struct row *r)
{
	int first = open(name, O_RDWR | O_CREAT, 0600);

	CHECK(first >= 0);
	CHECK_EQ(write(first, buffer, BLOCK), BLOCK);
	fd = kb_io_open(name, O_RDWR | r->flags, 0, KB_FOREVER);
	CHECK_EQ(close(first), 0);
	CHECK_EQ(unlink(name), 0);
	return fd >= 0;
}

static bool try_row(const struct row *r)
{
	uint64_t since = test_now_ns();
	kb_thread_t t;
	bool in_time;

	if (!prepare(r)) {
		printf("%s: not here\n", r->what);
		return true;
	}
	held_begin((uint64_t)fd);
	CHECK_EQ(kb_thread_create(&t, NULL, calls_it, (void *)(uintptr_t)r), 0);
	while (!HELD_GET(count) && !HELD_GET(late) &&
			test_now_ns() - since < HELD_PATIENCE_MS * 1000000ull)
		kb_sleep(200000);
	in_time = HELD_GET(count) > 0;
	in_time &= held_end();
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	if (r->call != i_close)
		CHECK_EQ(kb_io_close(fd), 0);
	if (!in_time)
		printf("%s: the other thread did not go on\n", r->what);
	return in_time;
}

int main(int argc, char **argv)
{
	int in_vain = 0;

	(void)argc;
	if (!held_attach()) {
		setenv("KOCHAB_VPS", "1", 1);
		setenv("KOCHAB_IO_URING", "0", 1);
		return held_run(argv, calls, sizeof calls / sizeof *calls);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(name, sizeof name, "./kochab-held-%d", (int)getpid());
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		in_vain += !try_row(&rows[i]);
	CHECK_EQ(in_vain, 0);
	return 0;
}
