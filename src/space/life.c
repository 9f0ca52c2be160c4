/* space/life.c - does a process live? Contract in life.h. */
#include "space/life.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/newer.h"
#include "os/sys.h"

enum { STATE = 3, START = 22 }; /* fields of /proc/PID/stat, from 1 */

/* Behind the name in brackets, in which anything may stand. */
static const char *field(char *line, int n)
{
	char *at = strrchr(line, ')');

	for (int i = 2; at && i < n; i++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : NULL;
}

static bool read_stat(uint32_t pid, char *line, size_t size)
{
	char path[32];
	long fd, n;

	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = kbi_sys(SYS_read, fd, line, size - 1);
	kbi_sys(SYS_close, fd);
	line[n > 0 ? n : 0] = 0;
	return n > 0;
}

uint64_t kbi_space_life_start(uint32_t pid)
{
	char line[512];
	const char *at = read_stat(pid, line, sizeof line) ? field(line, START) : NULL;

	return at ? strtoull(at, NULL, 10) : 0;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec now = { 0, 0 };

	return kbi_sys(SYS_ppoll, &p, 1, &now) == 1;
}

int kbi_space_life_open(uint32_t pid, uint64_t start)
{
	int fd = (int)kbi_sys(SYS_pidfd_open, pid, 0);
	uint64_t now;

	if (fd < 0)
		return fd;
	now = kbi_space_life_start(pid);
	if (readable(fd) || (start && now && now != start)) {
		kbi_sys(SYS_close, fd);
		return -ESRCH;
	}
	return fd;
}

/* No descriptor to be had: by what /proc says. */
static bool is_over_by_stat(uint32_t pid, uint64_t start)
{
	char line[512];
	const char *at;

	if (kbi_sys(SYS_kill, pid, 0) == -ESRCH)
		return true;
	if (!read_stat(pid, line, sizeof line))
		return false;
	at = field(line, STATE);
	if (at && (*at == 'Z' || *at == 'X'))
		return true;
	at = field(line, START);
	return at && start && strtoull(at, NULL, 10) != start;
}

bool kbi_space_life_is_over(uint32_t pid, uint64_t start)
{
	int fd = kbi_space_life_open(pid, start);

	if (fd >= 0)
		kbi_sys(SYS_close, fd);
	return fd == -ESRCH || (fd < 0 && is_over_by_stat(pid, start));
}
