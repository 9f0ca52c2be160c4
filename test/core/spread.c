/* core/spread: which VP is to go where, and that it goes and has its affinity back. The test plays
 * the VPs and tells where they are; no runtime is needed. */
/* matrix: none */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/spread.h"
#include "os/cpu.h"
#include "os/sys.h"
#include "test.h"

enum { MS = 1000000, LOOKS = 16, ROUNDS = 20 };

static struct kbi_vp vp[3];
static struct kbi_vp *vps[3] = { &vp[0], &vp[1], &vp[2] };
static unsigned cpu[2]; /* two processors that this process may use */
static cpu_set_t before;

static void choose(void)
{
	unsigned n = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	for (unsigned i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &before))
			cpu[n++] = i;
	if (n < 2)
		SKIP("one processor");
	CPU_ZERO(&before);
	CPU_SET(cpu[0], &before);
	CPU_SET(cpu[1], &before);
	CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void begin(void)
{
	memset(vp, 0, sizeof(vp));
	for (unsigned i = 0; i < 3; i++) {
		vp[i].id = i;
		a_store_rlx(&vp[i].tid, (uint32_t)syscall(SYS_gettid));
	}
	kbi_vps = vps;
	kbi_vp_n = 2;
	a_store_rlx(&kbi_spread_asked, 1);
}

static void is_at(unsigned i, unsigned where, uint64_t now)
{
	a_store_rlx(&vp[i].spread.cpu, where);
	a_store_rlx(&vp[i].spread.seen, now);
}

static uint64_t idle_of(unsigned where)
{
	uint64_t ns;

	if (!kbi_cpu_idle(where, &ns))
		SKIP("the kernel does not tell idle times");
	return ns;
}

static uint64_t took; /* by the last watch, ns */

/* Watches as sysmon does, for ms, and until it has decided. a, b: where the VPs are seen.
 * Returns how long the second processor was idle meanwhile, ns. */
static uint64_t watch(unsigned a, unsigned b, unsigned ms, bool decides)
{
	uint64_t idle = idle_of(cpu[1]), start = kbi_sys_now(), now;

	do {
		now = kbi_sys_now();
		is_at(0, a, now);
		is_at(1, b, now);
		kbi_spread_watch(now);
		usleep(2000);
	} while (!a_load_rlx(&vp[1].spread.wanted) &&
		 (now - start < (uint64_t)ms * MS || (decides && !vp[1].spread.patience)));
	took = kbi_sys_now() - start;
	return idle_of(cpu[1]) - idle;
}

/* The second VP goes, to the processor without VP if that was idle for a part of the time, and only
 * then. */
static void goes_where_it_is_idle(void)
{
	unsigned gone = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t ns;

		begin();
		watch(cpu[0], cpu[1], 30, false); /* the earlier meeting is over */
		ns = watch(cpu[0], cpu[0], 100, true);
		CHECK_EQ(a_load_rlx(&vp[0].spread.wanted), 0);
		CHECK(vp[1].spread.patience); /* not at once again */
		if (!a_load_rlx(&vp[1].spread.wanted)) {
			CHECK(ns < 9 * took / 10 || took > 300 * (uint64_t)MS);
			continue;
		}
		CHECK_EQ(a_load_rlx(&vp[1].spread.wanted), cpu[1] + 1);
		CHECK(ns > 0);
		gone++;
	}
	fprintf(stderr, "%u of %u times\n", gone, ROUNDS);
}

static void stays_elsewhere(void)
{
	begin();
	watch(cpu[0], cpu[1], 100, false);
	CHECK_EQ(a_load_rlx(&vp[1].spread.wanted), 0);
	/* no processor without VP */
	begin();
	kbi_vp_n = 3;
	for (unsigned i = 0; i < 60; i++) {
		uint64_t now = kbi_sys_now();

		is_at(0, cpu[0], now);
		is_at(1, cpu[0], now);
		is_at(2, cpu[1], now);
		kbi_spread_watch(now);
		usleep(2000);
	}
	CHECK_EQ(a_load_rlx(&vp[1].spread.wanted), 0);
	/* the VP that it seems to meet sleeps */
	begin();
	a_store_rlx(&vp[0].doze, KBI_DOZE_YES);
	watch(cpu[0], cpu[0], 100, false);
	CHECK_EQ(a_load_rlx(&vp[1].spread.wanted), 0);
}

/* This thread is the VP. */
static void goes_and_is_free(void)
{
	cpu_set_t now;

	for (unsigned i = 0; i < 20; i++) {
		unsigned to = cpu[i % 2];

		begin();
		a_store_rlx(&vp[1].spread.wanted, to + 1);
		for (unsigned k = 0; k < LOOKS; k++)
			kbi_spread_look(&vp[1]);
		CHECK_EQ(a_load_rlx(&vp[1].spread.wanted), 0);
		CHECK_EQ(vp[1].spread.n_moves, 1);
		CHECK_EQ(a_load_rlx(&vp[1].spread.moves_now), 0);
		CHECK_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
		CHECK(CPU_EQUAL(&now, &before));
		CHECK(a_load_rlx(&vp[1].spread.cpu) == cpu[0] || a_load_rlx(&vp[1].spread.cpu) == cpu[1]);
	}
	/* a processor that the program has lost meanwhile */
	CPU_ZERO(&now);
	CPU_SET(cpu[0], &now);
	CHECK_EQ(sched_setaffinity(0, sizeof(now), &now), 0);
	begin();
	a_store_rlx(&vp[1].spread.wanted, cpu[1] + 1);
	for (unsigned k = 0; k < LOOKS; k++)
		kbi_spread_look(&vp[1]);
	CHECK_EQ(vp[1].spread.n_moves, 0);
	CHECK_EQ(sched_getcpu(), (int)cpu[0]);
}

/* A filter may forbid getcpu and sysmon's calls. */
static void keeps_quiet_under_filters(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return;
	begin();
	kbi_spread_watch(kbi_sys_now());
	CHECK_EQ(a_load_rlx(&kbi_spread_asked), 0);
	for (unsigned k = 0; k < LOOKS; k++)
		kbi_spread_look(&vp[1]);
	CHECK_EQ(a_load_rlx(&vp[1].spread.seen), 0);
}

int main(void)
{
	uint64_t ns;

	choose();
	CHECK(!kbi_cpu_idle(100000, &ns));
	goes_where_it_is_idle();
	stays_elsewhere();
	goes_and_is_free();
	usleep(20000); /* the next look is due */
	keeps_quiet_under_filters();
	kbi_vp_n = 0;
	return 0;
}
