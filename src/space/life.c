/* space/life.c - whether a process lives. Contract in life.h.
 * Callers: see life.h. Reads /proc/PID/stat and opens pidfds by raw system calls. */
#include "space/life.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/newer.h"
#include "os/sys.h"

enum { PID_BITS = 22, MOST_PIDS = (1 << PID_BITS) - 1 }; /* the kernel's limit of pids */

/* Bit of a start time: the entry was made at that time by a process that could not read its start,
 * which was earlier. */
#define JOINED (UINT64_C(1) << 41)

enum { STATE = 3, START = 22 }; /* numbers of fields of /proc/PID/stat, from 1 */

/* Returns the n-th field. Fields are counted behind the name in brackets, which
 * may contain any characters. */
static const char *stat_field(char *line, int n)
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
	KBI_FD_BRIEFLY();

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
	const char *at = read_stat(pid, line, sizeof line) ? stat_field(line, START) : NULL;

	return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t kbi_space_life_own_start(uint32_t pid)
{
	uint64_t start = kbi_space_life_start(pid);
	struct timespec ts = { 0, 0 };

	if (start)
		return start;
	kbi_sys(SYS_clock_gettime, CLOCK_BOOTTIME, &ts);
	return JOINED | ((uint64_t)ts.tv_sec + 1) * (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Returns whether the pid now belongs to a different process than the entry. now: the
 * start time in /proc, 0: none. */
static bool is_pid_reused(uint64_t start, uint64_t now)
{
	if (!now)
		return false;
	return start & JOINED ? now > (start & ~JOINED) : now != start;
}

/* Returns whether no process can have written these values. */
static bool is_invalid_identity(uint32_t pid, uint64_t start)
{
	return pid == 0 || pid > MOST_PIDS || start == 0;
}

int kbi_space_life_open(uint32_t pid, uint64_t start)
{
	int fd = is_invalid_identity(pid, start) ? -ESRCH : (int)kbi_sys(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return fd;
	if (kbi_sys_is_ready(fd, POLLIN) || is_pid_reused(start, kbi_space_life_start(pid))) {
		kbi_sys(SYS_close, fd);
		return -ESRCH;
	}
	return fd;
}

/* Decides by /proc, where no descriptor can be had. */
static bool is_over_by_stat(uint32_t pid, uint64_t start)
{
	char line[512];
	const char *at;

	if (kbi_sys(SYS_kill, pid, 0) == -ESRCH)
		return true;
	if (!read_stat(pid, line, sizeof line))
		return false;
	at = stat_field(line, STATE);
	if (at && (*at == 'Z' || *at == 'X'))
		return true;
	at = stat_field(line, START);
	return at && is_pid_reused(start, strtoull(at, NULL, 10));
}

bool kbi_space_life_is_over(uint32_t pid, uint64_t start)
{
	int fd = kbi_space_life_open(pid, start);

	if (fd >= 0)
		kbi_sys(SYS_close, fd);
	return fd == -ESRCH || (fd < 0 && is_over_by_stat(pid, start));
}

uint64_t kbi_space_life_identity(uint32_t pid, uint64_t start)
{
	return start << PID_BITS | pid;
}

bool kbi_space_life_is_gone(uint64_t identity)
{
	return kbi_space_life_is_over(identity & MOST_PIDS, identity >> PID_BITS);
}
