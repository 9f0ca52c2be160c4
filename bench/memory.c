/* bench/memory.c - how many bytes does a parked thread hold? N threads wait on a semaphore; the
 * growth of the resident set, of the page tables (the kernel's, not in the resident set) and of the
 * control group's memory (everything, also other programs' of the group) / N. If not all threads
 * can be created, the figure is for those that could, and the note says how many. */
#include <stdlib.h>

#include "crew.h"

/* First number after `key` in the file, in bytes if it says kB; -1: not there. */
static double number_in(const char *path, const char *key)
{
	char line[512];
	double v = -1;
	FILE *f = fopen(path, "r");

	while (f && v < 0 && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			v = strtod(line + strlen(key), NULL) * (strstr(line, " kB") ? 1024 : 1);
	if (f)
		fclose(f);
	return v;
}

static double resident(void)
{
	double v = number_in("/proc/self/smaps_rollup", "Rss:");

	return v >= 0 ? v : number_in("/proc/self/status", "VmRSS:");
}

static double cgroup(void)
{
	char line[512], path[768] = "";
	FILE *f = fopen("/proc/self/cgroup", "r");

	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "0::", 3) == 0 && !path[0])
			snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", line + 3);
		else if (strstr(line, ":memory:"))
			snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.usage_in_bytes",
				strstr(line, ":memory:") + 8);
	}
	if (f)
		fclose(f);
	return number_in(path, "");
}

static void report(const char *metric, double before, double after, unsigned n)
{
	if (before >= 0 && after >= 0)
		bench_report(metric, "B", (after - before) / n);
}

static void run(const struct bench_case *c, enum crew kind)
{
	struct crew_attr attr;
	unsigned made;
	int error;

	crew_start(&attr, kind, c);
	double rss = resident(), tables = number_in("/proc/self/status", "VmPTE:"), group = cgroup();
	struct crew_park *p = crew_park(kind, c, &made, &error);
	double list = (double)c->threads * sizeof(uintptr_t); /* the bench's own */
	if (made == 0)
		bench_skip("no thread could be created: %s", strerror(error));
	report("resident", rss + list, resident(), made);
	report("page-tables", tables, number_in("/proc/self/status", "VmPTE:"), made);
	report("cgroup", group < 0 ? -1 : group + list, cgroup(), made);
	if (error)
		printf("{\"note\": \"only %u created: %s\"}\n", made, strerror(error));
	fflush(stdout);
	crew_unpark(p);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 100000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_memory = {
	.name = "memory",
	.question = "memory per parked thread",
	.methods = methods,
	.threads = "100000,1000000",
	.vps = "cores",
	.reference = NULL,
};
