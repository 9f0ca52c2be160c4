/* core/descriptor.c - the table of thread descriptors: reserved once. Free ones are kept per VP, last in first out.
 * Contract in descriptor.h. Inside np brackets. */
#include "core/descriptor.h"

#include <string.h>

#include "base/option.h"
#include "core/board.h"
#include "core/vp.h"
#include "os/sys.h"

__thread struct kbi_task *kbi_self_tls __attribute__((tls_model("initial-exec")));

#if !defined(__x86_64__)
KBI_NOINLINE struct kbi_task *kbi_self_reload(void);
KBI_NOINLINE struct kbi_task *kbi_self_reload(void)
{
	kbi_compiler_barrier();
	return kbi_self_tls;
}
#endif

ptrdiff_t kbi_self_offset;

enum { BATCH = 128, CACHE = 4 * BATCH };

static struct {
	struct kb_thread *at;   /* constant after setup */
	uint32_t max;
	a32 ready;              /* 0, 1 being set up, 2 */
	a32 lock;
	a32 used;               /* descriptors ever used; under the lock, read by all */
	struct kb_thread *free; /* under the lock */
} table;

void kbi_descriptor_setup(void)
{
	uint32_t none = 0;

	/* acquire: partner is the release below */
	if (a_load_acq(&table.ready) == 2)
		return;
	if (!a_cas_acq(&table.ready, &none, 1)) {
		while (a_load_acq(&table.ready) != 2)
			kbi_sys_yield();
		return;
	}
	kbi_option_load(); /* a foreign thread may be the first of all; kb_init tells what is wrong */
	table.max = kbi_options.max_threads;
	table.at = kbi_sys_map(table.max * sizeof *table.at);
	/* whole groups, so that a scan may run over the last one's end */
	if (!table.at || kbi_board_setup((table.max + 63) / 64 * 64))
		kbi_sys_fatal("no address space for %u thread descriptors (option max_threads)", table.max);
	a_store_rel(&table.ready, 2);
}

static void lock(void)
{
	uint32_t free = 0;

	/* acquire: partner is the release in unlock */
	while (!a_cas_acq(&table.lock, &free, 1)) {
		free = 0;
		kbi_sys_yield();
	}
}

static void unlock(void)
{
	a_store_rel(&table.lock, 0);
}

/* Under the lock: one descriptor from the common list or never used; NULL: all are in use. */
static struct kb_thread *draw(void)
{
	struct kb_thread *t = table.free;
	uint32_t n = a_load_rlx(&table.used);

	if (t) {
		table.free = (struct kb_thread *)t->task.next;
		return t;
	}
	if (n == table.max)
		return NULL;
	t = &table.at[n];
	t->task.index = n;
	/* release: partner is the acquire in kbi_descriptor_limit */
	a_store_rel(&table.used, n + 1);
	return t;
}

static void refill(struct kbi_vp *vp)
{
	lock();
	for (unsigned i = 0; i < BATCH; i++) {
		struct kb_thread *t = draw();

		if (!t)
			break;
		t->task.next = (struct kbi_task *)vp->free_threads;
		vp->free_threads = t;
		vp->n_free_threads++;
	}
	unlock();
}

static struct kb_thread *reset(struct kb_thread *t)
{
	t->task.tp = NULL;
	t->task.vp = NULL;
	t->task.bound = -1;
	t->task.started = 0;
	t->task.chat = 0;
	t->task.armed = 0;
	a_store_rlx(&t->task.np, 1);
	a_store_rlx(&t->join, NULL);
	t->stack = NULL;
	t->posix = NULL;
	t->keys = NULL;
	t->own_tls = t->user_stack = t->is_main = t->named = t->heir_runs = false;
	a_store_rlx(&t->futex, 0);
	a_store_rlx(&t->task.state, KBI_STATE(KBI_TASK_NEW, 0));
	return t;
}

struct kb_thread *kbi_descriptor_alloc(struct kbi_vp *vp)
{
	struct kb_thread *t;

	if (!vp) {
		kbi_descriptor_setup();
		lock();
		t = draw();
		unlock();
		return t ? reset(t) : NULL;
	}
	if (kbi_unlikely(!vp->free_threads)) {
		refill(vp);
		if (!vp->free_threads)
			return NULL;
	}
	t = vp->free_threads;
	vp->free_threads = (struct kb_thread *)t->task.next;
	vp->n_free_threads--;
	__builtin_prefetch(t->task.next, 1);
	__builtin_prefetch((char *)t->task.next + KBI_CACHE_LINE, 1);
	return reset(t);
}

static void give_back(struct kbi_vp *vp)
{
	lock();
	for (unsigned i = 0; i < BATCH; i++) {
		struct kb_thread *t = vp->free_threads;

		vp->free_threads = (struct kb_thread *)t->task.next;
		t->task.next = (struct kbi_task *)table.free;
		table.free = t;
	}
	unlock();
	vp->n_free_threads -= BATCH;
}

void kbi_descriptor_free(struct kbi_vp *vp, struct kb_thread *t)
{
	a_store_rlx(&t->task.state, KBI_STATE(KBI_TASK_FREE, 0));
	if (t->named)
		t->name[0] = 0;
	if (!vp) {
		lock();
		t->task.next = (struct kbi_task *)table.free;
		table.free = t;
		unlock();
		return;
	}
	t->task.next = (struct kbi_task *)vp->free_threads;
	vp->free_threads = t;
	if (++vp->n_free_threads > CACHE)
		give_back(vp);
}

uint32_t kbi_descriptor_limit(void)
{
	return a_load_acq(&table.used);
}

struct kb_thread *kbi_descriptor_at(uint32_t index)
{
	return index < kbi_descriptor_limit() ? &table.at[index] : NULL;
}

bool kbi_descriptor_valid(const struct kb_thread *t)
{
	uintptr_t off = (uintptr_t)t - (uintptr_t)table.at;

	return (uintptr_t)t >= (uintptr_t)table.at && off % sizeof *t == 0 && off / sizeof *t < kbi_descriptor_limit() &&
	       kbi_state_kind(a_load_acq(&t->task.state)) != KBI_TASK_FREE;
}
