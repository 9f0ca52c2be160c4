/* kb_io_open of a FIFO, through io_uring and without: it waits for the other end until the
 * deadline or until it is cancelled, and lets other threads run; an other end that is
 * silent, or has gone again, counts as having been there; no byte is taken out, and the
 * descriptor has the requested mode.
 * matrix: vps=1,2 sched=rotator */
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/child.h"
#include "test.h"

enum { SOON_NS = 20000000 };

static char dir[64], fifo[100], name[100];

struct opening {
	const char *path;
	int how, fd;
	uint64_t deadline;
	kb_thread_t thread;
};

static void *opens(void *arg)
{
	struct opening *o = arg;

	o->fd = kb_io_open(o->path, o->how | O_CLOEXEC, 0, o->deadline);
	return NULL;
}

static void begin(struct opening *o, int how)
{
	*o = (struct opening){ .path = fifo, .how = how, .deadline = KB_FOREVER };
	CHECK_EQ(kb_thread_create(&o->thread, NULL, opens, o), 0);
	kb_sleep(SOON_NS / 4); /* most likely the opener waits by now */
}

static int end(struct opening *o)
{
	CHECK_EQ(kb_thread_join(o->thread, NULL), 0);
	if (o->fd >= 0)
		CHECK_EQ(fcntl(o->fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), o->how);
	return o->fd;
}

static void times_out(int how)
{
	uint64_t start = kb_now();

	CHECK_EQ(kb_io_open(fifo, how, 0, start + SOON_NS), -ETIMEDOUT);
	CHECK(kb_now() - start >= SOON_NS);
	CHECK_EQ(kb_io_open(fifo, how, 0, 0), -ETIMEDOUT);
}

static void is_cancelled(int how)
{
	struct opening o;

	begin(&o, how);
	CHECK_EQ(kb_io_cancel(o.thread), 0);
	CHECK_EQ(end(&o), -ECANCELED);
}

/* The waiting opener is there first. */
static void meets(int first)
{
	struct opening o;
	char c[4] = "";
	int fd, r, w;

	begin(&o, first);
	fd = kb_io_open(fifo, first == O_RDONLY ? O_WRONLY : O_RDONLY, 0, KB_FOREVER);
	CHECK(fd >= 0);
	CHECK(end(&o) >= 0); /* nothing has been written yet */
	r = first == O_RDONLY ? o.fd : fd;
	w = first == O_RDONLY ? fd : o.fd;
	CHECK_EQ(kb_io_write(w, "abc", 3, KB_FOREVER), 3);
	CHECK_EQ(kb_io_read(r, c, 3, KB_FOREVER), 3);
	CHECK_EQ(memcmp(c, "abc", 3), 0);
	kb_io_close(w);
	CHECK_EQ(kb_io_read(r, c, 3, KB_FOREVER), 0);
	kb_io_close(r);
}

/* The writer has written and closed before the reader is let in. */
static void has_been_there(const char *text, ssize_t n)
{
	struct opening o;
	char c[8];
	int w;

	begin(&o, O_RDONLY);
	while ((w = open(fifo, O_WRONLY | O_NONBLOCK)) < 0) { /* until the kernel counts the reader */
		CHECK_EQ(errno, ENXIO);
		kb_sleep(100000);
	}
	CHECK_EQ(write(w, text, (size_t)n), n);
	close(w);
	CHECK(end(&o) >= 0);
	CHECK_EQ(kb_io_read(o.fd, c, sizeof c, KB_FOREVER), n);
	CHECK_EQ(memcmp(c, text, (size_t)n), 0);
	kb_io_close(o.fd);
}

/* An open for both ends does not wait, nor does an open that asks not to wait. */
static void waits_for_nobody(void)
{
	int fd = kb_io_open(fifo, O_RDWR, 0, KB_FOREVER), r;

	CHECK(fd >= 0);
	r = kb_io_open(fifo, O_RDONLY, 0, 0); /* a process can write */
	CHECK(r >= 0);
	kb_io_close(r);
	kb_io_close(fd);
	CHECK_EQ(kb_io_open(fifo, O_WRONLY | O_NONBLOCK, 0, KB_FOREVER), -ENXIO);
	r = kb_io_open(fifo, O_RDONLY | O_NONBLOCK, 0, KB_FOREVER);
	CHECK(r >= 0 && fcntl(r, F_GETFL) & O_NONBLOCK);
	kb_io_close(r);
}

static void by_other_names(void)
{
	CHECK_EQ(symlink(fifo, name), 0);
	CHECK_EQ(kb_io_open(name, O_RDONLY, 0, 0), -ETIMEDOUT);
	CHECK_EQ(kb_io_open(name, O_RDONLY | O_NOFOLLOW, 0, 0), -ELOOP);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(kb_io_open(name, O_RDONLY, 0, 0), -ENOENT);
	CHECK_EQ(kb_io_open(fifo, O_RDONLY | O_CREAT | O_EXCL, 0600, KB_FOREVER), -EEXIST);
	CHECK_EQ(kb_io_open(fifo, O_RDONLY | O_DIRECTORY, 0, KB_FOREVER), -ENOTDIR);
}

/* Opens in a kernel thread that is no virtual processor, which waits by itself. */
static void *from_outside(void *unused)
{
	times_out(O_RDONLY);
	times_out(O_WRONLY);
	return unused;
}

static void run(void *unused)
{
	pthread_t k;

	(void)unused;
	CHECK_EQ(kb_init(), 0);
	times_out(O_RDONLY);
	times_out(O_WRONLY);
	is_cancelled(O_RDONLY);
	is_cancelled(O_WRONLY);
	meets(O_RDONLY);
	meets(O_WRONLY);
	has_been_there("abcd", 4);
	has_been_there("", 0);
	waits_for_nobody();
	by_other_names();
	CHECK_EQ(pthread_create(&k, NULL, from_outside, NULL), 0);
	CHECK_EQ(pthread_join(k, NULL), 0);
}

int main(void)
{
	static struct child c;

	snprintf(dir, sizeof dir, "/tmp/kochab-fifo-%d", getpid());
	snprintf(fifo, sizeof fifo, "%s/fifo", dir);
	snprintf(name, sizeof name, "%s/link", dir);
	CHECK_EQ(mkdir(dir, 0700), 0);
	CHECK_EQ(mkfifo(fifo, 0600), 0);
	setenv("KOCHAB_IO_URING", "0", 1);
	child_run(&c, run, NULL);
	child_exited(&c, 0);
	setenv("KOCHAB_IO_URING", "1", 1);
	run(NULL);
	CHECK_EQ(unlink(fifo), 0);
	CHECK_EQ(rmdir(dir), 0);
	return 0;
}
