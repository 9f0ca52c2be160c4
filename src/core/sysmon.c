/* core/sysmon.c - sysmon's loop. Contract in sysmon.h. Runs on its own kernel thread with
 * all signals blocked. */
#include "core/sysmon.h"

#include <sched.h>
#include <time.h>

#include "core/spread.h"
#include "os/sys.h"

a32 kbi_sysmon_bell = { KBI_BELL_NONE };
a32 kbi_sysmon_watcher_asleep;
struct kbi_sysmon_duty kbi_sysmon_lent, kbi_sysmon_quantum, kbi_sysmon_dump;

static uint64_t run_duty(const struct kbi_sysmon_duty *d, uint64_t now)
{
	return d->look ? d->look(now) : UINT64_MAX;
}

static bool is_duty_needed(const struct kbi_sysmon_duty *d)
{
	return d->needed && d->needed();
}

static void sleep_long(void)
{
	a_store_rlx(&kbi_sysmon_bell, KBI_BELL_ASLEEP);
	a_fence_sc(); /* partner: the full fence between publishing work for sysmon and reading the
	               * bell (tell_sysmon in agent.c, the exchange in lend_vp in handoff.c, dump.c) */
	if (!is_duty_needed(&kbi_sysmon_lent) && !is_duty_needed(&kbi_sysmon_quantum) &&
	    !is_duty_needed(&kbi_sysmon_dump))
		kbi_sys_futex_wait(&kbi_sysmon_bell, KBI_BELL_ASLEEP, NULL);
	a_store_rlx(&kbi_sysmon_bell, KBI_BELL_AWAKE);
}

/* Asks for a short slice of the processor. Sysmon needs little time, but needs it soon, beside
 * workers that compute. Linux grants this to every program (since 6.12; older kernels ignore it).
 * Its weight stays the program's. */
static void ask_for_short_turns(void)
{
	struct kbi_sys_schedule a = { .size = sizeof a };

	if (kbi_sys(SYS_sched_getattr, 0, &a, sizeof a, 0) < 0 || a.policy != SCHED_OTHER)
		return;
	a.runtime = 100000;
	kbi_sys(SYS_sched_setattr, 0, &a, 0);
}

void *kbi_sysmon_run(void *unused)
{
	(void)unused;
	ask_for_short_turns();
	for (;;) {
		uint64_t now = kbi_sys_now(), nap = kbi_sysmon_sooner(
			run_duty(&kbi_sysmon_lent, now), run_duty(&kbi_sysmon_quantum, now));
		struct timespec ts = kbi_sys_timespec(nap);

		run_duty(&kbi_sysmon_dump, now);
		kbi_spread_watch(now);
		if (nap == UINT64_MAX)
			sleep_long();
		else
			kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
	}
	return NULL;
}

void kbi_sysmon_wake(void)
{
	uint32_t asleep = KBI_BELL_ASLEEP;

	/* release: partner is the fence in sleep_long, before sysmon looks again; of several
	 * callers a single caller wakes it */
	if (a_cas_acqrel(&kbi_sysmon_bell, &asleep, KBI_BELL_AWAKE))
		kbi_sys_futex_wake(&kbi_sysmon_bell, 1);
}

void kbi_sysmon_wake_watcher(void)
{
	if (a_xchg_rlx(&kbi_sysmon_watcher_asleep, 0))
		kbi_sys_futex_wake(&kbi_sysmon_watcher_asleep, 1);
}
