/* core/boot.c - starts the runtime: options, memory, virtual processors; main becomes a thread like
 * any other. The process's first kernel thread becomes VP 0's worker. Its TLS belongs to main from
 * then on, wherever main runs; VP 0 gets a block of its own, so that its light threads and main do
 * not share errno. Runs on the calling thread; a single caller starts, under `stage`. */
#include "core/boot.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/option.h"
#include "core/process.h"
#include "core/worker_thread.h"
#include "core/contain.h"
#include "core/dump.h"
#include "core/foreign.h"
#include "core/handoff.h"
#include "core/meter.h"
#include "core/outside.h"
#include "core/worker_pool.h"
#include "core/wait.h"
#include "core/place.h"
#include "core/preempt.h"
#include "core/quantum.h"
#include "core/agent.h"
#include "core/run.h"
#include "core/single_threaded.h"
#include "core/standstill.h"
#include "core/thread.h"
#include "mem/heap_door.h"
#include "os/lock.h"
#include "os/fd.h"
#include "libc/intercept.h"
#include "libc/module.h"
#include "os/sys.h"

/* A reference keeps the record in a program that the static library is linked into. */
static const struct kbi_outside *const outside __attribute__((used)) = &kbi_outside;

enum { NOT_STARTED, STARTING, RUNNING, FAILED, LACKS_BODIES };
static a32 stage;
static int failure;
static bool refused;     /* the options were refused before anything was begun */
static unsigned workers; /* virtual processors that have a worker */

bool kbi_booted(void)
{
	/* acquire: partner is the release in kbi_lock_tell, called by kbi_boot */
	return a_load_acq(&stage) == RUNNING;
}

static const struct kbi_sched *chosen_scheduler(void)
{
	return kbi_sched_table[kbi_options.sched];
}

static int init_vp(struct kbi_vp *vp, unsigned id, struct kbi_sched_vp *s,
	const struct kbi_sched *sched)
{
	kbi_vp_init(vp, id, s, sched);
	kbi_place_give(vp);
	vp->awake_bit = id < KBI_SINGLE_THREADED_VPS ? (uint64_t)1 << id : 0;
	vp->fp = vp->fp_now = kbi_fp_get();
	vp->stacks = &kbi_stack_slots[id + 1];
	return kbi_board_init(&vp->board, vp->id, kbi_vp_n, (kbi_options.max_threads + 63) / 64 * 64);
}

static int make_vps(unsigned n, unsigned processors)
{
	const struct kbi_sched *sched = chosen_scheduler();
	struct kbi_sched_vp *s = kbi_sys_map(n * sizeof *s);
	struct kbi_vp *vps = kbi_sys_map(n * sizeof *vps);
	int e;

	kbi_vps = kbi_sys_map(n * sizeof *kbi_vps);
	if (!s || !vps || !kbi_vps)
		return ENOMEM;
	kbi_vp_n = n;
	a_store_rlx(&kbi_idle_stats.oversubscribed, n > processors);
	for (unsigned i = 0; i < n; i++) {
		s[i].id = i;
		s[i].nvps = n;
		s[i].all = s;
		kbi_vps[i] = &vps[i];
		e = init_vp(&vps[i], i, &s[i], sched);
		if (e)
			return e;
	}
	return sched->init(s, n, kbi_options.capacity, kbi_options.lb2_lock);
}

/* Makes the first kernel thread VP 0's worker b, with another block and stack than main's, for main
 * may leave it. */
static void adopt_worker(struct kbi_vp *vp, struct kbi_worker *b, struct kbi_stack *agent)
{
	kbi_worker_native_tp(b);
	if (kbi_tcb_available) {
		kbi_tcb_leave_rseq(); /* wherever main runs, it would read this kernel thread's processor
		                       * there */
		b->tp = agent->tcb.tp;
		b->self_slot = (struct kbi_task **)((char *)b->tp + kbi_self_offset);
		if (b->caught) /* if the library was there at the start: at the same place in each block */
			b->caught = (void *const *)((char *)b->tp +
				((const char *)b->caught - (char *)kbi_tp_get()));
		kbi_door_write(b->tp, b->heap);
		kbi_door_stays();
	}
	b->signal_stack = kbi_preempt_alt_stack();
	b->leader = 1;
	kbi_san_make(&b->san, agent->low, agent->size);
	kbi_vp_embody(vp, b);
	kbi_ctx_make(&vp->agent_ctx, agent->low, agent->size, kbi_worker_agent, b);
}

/* Makes the caller, the process's first thread, `main` on VP 0, whose worker this kernel thread
 * is. */
static int adopt_main(struct kbi_vp *vp)
{
	struct kb_thread *t = kbi_thread_of(kbi_self());
	int class = kbi_stack_class(KBI_AGENT_STACK, kbi_tcb_available);
	struct kbi_stack *agent;

	agent = class < 0 ? NULL : kbi_stack_get_or_make(class);
	if (!agent)
		return ENOMEM;
	adopt_worker(vp, kbi_worker_pool_record(false), agent);
	t->is_main = true;
	memcpy(t->name, "main", 5);
	t->named = true;
	if (kbi_tcb_available) {
		t->own_tls = true;
		t->task.tp = (kbi_tpword)kbi_tp_get();
	} else {
		t->bound = 0;
		kbi_task_set(&t->task, KBI_TASK_BOUND);
	}
	kbi_task_set_started(&t->task);
	vp->cur_tp = t->task.tp ? t->task.tp : vp->tp;
	vp->cur = t;
	kbi_worker_own_stack(&t->san);
	kbi_foreign_leave(t);
	kbi_meter_main(t, vp->worker);
	t->task.vp = vp;
	/* release: partner is the acquire of a reader of the state */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_RUNNING, 0));
	return 0;
}

/* Starts the workers; goes on where it failed before. */
static int start_workers(void)
{
	kbi_fd_make_room();
	for (; workers < kbi_vp_n; workers++) {
		int e = kbi_worker_start(kbi_vps[workers]);

		if (e)
			return e;
	}
	kbi_standstill_start();
	return kbi_quantum_start();
}

/* ---- processes ------------------------------------------------------------------------------- */

static int refuse_processes(int e, const char *why)
{
	kbi_sys_message("virtual processors cannot be processes (option body): %s", why);
	return e;
}

static int open_processes(bool first)
{
	const char *why;
	int e;

	if (!first || !kbi_single_threaded_is_only_one())
		return refuse_processes(ENOTSUP,
			"the program has other kernel threads already, does not "
			"start Kochab in its first one, or has no /proc");
	e = kbi_process_open(&why);
	if (e)
		return refuse_processes(e, why);
	return 0;
}

/* Starts the VPs as processes; main goes on as a thread of VP 0. */
static int begin_processes(void)
{
	struct kb_thread *t = kbi_thread_of(kbi_self());
	const char *why;
	int e;

	t->is_main = true;
	memcpy(t->name, "main", 5);
	t->named = t->own_tls = true;
#if KBI_HAVE_TP
	t->task.tp = (kbi_tpword)kbi_tp_get();
#endif
	kbi_task_set_started(&t->task);
	kbi_meter_main(t, NULL);
	e = kbi_process_begin(start_workers, &why);
	if (e)
		return refuse_processes(e, why);
	kbi_foreign_leave(t);
	return 0;
}

/* Marks the start as failed: nothing runs on a virtual processor, nor will. */
static int fail_start(int e)
{
	kbi_vp_n = 0;
	return e;
}

static int boot_runtime(void)
{
	unsigned n, processors;
	bool first = kbi_sys_gettid() == (int)kbi_sys(SYS_getpid);
	int e = kbi_option_load();

	if (!e && kbi_module_is_beside_dropin()) {
		kbi_sys_message("libkochab-posix.so is here with a runtime of its own: "
				"link with -lkochab-posix first, or run the program without it");
		return EBUSY;
	}
	if (e)
		return e;
	n = kbi_options.vps;
	e = kbi_place_choose(&n, &processors);
	if (!e && kbi_options.body == KBI_OPT_BODY_PROCESS)
		e = open_processes(first);
	if (e == EACCES) { /* the program has restricted itself: nothing is begun yet */
		kbi_options.body = KBI_OPT_BODY_THREAD;
		kbi_sys_message("they are kernel threads");
		e = 0;
	}
	refused = e;
	if (e)
		return e;
	kbi_tp_init(kbi_options.fsgsbase);
	kbi_segment_setup();
	e = kbi_descriptor_setup();
	if (e)
		return e;
	kbi_meter_setup();
	kbi_self(); /* the caller has a descriptor from here on */
	if (first && kbi_options.body != KBI_OPT_BODY_PROCESS)
		kbi_single_threaded_begin(n);
#if KBI_HAVE_TP
	kbi_self_offset = (char *)&kbi_self_tls - (char *)kbi_tp_get();
	kbi_descriptor_loads_at = (char *)&kbi_descriptor_loads - (char *)kbi_tp_get();
#endif
	kbi_door_find();
	e = kbi_stack_setup(n + 1);
	if (e)
		return e;
	e = kbi_tcb_setup(&kbi_self_tls, (enum kbi_tcb_mode)kbi_options.tls);
	if (e && e != ENOTSUP)
		return e;
	e = make_vps(n, processors);
	if (!e)
		e = kbi_worker_pool_setup(n);
	if (!e)
		e = kbi_thread_setup();
	if (e)
		return fail_start(e);
	kbi_handoff_setup();
	kbi_agent_deadlock = kbi_dump_deadlock;
	e = kbi_preempt_setup();
	if (e)
		return fail_start(e);
	kbi_contain_setup();
	kbi_dump_setup();
	kbi_worker_learn_masks();
	if (kbi_options.body == KBI_OPT_BODY_PROCESS) {
		e = begin_processes();
		return e ? fail_start(e) : 0; /* the program is as it was */
	}
	if (first)
		e = adopt_main(kbi_vps[0]);
	if (e)
		return fail_start(e);
	workers = first;
	e = start_workers();
	if (first)
		kbi_place_take(kbi_vps[0]); /* last, so that kernel threads started before it have any
		                             * processor */
	return e;
}

static void print_choices(void)
{
	const char *why = kbi_tcb_why();

	kbi_sys_message("%u virtual processors, scheduler %s, own TLS: %s%s%s", kbi_vp_n,
			chosen_scheduler()->name,
			kbi_tcb_available ? "yes" : "no", *why ? ", " : "", why);
	if (kbi_intercept_taken())
		kbi_sys_message("libc's system calls are taken over by %s (option libcalls)",
			kbi_intercept_taken());
}

/* Returns the stage after a start with error e. Main may run on its virtual processor already, and
 * some VPs have their kernel threads: where there was no room for a kernel thread, the next caller
 * tries again. */
static uint32_t stage_after(int e)
{
	if (!e)
		return RUNNING;
	return e == EAGAIN && kbi_options.body == KBI_OPT_BODY_THREAD && kbi_vp_n ?
		LACKS_BODIES : FAILED;
}

static uint32_t wait_for_start(void)
{
	return kbi_lock_await(&stage, STARTING);
}

bool kbi_boot_has_vps(void)
{
	uint32_t now = wait_for_start();

	return now == RUNNING || now == LACKS_BODIES;
}

bool kbi_boot_is_refused(void)
{
	return wait_for_start() == FAILED && refused;
}

void kbi_boot_again(void)
{
	refused = false;
	a_store_rel(&stage, NOT_STARTED); /* partner: the acquire in kbi_boot */
}

int kbi_boot(void)
{
	/* acquire: partner is the release in kbi_lock_tell, below */
	uint32_t before = a_load_acq(&stage);

	if (kbi_likely(before == RUNNING))
		return 0;
	if ((before == NOT_STARTED || before == LACKS_BODIES) && a_cas_acq(&stage, &before, STARTING)) {
		failure = before == LACKS_BODIES ? start_workers() : boot_runtime();
		if (kbi_options.verbose)
			print_choices();
		kbi_lock_tell(&stage, stage_after(failure));
	}
	return wait_for_start() == RUNNING ? 0 : failure;
}
