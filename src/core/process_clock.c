/* core/process_clock.c - the program's CPU time where virtual processors are processes. Contract in
 * process_clock.h. The kernel shows any process's clock to any process. Runs on any thread; ends()
 * only in the supervisor. */
#include "core/process_clock.h"

#include <errno.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>

#include "core/supervisor.h"
#include "libc/emulate.h"
#include "os/sys.h"

enum {
	SECOND = 1000000000,
	MICRO = 1000,
	HERTZ = 100,                /* ticks a second of times() */
};

static struct {
	int supervisor;             /* constant once there are processes */
	/* of processes that have ended: written by the supervisor between two steps of seq, which
	 * readers watch */
	a32 seq;
	a64 ended[KBI_PROCESS_CLOCKS];
	a64 shown[KBI_PROCESS_CLOCKS]; /* the highest value that was returned */
	struct rusage usage;
} own;

/* ---- the clock ------------------------------------------------------------------------------- */

int kbi_process_clock_number(int pid, enum kbi_process_clock kind)
{
	return ~pid * 8 + (int)kind;
}

static uint64_t sum_once(enum kbi_process_clock kind)
{
	uint64_t sum = a_load_rlx(&own.ended[kind]) +
		kbi_sys_clock(kbi_process_clock_number(own.supervisor, kind));

	for (unsigned i = 0; i < kbi_supervisor.most; i++) {
		int pid = (int)a_load_rlx(&kbi_supervisor.process[i].pid);

		if (pid)
			sum += kbi_sys_clock(kbi_process_clock_number(pid, kind));
	}
	return sum;
}

/* Returns at least the highest value so far: a process that ends is counted exactly once, but its
 * last moments may be counted by another measure. */
static uint64_t at_least_shown(enum kbi_process_clock kind, uint64_t sum)
{
	uint64_t shown = a_load_rlx(&own.shown[kind]);

	while (sum > shown)
		if (a_cas_rlx(&own.shown[kind], &shown, sum))
			return sum;
	return shown;
}

uint64_t kbi_process_clock_read(enum kbi_process_clock kind)
{
	uint64_t sum;
	uint32_t seq;

	do {
		seq = a_load_acq(&own.seq); /* partner: the add in kbi_process_clock_ends */
		sum = sum_once(kind);
	/* partner: the add in kbi_process_clock_ends */
	} while ((seq & 1 || a_add_acqrel(&own.seq, 0) != seq) && (kbi_sys_yield(), true));
	return at_least_shown(kind, sum);
}

static void add_times(struct rusage *to, const struct rusage *r)
{
	to->ru_minflt += r->ru_minflt;
	to->ru_majflt += r->ru_majflt;
	to->ru_inblock += r->ru_inblock;
	to->ru_oublock += r->ru_oublock;
	to->ru_nvcsw += r->ru_nvcsw;
	to->ru_nivcsw += r->ru_nivcsw;
	if (r->ru_maxrss > to->ru_maxrss)
		to->ru_maxrss = r->ru_maxrss;
}

void kbi_process_clock_ends(int pid)
{
	siginfo_t info = { .si_pid = 0 };
	struct rusage r;

	if (pid && !kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, &r) &&
	    info.si_pid)
		add_times(&own.usage, &r);
	a_add_acqrel(&own.seq, 1); /* partner: the acquires in kbi_process_clock_read */
	for (int kind = 0; pid && kind < KBI_PROCESS_CLOCKS; kind++)
		a_add_rlx(&own.ended[kind],
			kbi_sys_clock(kbi_process_clock_number(pid, (enum kbi_process_clock)kind)));
}

int kbi_process_clock_of(int clock)
{
	int pid = ~(clock >> 3), kind = clock & 7;

	if (clock == CLOCK_PROCESS_CPUTIME_ID)
		return KBI_PROCESS_CLOCK_CPU;
	if (clock >= 0 || kind >= KBI_PROCESS_CLOCKS || (pid && pid != own.supervisor))
		return -1;
	return kind;
}

static struct timeval timeval_of(uint64_t ns)
{
	return (struct timeval){ (time_t)(ns / SECOND), (suseconds_t)(ns % SECOND / MICRO) };
}

/* Divides the CPU time as the kernel does: it counts ticks in the program and in itself, and
 * divides the measured time in their proportion. */
static void divide_cpu_time(uint64_t *user, uint64_t *system)
{
	uint64_t both = kbi_process_clock_read(KBI_PROCESS_CLOCK_PROF),
		part = kbi_process_clock_read(KBI_PROCESS_CLOCK_USER);
	uint64_t sum = kbi_process_clock_read(KBI_PROCESS_CLOCK_CPU);

	*user = part < both ? (uint64_t)((double)sum * ((double)part / (double)both)) : sum;
	*system = sum - *user;
}

long kbi_process_clock_usage(struct rusage *to)
{
	struct rusage r;
	uint64_t user, system;

	if (!kbi_sys_can_read(to, sizeof *to))
		return -EFAULT;
	kbi_sys(SYS_getrusage, RUSAGE_SELF, &r);
	add_times(&r, &own.usage);
	divide_cpu_time(&user, &system);
	r.ru_utime = timeval_of(user);
	r.ru_stime = timeval_of(system);
	*to = r;
	return 0;
}

long kbi_process_clock_times(struct tms *to)
{
	long now = kbi_sys(SYS_times, NULL);
	uint64_t user, system;
	struct tms t;

	if (!to)
		return now;
	if (!kbi_sys_can_read(to, sizeof *to))
		return -EFAULT;
	/* the times of the program's children */
	kbi_emulate_there(SYS_times, (const long[6]){ (long)&t });
	divide_cpu_time(&user, &system);
	t.tms_utime = (clock_t)(user / (SECOND / HERTZ));
	t.tms_stime = (clock_t)(system / (SECOND / HERTZ));
	*to = t;
	return now;
}

void kbi_process_clock_begin(int supervisor)
{
	own.supervisor = supervisor;
	kbi_supervisor_counts = kbi_process_clock_ends;
}
