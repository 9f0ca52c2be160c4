/* os/gate.c - contract in gate.h. */
#include "os/gate.h"

#include <limits.h>
#include <time.h>

#include "os/sys.h"

enum { COUNT = 0x7fff, WAITED = 1 << 30, PAUSE_NS = 1000000 };

static uint32_t all_of(uint32_t group)
{
	return COUNT * group;
}

bool kbi_gate_enter(a32 *gate, uint32_t group, unsigned ms)
{
	uint32_t w = a_load_rlx(gate), others = all_of(group ^ KBI_GATE_MAKERS ^ KBI_GATE_CLOSERS);
	struct timespec pause = { 0, PAUSE_NS };

	for (unsigned waits = 0;;) {
		if (kbi_likely(!(w & others))) {
			/* acquire: pairs with the release in kbi_gate_leave */
			if (a_cas_acqrel(gate, &w, w + group))
				return true;
		} else if (w & WAITED || a_cas_acqrel(gate, &w, w | WAITED)) {
			if (ms && waits++ == ms)
				return false;
			kbi_sys_futex_wait(gate, w | WAITED, &pause);
			w = a_load_rlx(gate);
		}
	}
}

void kbi_gate_leave(a32 *gate, uint32_t group)
{
	uint32_t w = a_load_rlx(gate), next;

	do {
		if (kbi_unlikely(!(w & all_of(group))))
			return; /* a child of fork has opened the gate meanwhile */
		next = w - group;
		if (!(next & all_of(group)))
			next &= ~(uint32_t)WAITED;
	} while (!a_cas_acqrel(gate, &w, next)); /* release: pairs with the acquire in kbi_gate_enter */
	if (kbi_unlikely((w & ~next) & WAITED))
		kbi_sys_futex_wake(gate, INT_MAX);
}
