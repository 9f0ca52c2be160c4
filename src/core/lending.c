/* core/lending.c - takes a lent VP. Contract in lending.h. Model: model/handoff.pml. Runs on
 * sysmon's stack, and on the stacks of threads that come back from their calls. */
#include "core/lending.h"

#include "core/agent.h"
#include "core/single_threaded.h"
#include "core/stock.h"
#include "core/sysmon.h"
#include "core/worker_maker.h"
#include "core/worker_pool.h"
#include "os/sys.h"

#define TAKEN KBI_LENDING_TAKEN

enum {
	NAP_MIN = 50000,      /* ns between two looks of sysmon, doubled up to: */
	NAP_MAX = 1000000,
	LONG = 1000000,       /* ns: a call that lasts so long loses its VP even without work */
	QUIET = 8,            /* looks without a lent VP before it sleeps for good */
};

a32 kbi_lending_away;
static a32 said; /* 1: the message was printed */

/* ---- idle workers --------------------------------------------------------------------------- */

bool kbi_lending_one_comes(void)
{
	struct kbi_worker_pool_counts c = kbi_worker_pool_counts();

	return c.workers > kbi_vp_n + a_load_rlx(&kbi_lending_away) + c.idle;
}

void kbi_lending_say_none(void)
{
	if (!a_xchg_acqrel(&said, 1)) /* no order is needed: a single caller prints it */
		kbi_sys_message("%u threads are in blocking calls and no more kernel threads can be had "
				"(option spares): others wait", a_load_rlx(&kbi_lending_away));
}

/* Asks for an idle worker; it will be there at a later look. */
void kbi_lending_need_worker(void)
{
	if (!kbi_lending_one_comes() && !kbi_worker_maker_ask())
		kbi_lending_say_none();
}

void kbi_lending_give(struct kbi_vp *vp, struct kbi_worker *idle)
{
	a_add_rlx(&kbi_lending_away, 1);
	kbi_worker_pool_give(idle, vp);
}

/* ---- a thread that comes back ---------------------------------------------------------------- */

bool kbi_lending_win(struct kbi_vp *vp)
{
	uint64_t word = a_load_rlx(&vp->lent);

	/* acquire, release: partners as in take_lent_vp. No thread runs alone since the caller
	 * has lost its VP */
	if (word == 0 || word == TAKEN || !a_cas_acqrel(&vp->lent, &word, TAKEN))
		return false;
	a_store_rlx(&kbi_workers[word & ((1 << KBI_LENDING_INDEX_BITS) - 1)].displaced, 1);
	return true;
}

/* ---- sysmon ---------------------------------------------------------------------------------- */

static struct {
	uint32_t quiet; /* looks without a lent VP in a row */
	uint64_t nap;
} sysmon = { .nap = NAP_MIN };

static struct seen {
	uint64_t word, since;
} seen[KBI_MAX_VPS]; /* sysmon's */

/* Takes vp for an idle worker. Returns false if the call was over in time, or there is no idle
 * worker yet. */
static bool take_lent_vp(struct kbi_vp *vp, uint64_t word)
{
	struct kbi_worker *idle = kbi_worker_pool_take();

	if (!idle) {
		kbi_lending_need_worker();
		return false;
	}
	/* before any thread runs beside the thread that is away */
	kbi_single_threaded_end();
	/* acquire: partner is the exchange in core/handoff's lend_vp; release: the CAS in its
	 * have_back */
	if (a_cas_acqrel(&vp->lent, &word, TAKEN)) {
		kbi_lending_give(vp, idle);
		return true;
	}
	kbi_worker_pool_put(idle);
	return false;
}

/* Returns true if vp is lent and stays so; takes it when it is time. */
static bool check_lent_vp(struct kbi_vp *vp, struct seen *s, uint64_t now, bool *taken)
{
	/* acquire: partner is the exchange in core/handoff's lend_vp */
	uint64_t word = a_load_acq(&vp->lent);

	if (word == 0 || word == TAKEN) {
		s->word = 0;
		return false;
	}
	if (word != s->word) {
		*s = (struct seen){ word, now };
		return true;
	}
	if (now - s->since >= LONG || !vp->plain || kbi_agent_has_work(vp, now))
		*taken |= take_lent_vp(vp, word);
	return true;
}

static uint64_t scan_lent_vps(uint64_t now)
{
	bool lent = false, taken = false;
	uint64_t first = UINT64_MAX; /* deadline of a thread that waits where a VP is lent */

	if (kbi_unlikely(kbi_stock_is_low()))
		kbi_worker_pool_tell();
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (check_lent_vp(kbi_vps[i], &seen[i], now, &taken)) {
			lent = true;
			first = kbi_sysmon_sooner(first, a_load_rlx(&kbi_vps[i]->next_deadline));
		}
	sysmon.quiet = lent ? 0 : sysmon.quiet + 1;
	if (sysmon.quiet > QUIET)
		return UINT64_MAX;
	sysmon.nap = taken ? NAP_MIN : sysmon.nap < NAP_MAX ? sysmon.nap * 2 : NAP_MAX;
	return kbi_sysmon_sooner(sysmon.nap, first > now + NAP_MIN ? first - now : NAP_MIN);
}

/* Returns true if a VP is lent; resets sysmon before its long sleep, for when it wakes up. */
static bool any_lent(void)
{
	sysmon.quiet = 0;
	sysmon.nap = NAP_MIN;
	for (unsigned i = 0; i < kbi_vp_n; i++)
		/* acquire: partner is the exchange in core/handoff's lend_vp, also a full fence */
		if (a_load_acq(&kbi_vps[i]->lent) & ~TAKEN)
			return true;
	return false;
}

void kbi_lending_setup(void)
{
	kbi_sysmon_lent = (struct kbi_sysmon_duty){ scan_lent_vps, any_lent };
}
