/* posix/call: calls on files that last, as if a disk did not answer: writes with O_SYNC and
 * O_DSYNC, all with O_DIRECT, fsync and similar calls, calls that change files, their lengths and
 * names. While a thread is in such a call another thread of its virtual processor runs, without
 * help by the tick. A signal and a cancellation end exactly the calls that they end on libc; fork
 * and exit do not wait for them. A write that finds too little room returns the part that it has
 * written.
 * matrix: vps=1 sched=rotator,steal */
#include "core/held.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { BLOCK = 4096 };
enum { PLAIN, DSYNC = O_DSYNC, SYNC = O_SYNC, DIRECT = O_DIRECT };

static char buffer[2 * BLOCK] __attribute__((aligned(BLOCK)));
static struct iovec two[2] = { { buffer, BLOCK }, { buffer + BLOCK, BLOCK } };
static char name[64], other[72], folder[72];
static int fd, source, out;
static FILE *stream;
static void *mapped;

/* ---- the calls: the result that the program sees ------------------------------------------ */

static long p_write(void) { return write(fd, buffer, BLOCK); }
static long p_writev(void) { return writev(fd, two, 2); }
static long p_pwrite(void) { return pwrite(fd, buffer, BLOCK, BLOCK); }
static long p_pwrite64(void) { return pwrite64(fd, buffer, BLOCK, BLOCK); }
static long p_pwritev(void) { return pwritev(fd, two, 2, BLOCK); }
static long p_pwritev2(void) { return pwritev2(fd, two, 2, BLOCK, 0); }
static long p_pwritev2_safe(void) { return pwritev2(fd, two, 2, BLOCK, RWF_DSYNC); }
static long p_read(void) { return read(fd, buffer, BLOCK); }
static long p_readv(void) { return readv(fd, two, 2); }
static long p_pread(void) { return pread(fd, buffer, BLOCK, BLOCK); }
static long p_preadv(void) { return preadv(fd, two, 2, BLOCK); }
static long p_preadv2(void) { return preadv2(fd, two, 2, BLOCK, 0); }
static long p_fflush(void)
{
	clearerr(stream);
	return fputc('x', stream) == EOF ? -1 : fflush(stream);
}
static long p_fsync(void) { return fsync(fd); }
static long p_fdatasync(void) { return fdatasync(fd); }
static long p_syncfs(void) { return syncfs(fd); }
static long p_sync(void) { sync(); return 0; }
static long p_sync_file_range(void) { return sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE); }
static long p_msync(void) { return msync(mapped, BLOCK, MS_SYNC); }
static long p_close(void) { return close(fd); }
static long p_fallocate(void) { return fallocate(fd, 0, 0, BLOCK); }
static long p_posix_fallocate(void) { return posix_fallocate(fd, 0, BLOCK); }
static long p_ftruncate(void) { return ftruncate(fd, BLOCK); }
static long p_ftruncate64(void) { return ftruncate64(fd, BLOCK); }
static long p_truncate(void) { return truncate(name, BLOCK); }
static long p_fadvise(void) { return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }
static long p_readahead(void) { return readahead(fd, 0, BLOCK); }
static long p_copy(void)
{
	return copy_file_range(fd, &(off64_t){ 0 }, out, &(off64_t){ 0 }, BLOCK, 0);
}
static long p_sendfile(void) { return sendfile(fd, source, &(off_t){ 0 }, BLOCK); }
static long p_unlink(void) { return unlink(name); }
static long p_unlinkat(void) { return unlinkat(AT_FDCWD, name, 0); }
static long p_remove(void) { return remove(name); }
static long p_rmdir(void) { return rmdir(folder); }
static long p_rename(void) { return rename(name, other); }
static long p_renameat(void) { return renameat(AT_FDCWD, name, AT_FDCWD, other); }
static long p_renameat2(void) { return renameat2(AT_FDCWD, name, AT_FDCWD, other, 0); }
static long p_link(void) { return link(name, other); }
static long p_linkat(void) { return linkat(AT_FDCWD, name, AT_FDCWD, other, 0); }
static long p_symlink(void) { return symlink("nowhere", other); }
static long p_symlinkat(void) { return symlinkat("nowhere", AT_FDCWD, other); }
static long p_mkdir(void) { return mkdir(other, 0700); }
static long p_mkdirat(void) { return mkdirat(AT_FDCWD, other, 0700); }
static long p_open(void)
{
	int new = open(other, O_RDWR | O_CREAT, 0600);

	return new < 0 ? -1 : close(new);
}
static long n_write(void) { return syscall(SYS_write, fd, buffer, BLOCK); }
static long n_pwrite(void) { return syscall(SYS_pwrite64, fd, buffer, BLOCK, BLOCK); }
static long n_pread(void) { return syscall(SYS_pread64, fd, buffer, BLOCK, BLOCK); }
static long n_pwritev2(void) { return syscall(SYS_pwritev2, fd, two, 2, 0, 0, RWF_DSYNC); }
static long n_fdatasync(void) { return syscall(SYS_fdatasync, fd); }
static long n_ftruncate(void) { return syscall(SYS_ftruncate, fd, BLOCK); }
static long n_fallocate(void) { return syscall(SYS_fallocate, fd, 0, 0, BLOCK); }
static long n_unlinkat(void) { return syscall(SYS_unlinkat, AT_FDCWD, name, 0); }
static long n_renameat2(void) { return syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, other, 0); }
static long n_mkdirat(void) { return syscall(SYS_mkdirat, AT_FDCWD, other, 0700); }

enum how {
	LATER = 1,   /* the file gets the flag by F_SETFL */
	COPIED = 2,  /* and its number by dup */
	GONE = 4,    /* the file has no name any more */
	CODE = 8,    /* the result is the error number */
	SILENT = 16, /* the call has no result */
};

static const struct row {
	const char *what;
	long (*call)(void);
	long result;
	bool cancels;
	int flags, how;
	const void *key; /* NULL: the file's number */
} rows[] = {
	{ "write, O_DSYNC", p_write, BLOCK, true, DSYNC, 0, NULL },
	{ "write, O_SYNC", p_write, BLOCK, true, SYNC, 0, NULL },
	{ "write, O_DIRECT", p_write, BLOCK, true, DIRECT, 0, NULL },
	{ "write, O_DSYNC, copied", p_write, BLOCK, true, DSYNC, COPIED, NULL },
	{ "writev, O_DSYNC", p_writev, 2 * BLOCK, true, DSYNC, 0, NULL },
	{ "pwrite, O_DSYNC", p_pwrite, BLOCK, true, DSYNC, 0, NULL },
	{ "pwrite, O_DSYNC, copied", p_pwrite, BLOCK, true, DSYNC, COPIED, NULL },
	{ "pwrite64, O_SYNC", p_pwrite64, BLOCK, true, SYNC, 0, NULL },
	{ "pwritev, O_DSYNC", p_pwritev, 2 * BLOCK, true, DSYNC, 0, NULL },
	{ "pwritev2, O_DSYNC", p_pwritev2, 2 * BLOCK, true, DSYNC, 0, NULL },
	{ "pwritev2, RWF_DSYNC", p_pwritev2_safe, 2 * BLOCK, true, PLAIN, 0, NULL },
	{ "read, O_DIRECT", p_read, BLOCK, true, DIRECT, 0, NULL },
	{ "readv, O_DIRECT", p_readv, 2 * BLOCK, true, DIRECT, 0, NULL },
	{ "pread, O_DIRECT", p_pread, BLOCK, true, DIRECT, 0, NULL },
	{ "pread, O_DIRECT later", p_pread, BLOCK, true, DIRECT, LATER, NULL },
	{ "preadv, O_DIRECT", p_preadv, 2 * BLOCK, true, DIRECT, 0, NULL },
	{ "preadv2, O_DIRECT", p_preadv2, 2 * BLOCK, true, DIRECT, 0, NULL },
	{ "fflush, O_DSYNC", p_fflush, 0, true, DSYNC, 0, NULL },
	{ "fsync", p_fsync, 0, true, PLAIN, 0, NULL },
	{ "fdatasync", p_fdatasync, 0, true, PLAIN, 0, NULL },
	{ "syncfs", p_syncfs, 0, false, PLAIN, 0, NULL },
	{ "sync", p_sync, 0, false, PLAIN, SILENT, NULL },
	{ "sync_file_range", p_sync_file_range, 0, true, PLAIN, 0, NULL },
	{ "msync", p_msync, 0, true, PLAIN, 0, &mapped },
	{ "close", p_close, 0, true, PLAIN, GONE, NULL },
	{ "fallocate", p_fallocate, 0, true, PLAIN, 0, NULL },
	{ "posix_fallocate", p_posix_fallocate, 0, false, PLAIN, CODE, NULL },
	{ "ftruncate", p_ftruncate, 0, false, PLAIN, 0, NULL },
	{ "ftruncate64", p_ftruncate64, 0, false, PLAIN, 0, NULL },
	{ "truncate", p_truncate, 0, false, PLAIN, 0, name },
	{ "posix_fadvise", p_fadvise, 0, false, PLAIN, CODE, NULL },
	{ "readahead", p_readahead, 0, false, PLAIN, 0, NULL },
	{ "copy_file_range", p_copy, BLOCK, true, PLAIN, 0, NULL },
	{ "sendfile", p_sendfile, BLOCK, false, PLAIN, 0, NULL },
	{ "unlink", p_unlink, 0, false, PLAIN, 0, name },
	{ "unlinkat", p_unlinkat, 0, false, PLAIN, 0, name },
	{ "remove", p_remove, 0, false, PLAIN, 0, name },
	{ "rmdir", p_rmdir, 0, false, PLAIN, 0, folder },
	{ "rename", p_rename, 0, false, PLAIN, 0, name },
	{ "renameat", p_renameat, 0, false, PLAIN, 0, name },
	{ "renameat2", p_renameat2, 0, false, PLAIN, 0, name },
	{ "link", p_link, 0, false, PLAIN, 0, name },
	{ "linkat", p_linkat, 0, false, PLAIN, 0, name },
	{ "symlink", p_symlink, 0, false, PLAIN, 0, other },
	{ "symlinkat", p_symlinkat, 0, false, PLAIN, 0, other },
	{ "mkdir", p_mkdir, 0, false, PLAIN, 0, other },
	{ "mkdirat", p_mkdirat, 0, false, PLAIN, 0, other },
	{ "open", p_open, 0, true, PLAIN, 0, other },
	{ "SYS_write, O_DSYNC", n_write, BLOCK, false, DSYNC, 0, NULL },
	{ "SYS_pwrite64, O_DSYNC", n_pwrite, BLOCK, false, DSYNC, 0, NULL },
	{ "SYS_pread64, O_DIRECT", n_pread, BLOCK, false, DIRECT, 0, NULL },
	{ "SYS_pwritev2, RWF_DSYNC", n_pwritev2, 2 * BLOCK, false, PLAIN, 0, NULL },
	{ "SYS_fdatasync", n_fdatasync, 0, false, PLAIN, 0, NULL },
	{ "SYS_ftruncate", n_ftruncate, 0, false, PLAIN, 0, NULL },
	{ "SYS_fallocate", n_fallocate, 0, false, PLAIN, 0, NULL },
	{ "SYS_unlinkat", n_unlinkat, 0, false, PLAIN, 0, name },
	{ "SYS_renameat2", n_renameat2, 0, false, PLAIN, 0, name },
	{ "SYS_mkdirat", n_mkdirat, 0, false, PLAIN, 0, other },
};

static const int calls[] = {
	SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_read, SYS_readv,
	SYS_pread64, SYS_preadv, SYS_preadv2, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync,
	SYS_sync_file_range, SYS_msync, SYS_close, SYS_fallocate, SYS_ftruncate, SYS_truncate,
	SYS_fadvise64, SYS_readahead, SYS_copy_file_range, SYS_sendfile,
	SYS_unlinkat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_mkdirat, SYS_openat,
#ifdef SYS_renameat
	SYS_renameat,
#endif
#ifdef SYS_unlink
	SYS_unlink, SYS_rmdir, SYS_rename, SYS_link, SYS_symlink, SYS_mkdir, SYS_open,
#endif
};

/* ---- a file for each call ----------------------------------------------------------------- */

static void remove_all(void)
{
	unlink(name);
	unlink(other);
	rmdir(other);
	rmdir(folder);
}

/* Makes a file of four blocks. False: its file system has no O_DIRECT. */
static bool prepare(const struct row *r)
{
	remove_all();
	fd = open(name, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(pwrite(fd, buffer, sizeof buffer, 0), sizeof buffer);
	CHECK_EQ(pwrite(fd, buffer, sizeof buffer, sizeof buffer), sizeof buffer);
	CHECK_EQ(mkdir(folder, 0700), 0);
	source = open(name, O_RDONLY);
	out = open("/dev/null", O_WRONLY);
	mapped = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(source >= 0 && out >= 0 && mapped != MAP_FAILED);
	if (r->call == p_copy) {
		close(out);
		out = open(other, O_RDWR | O_CREAT, 0600);
	}
	if (r->how & LATER)
		return fcntl(fd, F_SETFL, r->flags) == 0;
	if (r->flags) {
		close(fd);
		fd = open(name, O_RDWR | r->flags);
		if (fd < 0)
			return false;
	}
	if (r->how & COPIED) {
		int first = fd;

		fd = dup(first);
		close(first);
	}
	if (r->call == p_fflush)
		stream = fdopen(fd, "w");
	if (r->how & GONE) {
		close(source);
		munmap(mapped, BLOCK);
		CHECK_EQ(unlink(name), 0);
	}
	return true;
}

static void clean_up(const struct row *r)
{
	if (r->call == p_fflush)
		fclose(stream);
	else if (r->call != p_close)
		close(fd);
	if (!(r->how & GONE)) {
		close(source);
		munmap(mapped, BLOCK);
	}
	close(out);
	remove_all();
}

/* ---- a thread in a call ------------------------------------------------------------------- */

static pthread_barrier_t both;
static long result;
static int error;

static void *calls_it(void *arg)
{
	const struct row *r = arg;

	pthread_barrier_wait(&both);
	errno = 0;
	result = r->call();
	error = errno;
	return NULL;
}

static void nothing(int sig) { (void)sig; }

/* False: this thread came too late. */
static bool await_call(uint32_t before)
{
	uint64_t since = test_now_ns();

	while (HELD_GET(count) == before && !HELD_GET(late) &&
		test_now_ns() - since < HELD_PATIENCE_MS * 1000000ull)
		usleep(200);
	return HELD_GET(count) != before && !HELD_GET(late);
}

static pthread_t begin(const struct row *r)
{
	pthread_t t;

	held_begin(!r->key ? (uint64_t)fd : r->key == &mapped ? (uint64_t)(uintptr_t)mapped
		: (uint64_t)(uintptr_t)r->key);
	CHECK_EQ(pthread_create(&t, NULL, calls_it, (void *)r), 0);
	pthread_barrier_wait(&both);
	return t;
}

static void has_succeeded(const struct row *r, pthread_t t)
{
	void *value;

	CHECK_EQ(pthread_join(t, &value), 0);
	CHECK(value == NULL);
	if (result != r->result)
		printf("%s: %ld, error %d\n", r->what, result, error);
	CHECK_EQ(result, r->result);
	CHECK_EQ(error, 0);
}

static bool goes_on_beside(const struct row *r)
{
	pthread_t t = begin(r);
	bool in_time = await_call(0);

	if (in_time && (r - rows) % 16 == 0) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(7);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(WEXITSTATUS(status), 7);
	}
	in_time &= held_end();
	has_succeeded(r, t);
	return in_time;
}

static void is_interrupted(const struct row *r)
{
	pthread_t t = begin(r);

	CHECK(await_call(0));
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	held_end();
	if (r->how & SILENT)
		return;
	if (r->how & CODE ? result != EINTR : result != -1 || error != EINTR)
		printf("%s, a signal: %ld, error %d\n", r->what, result, error);
	CHECK_EQ(r->how & CODE ? result : error, EINTR);
}

/* A signal with SA_RESTART, and a cancellation where the call is no cancellation point, leave the
 * call going on. */
static void is_restarted(const struct row *r)
{
	pthread_t t = begin(r);

	CHECK(await_call(0));
	CHECK_EQ(pthread_kill(t, SIGUSR2), 0);
	CHECK(await_call(1));
	if (!r->cancels) {
		CHECK_EQ(pthread_cancel(t), 0);
		usleep(1000);
	}
	CHECK(held_end());
	has_succeeded(r, t);
}

static void is_cancelled(const struct row *r)
{
	pthread_t t = begin(r);
	void *value;

	CHECK(await_call(0));
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &value), 0);
	held_end();
	if (value != PTHREAD_CANCELED)
		printf("%s: not cancelled\n", r->what);
	CHECK(value == PTHREAD_CANCELED);
}

static bool try_all(const struct row *r)
{
	bool went_on = true;

	for (int way = 0; way < 4 && went_on; way++) {
		if (!prepare(r)) {
			printf("%s: not here\n", r->what);
			clean_up(r);
			return true;
		}
		if (way == 0)
			went_on = goes_on_beside(r);
		else if (way == 1)
			is_interrupted(r);
		else if (way == 2)
			is_restarted(r);
		else if (r->cancels)
			is_cancelled(r);
		clean_up(r);
	}
	if (!went_on)
		printf("%s: the other thread did not go on\n", r->what);
	return went_on;
}

static volatile int too_large;

static void count(int sig) { too_large += sig == SIGXFSZ; }

/* A file may grow to 1.5 blocks: a write of two blocks returns the part that fits, and no signal
 * comes. */
static void *grows(void *arg)
{
	const struct rlimit old = *(const struct rlimit *)arg;

	for (int flags = 0;; flags = O_DSYNC) {
		fd = open(name, O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
		CHECK(fd >= 0);
		CHECK_EQ(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ BLOCK * 3 / 2, old.rlim_max }), 0);
		CHECK_EQ(write(fd, buffer, sizeof buffer), BLOCK * 3 / 2);
		CHECK_EQ(too_large, 0);
		CHECK_EQ(write(fd, buffer, sizeof buffer), -1);
		CHECK_EQ(errno, EFBIG);
		CHECK_EQ(too_large, 1);
		CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(unlink(name), 0);
		if (flags)
			return NULL;
		too_large = 0;
	}
}

static void set_handlers(void)
{
	struct sigaction ends = { .sa_handler = nothing },
		restarts = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	struct sigaction counts = { .sa_handler = count };

	CHECK_EQ(sigaction(SIGXFSZ, &counts, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &ends, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &restarts, NULL), 0);
}

/* Ends the process during a call. */
static void try_rows(void)
{
	enum { ENOUGH = 4 };
	struct rlimit limit;
	int in_vain = 0;
	pthread_t t;

	snprintf(name, sizeof name, "./kochab-held-%d", (int)getpid());
	snprintf(other, sizeof other, "%s-2", name);
	snprintf(folder, sizeof folder, "%s-3", name);
	set_handlers();
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK_EQ(pthread_barrier_init(&both, NULL, 2), 0);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(pthread_create(&t, NULL, grows, &limit), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows && in_vain < ENOUGH; i++)
		in_vain += !try_all(&rows[i]);
	CHECK_EQ(in_vain, 0);
	CHECK(prepare(&rows[0]));
	begin(&rows[0]);
	CHECK(await_call(0));
	remove_all();
	exit(0);
}

int main(int argc, char **argv)
{
	(void)argc;
	if (held_attach())
		try_rows();
	/* a single virtual processor, no tick that finds the call, and no io_uring, with which the
	 * thread would not be in the call */
	setenv("KOCHAB_IO_URING", "0", 1);
	setenv("KOCHAB_VPS", "1", 1);
	setenv("KOCHAB_QUANTUM", "0", 1);
	return held_run(argv, calls, sizeof calls / sizeof *calls);
}
