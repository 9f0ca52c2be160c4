/* bench/sim/hook/base/atom.h - base/atom.h with a price: under the simulator each access to a
 * shared word is told to the machine (machine.h), which charges the virtual processor for the
 * cache line and may let others run in between. In the include path in front of src, so that the
 * runtime's units are compiled with it as they are. */
#ifndef KBI_SIM_ATOM_H
#define KBI_SIM_ATOM_H

#include "../../../../src/base/atom.h"
#include "arch/arch.h"

enum sim_access { SIM_READ, SIM_WRITE, SIM_RMW };

void sim_touch(const void *word, enum sim_access how);
void sim_fence(void);
void sim_relax(void);

#undef a_load_rlx
#undef a_load_acq
#undef a_store_rlx
#undef a_store_rel
#define SIM_LOAD(a, order) \
	({ \
		const __auto_type sim_p = (a); \
		sim_touch(sim_p, SIM_READ); \
		__atomic_load_n(&sim_p->v_, order); \
	})
#define SIM_STORE(a, v, order) \
	({ \
		const __auto_type sim_q = (a); \
		const __auto_type sim_v = (v); \
		sim_touch(sim_q, SIM_WRITE); \
		__atomic_store_n(&sim_q->v_, sim_v, order); \
	})
#define a_load_rlx(a) SIM_LOAD(a, __ATOMIC_RELAXED)
#define a_load_acq(a) SIM_LOAD(a, __ATOMIC_ACQUIRE)
#define a_store_rlx(a, v) SIM_STORE(a, v, __ATOMIC_RELAXED)
#define a_store_rel(a, v) SIM_STORE(a, v, __ATOMIC_RELEASE)

#define SIM_DO(a, call) ({ const __auto_type sim_r = (a); sim_touch(sim_r, SIM_RMW); call; })
#undef a_xchg_rlx
#undef a_xchg_acq
#undef a_xchg_rel
#undef a_xchg_acqrel
#define a_xchg_rlx(a, v) SIM_DO(a, __atomic_exchange_n(&sim_r->v_, (v), __ATOMIC_RELAXED))
#define a_xchg_acq(a, v) SIM_DO(a, __atomic_exchange_n(&sim_r->v_, (v), __ATOMIC_ACQUIRE))
#define a_xchg_rel(a, v) SIM_DO(a, __atomic_exchange_n(&sim_r->v_, (v), __ATOMIC_RELEASE))
#define a_xchg_acqrel(a, v) SIM_DO(a, __atomic_exchange_n(&sim_r->v_, (v), __ATOMIC_ACQ_REL))
#undef a_cas_rlx
#undef a_cas_acq
#undef a_cas_rel
#undef a_cas_acqrel
#define SIM_CAS(a, old, v) \
	SIM_DO(a, __atomic_compare_exchange_n(&sim_r->v_, (old), (v), false, __ATOMIC_SEQ_CST, \
					      __ATOMIC_SEQ_CST))
#define a_cas_rlx(a, old, v) SIM_CAS(a, old, v)
#define a_cas_acq(a, old, v) SIM_CAS(a, old, v)
#define a_cas_rel(a, old, v) SIM_CAS(a, old, v)
#define a_cas_acqrel(a, old, v) SIM_CAS(a, old, v)
#undef a_add_rlx
#undef a_add_acqrel
#undef a_sub_rlx
#undef a_sub_acqrel
#undef a_or_rlx
#undef a_or_acqrel
#undef a_and_rlx
#undef a_and_acqrel
#define a_add_rlx(a, v) SIM_DO(a, __atomic_fetch_add(&sim_r->v_, (v), __ATOMIC_RELAXED))
#define a_add_acqrel(a, v) SIM_DO(a, __atomic_fetch_add(&sim_r->v_, (v), __ATOMIC_ACQ_REL))
#define a_sub_rlx(a, v) SIM_DO(a, __atomic_fetch_sub(&sim_r->v_, (v), __ATOMIC_RELAXED))
#define a_sub_acqrel(a, v) SIM_DO(a, __atomic_fetch_sub(&sim_r->v_, (v), __ATOMIC_ACQ_REL))
#define a_or_rlx(a, v) SIM_DO(a, __atomic_fetch_or(&sim_r->v_, (v), __ATOMIC_RELAXED))
#define a_or_acqrel(a, v) SIM_DO(a, __atomic_fetch_or(&sim_r->v_, (v), __ATOMIC_ACQ_REL))
#define a_and_rlx(a, v) SIM_DO(a, __atomic_fetch_and(&sim_r->v_, (v), __ATOMIC_RELAXED))
#define a_and_acqrel(a, v) SIM_DO(a, __atomic_fetch_and(&sim_r->v_, (v), __ATOMIC_ACQ_REL))

/* a function's name in a macro of that name is the function */
#define a_zero8_rlx(a) (sim_touch(a, SIM_READ), a_zero8_rlx(a))
#define a_zero32_rlx(a) (sim_touch(a, SIM_READ), a_zero32_rlx(a))
#define a_fence_sc() sim_fence()
#define kbi_cpu_relax() sim_relax()

#endif
