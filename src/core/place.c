/* core/place.c - processors of virtual processors. Contract in place.h.
 *
 * A VP may get a new worker while a thread binds it. The binder writes the place, has every VP's
 * processor pass a fence (kbi_single_threaded_barrier), reads the number of the VP's kernel thread
 * and sets that thread's affinity. A worker that becomes the VP writes its number, then looks at
 * the place: it sees the new place, or the binder sees its number, or both. A kernel thread that
 * has just stopped being the VP may get the affinity, too, until it becomes a VP again. */
#include "core/place.h"

#include <errno.h>
#include <pthread.h>

#include "base/cpulist.h"
#include "base/option.h"
#include "core/single_threaded.h"
#include "os/clone_attrs.h"
#include "os/sys.h"

a32 kbi_place_used;

static struct kbi_cpus all; /* constant once VPs run */
static uint16_t chosen[KBI_CPUS];
static unsigned n_chosen;

/* ---- the first place ------------------------------------------------------------------------- */

void kbi_place_leave(void)
{
	if (kbi_unlikely(a_load_rlx(&kbi_place_used)))
		kbi_cpus_give(0, &all);
}

/* True: the caller is on a VP's kernel thread, or was on it until it was found in a call. Noted
 * before fork, because the drop-in may have taken the caller off by the time that the child's
 * handlers run. Kernel threads that threads keep are left alone. */
static __thread bool forks_on_worker __attribute__((tls_model("initial-exec")));

static void note_fork_on_worker(void)
{
	struct kbi_task *self = kbi_self_raw();

	forks_on_worker = self && (self->vp || (kbi_thread_of(self)->worker &&
						kbi_clone_attrs_kind() == KBI_CLONE_ATTRS_COMMON));
}

static void leave_place_in_child(void)
{
	if (forks_on_worker)
		kbi_place_leave();
}

/* Before the first place is obeyed. */
static void begin_place_use(void)
{
	if (!a_xchg_rlx(&kbi_place_used, 1))
		pthread_atfork(note_fork_on_worker, NULL, leave_place_in_child);
}

/* ---- the option ------------------------------------------------------------------------------ */

static bool choose_processor(unsigned cpu)
{
	if (!kbi_cpus_has(&all, cpu) || n_chosen == KBI_CPUS)
		return false;
	chosen[n_chosen++] = (uint16_t)cpu;
	return true;
}

static void choose_cores(void)
{
	for (unsigned cpu = 0; cpu < KBI_CPUS; cpu++)
		if (kbi_cpus_has(&all, cpu) && kbi_cpu_leads_core(cpu, &all))
			choose_processor(cpu);
}

static int choose_list(const char *list)
{
	unsigned first, last;

	while (kbi_cpulist_next(&list, &first, &last))
		for (unsigned cpu = first; cpu <= last; cpu++)
			if (!choose_processor(cpu)) {
				kbi_sys_message("option bind: processor %u is none of the program's %u", cpu,
						kbi_cpu_affinity());
				return EINVAL;
			}
	return 0;
}

static unsigned count_different(unsigned n)
{
	struct kbi_cpus seen = { 0 };
	unsigned different = 0;

	for (unsigned i = 0; i < n; i++) {
		different += !kbi_cpus_has(&seen, chosen[i]);
		kbi_cpus_add(&seen, chosen[i]);
	}
	return different;
}

static unsigned at_most(unsigned n, unsigned limit)
{
	return limit && limit < n ? limit : n;
}

int kbi_place_choose(unsigned *n, unsigned *processors)
{
	unsigned quota;
	int e = 0;

	kbi_cpus_read(0, &all);
	n_chosen = 0;
	*processors = kbi_cpu_count();
	if (!kbi_options.bind) {
		*n = *n ? *n : *processors;
		return 0;
	}
	if (kbi_options.bind[0] == 'c')
		choose_cores();
	else
		e = choose_list(kbi_options.bind);
	if (e || !n_chosen)
		return e ? e : EINVAL;
	quota = kbi_cpu_quota();
	*n = *n ? *n : at_most(n_chosen, quota);
	*processors = at_most(count_different(at_most(n_chosen, *n)), quota);
	begin_place_use();
	return 0;
}

void kbi_place_give(struct kbi_vp *vp)
{
	if (n_chosen)
		a_store_rlx(&vp->place, 1u + chosen[vp->id % n_chosen]);
}

/* ---- kernel threads -------------------------------------------------------------------------- */

static long set_tid_affinity(int tid, uint32_t place)
{
	return place ? kbi_cpus_give_one(tid, place - 1, all.bytes) : kbi_cpus_give(tid, &all);
}

void kbi_place_take_now(const struct kbi_vp *vp)
{
	set_tid_affinity(0, a_load_rlx(&vp->place));
}

const struct kbi_cpus *kbi_place_programs(void)
{
	return a_load_rlx(&kbi_place_used) ? &all : NULL;
}

/* ---- kb_vp_bind ------------------------------------------------------------------------------ */

int kbi_place_bind(struct kbi_vp *vp, int processor)
{
	int tid;
	long e;

	if (processor < -1 || (processor >= 0 && !kbi_cpus_has(&all, (unsigned)processor)))
		return EINVAL;
	a_store_rlx(&vp->place, (uint32_t)(processor + 1));
	begin_place_use();
	kbi_single_threaded_barrier(); /* pairs with the store of the number before kbi_place_take */
	do {
		tid = (int)a_load_rlx(&vp->tid);
		e = set_tid_affinity(tid, a_load_rlx(&vp->place));
	} while (e == -ESRCH && tid != (int)a_load_rlx(&vp->tid));
	return e == -ESRCH ? 0 : (int)-e; /* no worker yet: it looks when it begins */
}

int kbi_place_of(const struct kbi_vp *vp)
{
	return (int)a_load_rlx(&vp->place) - 1;
}
