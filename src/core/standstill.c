/* core/standstill.c - virtual processors that stand still. Contract in standstill.h. Runs on its
 * own kernel thread with all signals blocked. It reads words that virtual processors write, and
 * writes none of them. If a look meets a virtual processor between two writes, the next look
 * corrects that. */
#include "core/standstill.h"

#include <time.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/sysmon.h"
#include "core/worker_thread.h"
#include "libc/context.h"
#include "os/sys.h"

enum {
	LOOK_S = 1,
	LOOKS = 3, /* looks in a row that find it unchanged */
	QUIET = 3, /* looks that find none busy, before the watcher sleeps for good */
};

static struct seen {
	uint64_t turns;
	int tid;
	struct kbi_context_call call;
	unsigned times; /* 0: it was not in such a call */
} seen[KBI_MAX_VPS];

static bool is_same_sighting(const struct seen *a, const struct seen *b)
{
	return a->turns == b->turns && a->tid == b->tid && a->call.sp == b->call.sp &&
	       a->call.pc == b->call.pc &&
	       a->call.arg == b->call.arg;
}

static bool any_busy(void)
{
	return a_load_rlx(&kbi_vps[0]->s->idle_count) < kbi_vp_n;
}

/* Returns true if vp runs a thread that is in libc's futex call. */
static bool find_futex_call(struct kbi_vp *vp, struct seen *now)
{
	*now = (struct seen){ .turns = kbi_vp_turns(vp), .tid = (int)a_load_rlx(&vp->tid) };
	if (!now->tid || a_load_rlx(&vp->s->idle) != KBI_IDLE_BUSY)
		return false;
	kbi_context_find_call(now->tid, &now->call);
	return now->call.nr == SYS_futex && !kbi_context_is_ours(now->call.pc);
}

/* Returns true if it is time for the message. */
static bool is_standing_still(struct kbi_vp *vp, struct seen *before)
{
	struct seen now;

	if (!find_futex_call(vp, &now))
		before->times = 0;
	else if (before->times && is_same_sighting(before, &now))
		return ++before->times >= LOOKS && kbi_agent_has_work(vp, kbi_sys_now());
	else
		now.times = 1, *before = now;
	return false;
}

static bool scan_for_standstill(void)
{
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		if (!is_standing_still(kbi_vps[i], &seen[i]))
			continue;
		kbi_sys_message("VP %u stands still: its thread waits in the kernel for a lock or "
				"condition of libc's (std::mutex, pthread_mutex_lock ...), and %u threads are "
				"ready there. Is the lock held over a call that suspends? Use kb_mutex_t, or "
				"link with -lkochab-posix, whose locks suspend",
				i, kbi_vp_backlog(kbi_vps[i]));
		return true;
	}
	return false;
}

static void sleep_for_good(void)
{
	a_store_rlx(&kbi_sysmon_watcher_asleep, 1);
	a_fence_sc(); /* partner: the fence in tell_sysmon, before a VP that is busy now reads the
	               * word */
	while (!any_busy() && a_load_rlx(&kbi_sysmon_watcher_asleep))
		kbi_sys_futex_wait(&kbi_sysmon_watcher_asleep, 1, NULL);
	a_store_rlx(&kbi_sysmon_watcher_asleep, 0);
}

static void *run_standstill_watcher(void *unused)
{
	static const struct timespec nap = { LOOK_S, 0 };
	unsigned quiet = 0;

	(void)unused;
	kbi_handoff_helps();
	for (;;) {
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
		quiet = any_busy() ? 0 : quiet + 1;
		if (scan_for_standstill())
			break; /* once only */
		if (quiet >= QUIET)
			sleep_for_good();
	}
	kbi_handoff_helps_no_more();
	return NULL;
}

void kbi_standstill_start(void)
{
	if (kbi_options.quantum || kbi_options.body != KBI_OPT_BODY_THREAD || kbi_preempt_is_shared ||
	    !kbi_options.tick_ms ||
	    KBI_SAN)
		return;
	kbi_worker_start_closed(run_standstill_watcher, NULL);
}
