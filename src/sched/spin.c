/* sched/spin.c - the slow path of a spin lock bit. Contract in spin.h. */
#include "sched/spin.h"

#include "arch/arch.h"
#include "os/sys.h"

void kbi_spin_slow(a32 *word, uint32_t bit)
{
	for (unsigned i = 0;; i++) {
		uint32_t old = a_load_rlx(word);

		/* acquire: partner is the release in kbi_spin_unlock_bit */
		if (!(old & bit) && a_cas_acq(word, &old, old | bit))
			return;
		if (i % 64 == 63)
			kbi_sys_yield_to_holder(i / 64);
		else
			kbi_cpu_relax();
	}
}
