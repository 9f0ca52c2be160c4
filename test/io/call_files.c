/* kb_io_*: regular files and FIFOs, through io_uring, by hand-off of the worker, where io_uring is
 * forbidden, and from a kernel thread that is no VP: the bytes read are the bytes written, in parts
 * and at once, by many threads; opening a FIFO stops no other thread.
 * matrix: sched=rotator */
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/child.h"
#include "io/no_uring.h"
#include "test.h"

enum { THREADS = 16, SIZE = 300000, BLOCK = 7000 };

static char dir[64];

static void name_of(char *name, unsigned i)
{
	snprintf(name, 100, "%s/%u", dir, i);
}

static void fill(char *b, unsigned i)
{
	for (unsigned k = 0; k < SIZE; k++)
		b[k] = (char)(k * 7 + i);
}

static void by_position(int fd, const char *b, char *r)
{
	struct iovec v[2] = { { r, 100 }, { r + 100, 200 } };

	CHECK_EQ(kb_io_fdatasync(fd, KB_FOREVER), 0);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* so that the data must come from the disk */
	for (unsigned at = 0; at < SIZE; at += BLOCK) {
		unsigned n = SIZE - at < BLOCK ? SIZE - at : BLOCK;

		CHECK_EQ(kb_io_pread(fd, r, BLOCK, at, KB_FOREVER), n); /* the last transfer ends early */
		CHECK_EQ(memcmp(r, b + at, n), 0);
	}
	CHECK_EQ(kb_io_preadv(fd, v, 2, 5000, KB_FOREVER), 300);
	CHECK_EQ(memcmp(r, b + 5000, 300), 0);
	CHECK_EQ(kb_io_pread(fd, r, 10, SIZE, KB_FOREVER), 0);
	CHECK_EQ(kb_io_pread(fd, r, 10, -1, KB_FOREVER), -EINVAL);
	CHECK_EQ(kb_io_pwrite(fd, "xyz", 3, 10, KB_FOREVER), 3);
	CHECK_EQ(kb_io_pread(fd, r, 5, 9, KB_FOREVER), 5);
	CHECK(r[0] == b[9] && memcmp(r + 1, "xyz", 3) == 0 && r[4] == b[13]);
}

static void *writes_and_reads(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;
	char name[100], *b = malloc(SIZE), *r = malloc(SIZE);
	ssize_t n, got = 0;
	int fd;

	name_of(name, i);
	fill(b, i);
	fd = kb_io_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, KB_FOREVER);
	CHECK(fd >= 0);
	CHECK_EQ(kb_io_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, KB_FOREVER), -EEXIST);
	CHECK_EQ(kb_io_write(fd, b, 1000, KB_FOREVER), 1000);
	CHECK_EQ(kb_io_write(fd, b + 1000, SIZE - 1000, KB_FOREVER), SIZE - 1000);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	while ((n = kb_io_read(fd, r + got, SIZE - got < BLOCK ? SIZE - got : BLOCK, KB_FOREVER)) > 0)
		got += n;
	CHECK_EQ(n, 0);
	CHECK_EQ(got, SIZE);
	CHECK_EQ(kb_io_read(fd, r, BLOCK, KB_FOREVER), 0);
	CHECK_EQ(memcmp(b, r, SIZE), 0);
	by_position(fd, b, r);
	CHECK_EQ(kb_io_fsync(fd, KB_FOREVER), 0);
	CHECK_EQ(kb_io_close(fd), 0);
	CHECK_EQ(kb_io_fsync(fd + 1000, KB_FOREVER), -EBADF);
	CHECK_EQ(unlink(name), 0);
	free(b);
	free(r);
	return NULL;
}

static void *opens(void *arg)
{
	return (void *)(intptr_t)kb_io_open(arg, O_RDONLY, 0, KB_FOREVER);
}

static void fifo(void)
{
	char name[100];
	kb_thread_t t;
	void *fd;
	int w;

	name_of(name, 1000);
	CHECK_EQ(mkfifo(name, 0600), 0);
	CHECK_EQ(kb_thread_create(&t, NULL, opens, name), 0);
	kb_sleep(3000000); /* the opener waits, and this thread goes on */
	w = kb_io_open(name, O_WRONLY, 0, KB_FOREVER);
	CHECK(w >= 0);
	CHECK_EQ(kb_thread_join(t, &fd), 0);
	CHECK((intptr_t)fd >= 0);
	CHECK_EQ(kb_io_write(w, "q", 1, KB_FOREVER), 1);
	CHECK_EQ(kb_io_read((int)(intptr_t)fd, name + 90, 9, KB_FOREVER), 1);
	kb_io_close(w);
	kb_io_close((int)(intptr_t)fd);
	name_of(name, 1000);
	CHECK_EQ(unlink(name), 0);
}

static void run(void *arg)
{
	kb_thread_t t[THREADS];
	pthread_t k;

	(void)arg;
	CHECK_EQ(kb_init(), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, writes_and_reads, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	fifo();
	CHECK_EQ(pthread_create(&k, NULL, writes_and_reads, (void *)(uintptr_t)THREADS), 0);
	kb_sleep(1000000);
	CHECK_EQ(pthread_join(k, NULL), 0);
}

/* Runs with io_uring forbidden, as in many containers. */
static void run_forbidden(void *arg)
{
	if (!forbid_uring())
		exit(0); /* filters are not possible here */
	run(arg);
}

int main(void)
{
	static struct child c;

	snprintf(dir, sizeof dir, "/tmp/kochab-io-%d", getpid());
	CHECK_EQ(mkdir(dir, 0700), 0);
	setenv("KOCHAB_IO_URING", "0", 1);
	child_run(&c, run, NULL);
	child_exited(&c, 0);
	setenv("KOCHAB_IO_URING", "1", 1);
	child_run(&c, run_forbidden, NULL);
	child_exited(&c, 0);
	run(NULL);
	CHECK_EQ(rmdir(dir), 0);
	return 0;
}
