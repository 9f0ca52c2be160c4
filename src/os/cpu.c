/* os/cpu.c - processors this process may use. Contract in cpu.h.
 * No stdio, no malloc. */
#include "os/cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/sys.h"

void kbi_cpus_read(int tid, struct kbi_cpus *s)
{
	memset(s, 0, sizeof *s);
	s->bytes = kbi_sys(SYS_sched_getaffinity, tid, sizeof s->bits, s->bits);
}

long kbi_cpus_give(int tid, const struct kbi_cpus *s)
{
	return kbi_sys(SYS_sched_setaffinity, tid, s->bytes, s->bits);
}

long kbi_cpus_give_one(int tid, unsigned cpu, long bytes)
{
	struct kbi_cpus one = { .bytes = bytes };

	kbi_cpus_add(&one, cpu);
	return kbi_cpus_give(tid, &one);
}

unsigned kbi_cpu_affinity(void)
{
	struct kbi_cpus mask;
	unsigned n = 0;

	kbi_cpus_read(0, &mask);
	for (unsigned i = 0; i < kbi_countof(mask.bits); i++)
		n += (unsigned)__builtin_popcountll(mask.bits[i]);
	return n ? n : 1;
}

static bool read_file(const char *path, char *buf, size_t size)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n;

	if (fd < 0)
		return false;
	n = kbi_sys(SYS_read, fd, buf, size - 1);
	kbi_sys(SYS_close, fd);
	buf[n > 0 ? n : 0] = 0;
	return n > 0;
}

static unsigned cpus_of_quota(long quota, long period)
{
	return quota > 0 && period > 0 ? (unsigned)((quota + period - 1) / period) : 0;
}

/* Writes the path of this process's group in the hierarchy whose line in /proc/self/cgroup names
 * these controllers. Returns false if there is no such line. */
static bool group_path(const char *controllers, char *path, size_t size)
{
	char text[4096], *line, *end;

	if (!read_file("/proc/self/cgroup", text, sizeof text))
		return false;
	for (line = text; *line; line = end + (*end != 0)) {
		char *name = strchr(line, ':'), *p = name ? strchr(name + 1, ':') : NULL;

		end = line + strcspn(line, "\n");
		if (!p || p > end || (size_t)(p - name - 1) != strlen(controllers) ||
		    memcmp(name + 1, controllers, (size_t)(p - name - 1)) != 0)
			continue;
		snprintf(path, size, "%.*s", (int)(end - p - 1), p + 1);
		return true;
	}
	return false;
}

static unsigned smaller_limit(unsigned a, unsigned b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Reads the limit of a group: cpu.max in its directory. */
static unsigned read_max(const char *directory)
{
	char file[1200], text[128];
	long quota, period;

	snprintf(file, sizeof file, "%s/cpu.max", directory);
	if (!read_file(file, text, sizeof text) || sscanf(text, "%ld %ld", &quota, &period) != 2)
		return 0;
	return cpus_of_quota(quota, period);
}

/* Reads the limit of a group with version 1, from two files. */
static unsigned read_quota(const char *directory)
{
	char file[1200], text[128];
	long quota;

	snprintf(file, sizeof file, "%s/cpu.cfs_quota_us", directory);
	if (!read_file(file, text, sizeof text))
		return 0;
	quota = atol(text);
	snprintf(file, sizeof file, "%s/cpu.cfs_period_us", directory);
	return read_file(file, text, sizeof text) ? cpus_of_quota(quota, atol(text)) : 0;
}

/* Returns the smallest limit of the group and of all groups above it. A container sees its own
 * group at the mount point, whatever the path says, which may be the host's. */
static unsigned least_limit(const char *mount, char *group,
	unsigned (*read_limit)(const char *directory))
{
	char directory[1100], *slash;
	unsigned least = 0;

	for (;;) {
		snprintf(directory, sizeof directory, "%s%s", mount, group);
		least = smaller_limit(least, read_limit(directory));
		slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

static unsigned quota_v2(void)
{
	char group[1024];

	return group_path("", group, sizeof group) ? least_limit("/sys/fs/cgroup", group, read_max) : 0;
}

static unsigned quota_v1(void)
{
	static const char *const names[] = { "cpu,cpuacct", "cpuacct,cpu", "cpu" };
	char group[1024];

	for (unsigned i = 0; i < kbi_countof(names); i++)
		if (group_path(names[i], group, sizeof group))
			return least_limit("/sys/fs/cgroup/cpu", group, read_quota);
	return 0;
}

unsigned kbi_cpu_quota(void)
{
	unsigned q = quota_v2();

	return q ? q : quota_v1();
}

unsigned kbi_cpu_count(void)
{
	return smaller_limit(kbi_cpu_affinity(), kbi_cpu_quota());
}

bool kbi_cpu_leads_core(unsigned cpu, const struct kbi_cpus *s)
{
	char file[96], text[1024];
	const char *list = text;
	unsigned first, last;

	snprintf(file, sizeof file, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
	if (!read_file(file, text, sizeof text))
		return true;
	while (kbi_cpulist_next(&list, &first, &last))
		for (unsigned i = first; i <= last && i < cpu; i++)
			if (kbi_cpus_has(s, i))
				return false;
	return true;
}

/* ---- idle time ------------------------------------------------------------------------------- */

/* Reads a line "cpuN user nice system idle iowait ..." in clock ticks. */
static bool read_idle(const char *line, unsigned cpu, uint64_t *ns)
{
	const uint64_t tick = 1000000000 / 100; /* USER_HZ: 100 on each machine that Kochab supports */
	unsigned long long user, nice, system, idle, wait;
	unsigned n;

	if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu", &n,
			&user, &nice, &system, &idle, &wait) != 6 || n != cpu)
		return false;
	*ns = (idle + wait) * tick;
	return true;
}

/* Returns the first complete line that begins with `start`, or NULL. */
static const char *find_line(long fd, const char *start, char *text, size_t size)
{
	const char *line;
	size_t kept = 0;
	long n;

	while ((n = kbi_sys(SYS_read, fd, text + kept, size - 1 - kept)) > 0) {
		text[kept + (size_t)n] = 0;
		line = strstr(text, start);
		if (line && strchr(line + 1, '\n'))
			return line;
		line = strrchr(text, '\n'); /* move the beginning of a line in front of the next piece */
		kept = line ? strlen(line) : 0;
		if (line)
			memmove(text, line, kept);
	}
	return NULL;
}

bool kbi_cpu_idle(unsigned cpu, uint64_t *ns)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/stat", O_RDONLY | O_CLOEXEC);
	char text[4096], start[24];
	const char *line;

	if (fd < 0)
		return false;
	snprintf(start, sizeof start, "\ncpu%u ", cpu);
	line = find_line(fd, start, text, sizeof text);
	kbi_sys(SYS_close, fd);
	return line && read_idle(line + 1, cpu, ns);
}
