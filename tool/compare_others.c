/* tool/compare_others.c - the share of the machine that other programs use while `kochab compare`
 * measures: the time processors were busy (/proc/stat), less the time of this command and its
 * children. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "compare.h"
#include "tool.h"

/* Returns the time that the processors have been busy so far, s; negative: not known. Waiting for a
 * disk is not busy, and guests' time is in the user's. Time that a hypervisor gave to other
 * machines (steal) counts. */
static double read_busy(void)
{
	unsigned long long user, nice, system, idle, wait, irq, soft, steal;
	FILE *f = fopen("/proc/stat", "re");
	int n;

	if (f == NULL)
		return -1;
	n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
		&wait, &irq, &soft, &steal);
	fclose(f);
	return n == 8 ?
		(double)(user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK) : -1;
}

static double processor_time_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return compare_cpu(&u);
}

static double began, busy, own;

void compare_begin_others(struct compare *all)
{
	all->others = 0;
	began = tool_now();
	busy = read_busy();
	own = processor_time_of(RUSAGE_SELF) + processor_time_of(RUSAGE_CHILDREN);
}

void compare_end_others(struct compare *all)
{
	static const double least = 0.2; /* s: the kernel counts by ticks */
	double took = tool_now() - began, now = read_busy(), others;

	if (busy < 0 || now < 0 || took < least)
		return;
	others = now - busy -
		(processor_time_of(RUSAGE_SELF) + processor_time_of(RUSAGE_CHILDREN) - own);
	others /= took * (double)sysconf(_SC_NPROCESSORS_ONLN);
	all->others = others < 0 ? 0 : others < 1 ? others : 1;
}
