/* io/fifo.c - a FIFO opened without waiting, and then polled until the other end
 * exists. Contract in fifo.h.
 * Callers: io/file. Runs on the opening thread; may switch.
 *
 * A reader is in at once, and the kernel counts it like a waiting reader. Poll reports that a
 * writer has come (bytes, or it has gone again); for a silent writer tee does, which takes nothing
 * out and says EAGAIN where a process can still write. A writer is let in as soon as there is a
 * reader. In between the thread sleeps, longer and longer.
 *
 * Not chosen: the call that waits, on a kernel thread of its own, ended by a signal at the
 * deadline. A signal that comes before the kernel waits ends nothing, and a thread that gets the
 * descriptor afterwards does not know that it is too late. */
#include "io/fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include "io/ready.h"
#include "os/sys.h"

enum { PAUSE_MIN = 50000, PAUSE_MAX = 4000000 }; /* ns */

/* Returns whether path is a FIFO. Follows no link where open would not:
 * such a path is no FIFO then. */
static bool is_fifo_at(const char *path, int flags)
{
	struct stat st;

	return (flags & O_NOFOLLOW ? lstat(path, &st) : stat(path, &st)) == 0 && S_ISFIFO(st.st_mode);
}

static bool is_fifo(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static int open_now(const char *path, int flags, mode_t mode)
{
	return (int)kbi_sys(SYS_openat, AT_FDCWD, path, flags | O_NONBLOCK, mode);
}

static void close_fifo_end(int fd)
{
	kbi_sys(SYS_close, fd);
}

/* Sleeps; other threads run meanwhile, unless the caller has to wait by itself. */
static int sleep_until(struct kbi_until until, uint64_t now)
{
	struct kbi_task *self = kbi_self();
	struct timespec left = kbi_sys_timespec(until.deadline - now);
	int e;

	if (!kbi_ready_outside(self))
		return kbi_waitq_sleep(self, until);
	e = until.stop ? until.stop(self) : 0;
	if (!e)
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &left, NULL);
	return e;
}

/* Sleeps once more. Returns 0, or why the wait ends. */
static int pause_once(struct kbi_until until, uint64_t *pause)
{
	uint64_t now = kbi_timer_now(), end = now + *pause;
	int e = 0;

	if (now >= until.deadline)
		return ETIMEDOUT;
	until.deadline = end < until.deadline ? end : until.deadline;
	for (; now < until.deadline && (!e || e == EAGAIN); now = kbi_timer_now())
		e = sleep_until(until, now);
	*pause = *pause < PAUSE_MAX / 2 ? *pause * 2 : PAUSE_MAX;
	return e == ETIMEDOUT || e == EAGAIN ? 0 : e;
}

/* Returns whether a writer exists, or has existed since fd was opened. beside: a pipe for tee. */
static bool has_met_writer(int fd, int beside)
{
	long r;

	if (kbi_sys_is_ready(fd, POLLIN))
		return true;
	/* a signal that comes meanwhile also ends this call before the kernel
	 * reports that no writer exists */
	do
		r = kbi_sys(SYS_tee, fd, beside, 1, SPLICE_F_NONBLOCK);
	while (r == -EINTR);
	return r != 0;
}

static int await_writer(int fd, struct kbi_until until)
{
	uint64_t pause = PAUSE_MIN;
	int pipe[2], e = (int)-kbi_sys(SYS_pipe2, pipe, O_CLOEXEC);

	if (e)
		return e;
	while (!e && !has_met_writer(fd, pipe[1]))
		e = pause_once(until, &pause);
	close_fifo_end(pipe[0]);
	close_fifo_end(pipe[1]);
	return e;
}

static int open_to_write(const char *path, int flags, mode_t mode, struct kbi_until until)
{
	uint64_t pause = PAUSE_MIN;
	int fd, e = 0;

	while (!e && (fd = open_now(path, flags, mode)) == -ENXIO)
		e = pause_once(until, &pause);
	return e ? -e : fd;
}

static int await_other_end(int fd, struct kbi_until until)
{
	int e = await_writer(fd, until);

	if (!e)
		return fd;
	close_fifo_end(fd);
	return -e;
}

static int open_to_read(const char *path, int flags, mode_t mode, struct kbi_until until)
{
	int fd = open_now(path, flags, mode);

	return fd < 0 || !is_fifo(fd) ? fd : await_other_end(fd, until);
}

static bool open_would_wait(int flags)
{
	int how = flags & O_ACCMODE;

	return !(flags & (O_NONBLOCK | O_PATH)) && (how == O_RDONLY || how == O_WRONLY);
}

bool kbi_fifo_open(const char *path, int flags, mode_t mode, struct kbi_until until, int *fd)
{
	bool reads = (flags & O_ACCMODE) == O_RDONLY;

	if (!open_would_wait(flags) || !is_fifo_at(path, flags))
		return false;
	*fd = (reads ? open_to_read : open_to_write)(path, flags, mode, until);
	if (*fd < 0)
		return true;
	if (is_fifo(*fd)) {
		/* the open file belongs to the caller alone yet: no thread sees its mode change */
		kbi_sys(SYS_fcntl, *fd, F_SETFL, flags);
		return true;
	}
	close_fifo_end(*fd); /* the name means a different file by now */
	return false;
}

int kbi_fifo_opened(int fd, const char *path, int flags, mode_t mode, struct kbi_until until)
{
	int other;

	if (fd == -ENXIO && kbi_fifo_open(path, flags, mode, until, &other))
		return other;
	if (fd < 0 || !open_would_wait(flags) || (flags & O_ACCMODE) != O_RDONLY || !is_fifo(fd))
		return fd;
	return await_other_end(fd, until);
}
