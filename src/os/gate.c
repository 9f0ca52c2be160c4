/* os/gate.c - contract in gate.h. */
#include "os/gate.h"

#include <limits.h>
#include <time.h>

#include "os/sys.h"

enum { COUNT = 0x7fff, WAITED = 1 << 30, PAUSE_NS = 1000000 };
#define NS_A_MS 1000000ull

static uint32_t mask_of_group(uint32_t group)
{
	return COUNT * group;
}

/* Clears the mark of a waiter that waits no longer, so that the group inside is not kept out. */
static bool abandon_gate(a32 *gate)
{
	uint32_t w = a_load_rlx(gate);

	while (w & WAITED && !a_cas_rlx(gate, &w, w & ~(uint32_t)WAITED))
		;
	kbi_sys_futex_wake(gate, INT_MAX);
	return false;
}

bool kbi_gate_enter(a32 *gate, uint32_t group, unsigned ms)
{
	uint32_t others = mask_of_group(group ^ KBI_GATE_MAKERS ^ KBI_GATE_CLOSERS);
	uint32_t blocked_by = others | (ms ? WAITED : 0), w = a_load_rlx(gate);
	struct timespec pause = { 0, PAUSE_NS };
	uint64_t until = 0;

	for (;;) {
		if (kbi_likely(!(w & blocked_by))) {
			/* acquire: partner is the release in kbi_gate_leave */
			if (a_cas_acqrel(gate, &w, w + group))
				return true;
		} else if (w & WAITED || a_cas_acqrel(gate, &w, w | WAITED)) {
			if (ms && !until)
				until = kbi_sys_now() + ms * NS_A_MS;
			else if (ms && kbi_sys_now() > until)
				return abandon_gate(gate);
			kbi_sys_futex_wait(gate, w | WAITED, &pause);
			w = a_load_rlx(gate);
		}
	}
}

void kbi_gate_leave(a32 *gate, uint32_t group)
{
	uint32_t w = a_load_rlx(gate), next;

	do {
		if (kbi_unlikely(!(w & mask_of_group(group))))
			return; /* a child of fork has opened the gate meanwhile */
		next = w - group;
		if (!(next & mask_of_group(group)))
			next &= ~(uint32_t)WAITED;
	} while (!a_cas_acqrel(gate, &w, next)); /* release: pairs with the acquire in kbi_gate_enter */
	if (kbi_unlikely((w & ~next) & WAITED))
		kbi_sys_futex_wake(gate, INT_MAX);
}
