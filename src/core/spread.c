/* core/spread.c - VPs on processors of their own. Contract in spread.h.
 *
 * Each VP publishes where it runs and when it saw that, once a millisecond. A place that
 * sysmon reads may be old by some slices of the kernel: VPs that share a processor do not run
 * at the same time. A wrong guess costs a needless move. If all processors are busy a move gains
 * nothing: another program's thread would have less. So the processor where a VP is to go must
 * have been idle for a part of the time in which the two VPs were seen together.
 *
 * A VP is moved by an affinity of a single processor, which is taken back at once. The VP does
 * that itself: no kernel thread changes its affinity meanwhile, and it makes no child. A caller
 * that asks for the affinity of all VPs is told that of a VP that does not move (moves_now, a
 * moment late): VP 0 is looked at first, and VP 0 never moves. /proc shows the short affinity.
 * If the kernel brings the VP back, it has its reasons: the next attempt waits twice as long. */
#include "core/spread.h"

#include <sched.h>

#include "core/place.h"
#include "libc/segment.h"
#include "os/cpu.h"
#include "os/sys.h"

a32 kbi_spread_asked;

enum {
	LOOK_NS = 1000000,
	WATCH_NS = 10000000,
	FRESH_NS = 20000000,   /* greatest age of the place that a VP has published */
	TOGETHER_NS = 60000000, /* two VPs were seen on one processor at each look for this long, */
	/* and the second processor was idle for this part of that time: the kernel counts by 10 ms */
	IDLE_PART = 10,
	FIRST_NS = 20000000,   /* time between a VP's attempts, at first; */
	LAST_NS = 2000000000,  /* at most; a VP that has met no VP for this long begins again */
};

/* Written by sysmon (the system monitor): a VP that has met a VP on its processor; vp NULL:
 * none. */
static struct {
	struct kbi_vp *vp;
	int from, to;
	uint64_t since, idle; /* ns: when the two met first; how long `to` had been idle by then */
	uint64_t watched;
} met;

/* ---- where VPs are --------------------------------------------------------------------------- */

/* Returns the processor that vp runs on or has just run on; -1: unknown. */
static int processor_of(const struct kbi_vp *vp, uint64_t now)
{
	/* relaxed: the two words need not belong together */
	uint64_t seen = a_load_rlx(&vp->spread.seen);
	uint32_t cpu = a_load_rlx(&vp->spread.cpu);

	if (now > seen + FRESH_NS || a_load_rlx(&vp->doze) != KBI_DOZE_NO || cpu >= KBI_CPUS)
		return -1;
	return (int)cpu;
}

/* Returns true if a VP with a lower number runs on cpu. Of two VPs that meet, the VP with the
 * higher number moves. */
static bool is_processor_shared(const struct kbi_vp *vp, int cpu, uint64_t now)
{
	for (unsigned i = 0; i < vp->id; i++)
		if (processor_of(kbi_vps[i], now) == cpu)
			return true;
	return false;
}

/* Returns the next processor of vp's affinity where no VP runs; -1: there is none. */
static int find_free_processor(const struct kbi_vp *vp, unsigned cpu, uint64_t now)
{
	struct kbi_cpus mask, taken = { 0 };
	unsigned n;

	kbi_cpus_read((int)a_load_rlx(&vp->tid), &mask);
	n = mask.bytes > 0 ? (unsigned)mask.bytes * 8 : 0;
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		int at = processor_of(kbi_vps[i], now);

		if (at >= 0)
			kbi_cpus_add(&taken, (unsigned)at);
	}
	for (unsigned i = 1; i < n; i++)
		if (kbi_cpus_has(&mask, (cpu + i) % n) && !kbi_cpus_has(&taken, (cpu + i) % n))
			return (int)((cpu + i) % n);
	return -1;
}

/* ---- the VP ---------------------------------------------------------------------------------- */

/* Moves the VP. The second call may take long: the VP waits for its turn on the new processor. */
static void move_to_processor(struct kbi_vp *vp, unsigned cpu)
{
	struct kbi_cpus mask;

	kbi_cpus_read(0, &mask);
	if (mask.bytes <= 0 || !kbi_cpus_has(&mask, cpu))
		return;
	a_store_rlx(&vp->spread.moves_now, 1);
	kbi_cpus_give_one(0, cpu, mask.bytes);
	kbi_cpus_give(0, &mask);
	a_store_rlx(&vp->spread.moves_now, 0);
	vp->spread.n_moves++;
}

void kbi_spread_look_now(struct kbi_vp *vp)
{
	struct kbi_spread *a = &vp->spread;
	uint32_t to = a_load_rlx(&a->wanted);
	uint64_t now = kbi_sys_now();
	int cpu;

	if (now - a->looked < LOOK_NS)
		return;
	a->looked = now;
	if (kbi_unlikely(to)) {
		a_store_rlx(&a->wanted, 0);
		move_to_processor(vp, to - 1);
	}
	cpu = sched_getcpu();
	if (cpu < 0)
		return;
	a_store_rlx(&a->cpu, (uint32_t)cpu);
	a_store_rlx(&a->seen, now);
}

/* ---- sysmon ---------------------------------------------------------------------------------- */

/* Doubles the time until the next attempt. */
static void double_move_delay(struct kbi_spread *a, uint64_t now)
{
	a->patience = !a->patience ? FIRST_NS : a->patience < LAST_NS / 2 ? 2 * a->patience : LAST_NS;
	a->next = now + a->patience;
}

static void begin_meeting(struct kbi_vp *vp, int cpu, uint64_t now)
{
	met.to = find_free_processor(vp, (unsigned)cpu, now);
	if (met.to < 0 || !kbi_cpu_idle((unsigned)met.to, &met.idle)) {
		double_move_delay(&vp->spread, now);
		return;
	}
	met.vp = vp;
	met.from = cpu;
	met.since = now;
}

static void find_meeting(uint64_t now)
{
	struct kbi_cpus taken = { 0 };

	for (unsigned i = 0; i < kbi_vp_n && !met.vp; i++) {
		struct kbi_spread *a = &kbi_vps[i]->spread;
		int cpu = processor_of(kbi_vps[i], now);
		bool shared = cpu >= 0 && kbi_cpus_has(&taken, (unsigned)cpu);

		if (cpu >= 0)
			kbi_cpus_add(&taken, (unsigned)cpu);
		if (shared && now >= a->next)
			begin_meeting(kbi_vps[i], cpu, now);
		else if (!shared && a->patience && now > a->next + LAST_NS)
			a->patience = 0;
	}
}

static void recheck_meeting(uint64_t now)
{
	struct kbi_vp *vp = met.vp;
	uint64_t idle, since = now - met.since;

	if (processor_of(vp, now) != met.from || !is_processor_shared(vp, met.from, now)) {
		met.vp = NULL;
		return;
	}
	if (since < TOGETHER_NS)
		return;
	met.vp = NULL;
	double_move_delay(&vp->spread, now);
	if (kbi_cpu_idle((unsigned)met.to, &idle) && idle - met.idle >= since / IDLE_PART)
		a_store_rlx(&vp->spread.wanted, (uint32_t)met.to + 1);
}

void kbi_spread_watch(uint64_t now)
{
	if (kbi_vp_n == 1 || a_load_rlx(&kbi_idle_stats.oversubscribed) ||
		a_load_rlx(&kbi_place_used) || now - met.watched < WATCH_NS)
		return;
	met.watched = now;
	a_store_rlx(&kbi_spread_asked, !kbi_segment_filtered());
	if (!a_load_rlx(&kbi_spread_asked))
		return;
	if (met.vp)
		recheck_meeting(now);
	else
		find_meeting(now);
}
