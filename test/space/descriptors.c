/* space/file, space/member: the library's descriptors of a space: a child of fork has none of them,
 * nor has an executed program; where the program closes them all and reuses their numbers, the new
 * files are neither read, written nor closed, and growth reports that.
 * matrix: none
 * body: thread */
#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "space_test.h"

enum { MOST = 2048, LOW = 900, VALUE = 5 };

static bool had[MOST];

static int pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Stores the open numbers in open_now and counts those that were not open before (had). */
static unsigned look(bool *open_now)
{
	unsigned n = 0;

	for (int fd = 0; fd < MOST; fd++) {
		open_now[fd] = fcntl(fd, F_GETFD) >= 0;
		n += open_now[fd] && !had[fd];
	}
	return n;
}

static void child_has_none(void)
{
	bool now[MOST];
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(look(now) != 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* Lets a process attach and detach: so the watchman is called. */
static void visit(void)
{
	pid_t pid = peer("visitor", NULL);

	peer_ends(pid);
	usleep(20000);
}

/* The program has a descriptor of a process of its own under the number of ours for a peer: that
 * descriptor is not closed. */
static void take_pidfd(void)
{
	int own = pidfd(getpid()), at = -1;
	char path[40], name[64];
	pid_t pid = peer("stays", NULL);

	usleep(100000);
	for (int fd = LOW; fd < MOST; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		memset(name, 0, sizeof name);
		if (!had[fd] && readlink(path, name, sizeof name - 1) > 0 && strstr(name, "pidfd"))
			at = fd;
	}
	if (own >= 0 && at >= 0)
		CHECK_EQ(dup3(own, at, O_CLOEXEC), at);
	peer_kill(pid);
	visit();
	if (own >= 0 && at >= 0) {
		CHECK(fcntl(at, F_GETFD) >= 0);
		close(at);
	}
	if (own >= 0)
		close(own);
}

static void take_numbers(kb_space_t *s)
{
	bool ours[MOST];
	uint64_t value;
	void *more;
	int bell = eventfd(VALUE, EFD_NONBLOCK | EFD_CLOEXEC);

	CHECK(bell >= 0);
	had[bell] = true;
	CHECK(look(ours) >= 2);
	for (int fd = 0; fd < MOST; fd++)
		if (ours[fd] && !had[fd])
			CHECK_EQ(dup3(bell, fd, O_CLOEXEC), fd);
	visit();
	CHECK_EQ(kb_space_memory_open(s, "more", 3 << 20, &more), EBADF);
	CHECK_EQ(kb_space_detach(s), 0);
	for (int fd = 0; fd < MOST; fd++)
		if (ours[fd] && !had[fd])
			CHECK(fcntl(fd, F_GETFD) >= 0);
	CHECK_EQ(read(bell, &value, sizeof value), sizeof value);
	CHECK_EQ(value, VALUE);
}

int main(int argc, char **argv)
{
	kb_space_t *s;
	bool now[MOST];

	if (argc > 2) {
		s = space_join(argv[2]);
		if (strcmp(argv[1], "stays") == 0)
			pause();
		CHECK_EQ(kb_space_detach(s), 0);
		return 0;
	}
	look(had);
	s = space_new(NULL);
	atexit(space_gone);
	child_has_none();
	CHECK(look(now) >= 2);
	for (int fd = 0; fd < MOST; fd++) {
		CHECK(!now[fd] || had[fd] || fd >= LOW);
		CHECK(!now[fd] || had[fd] || fcntl(fd, F_GETFD) == FD_CLOEXEC);
	}
	visit();
	take_pidfd();
	take_numbers(s);
	return 0;
}
