/* core/descriptor.c - the table of thread descriptors, reserved once. Each VP keeps free
 * descriptors, last in first out. They go from VP to VP in bundles, so that no function walks
 * through them. Contract in descriptor.h. Runs inside np brackets on any stack; table.lock
 * protects the lists. */
#include "core/descriptor.h"

#include <errno.h>
#include <string.h>

#include "base/option.h"
#include "os/lock.h"
#include "os/sys.h"
#include "sched/board.h"

__thread struct kbi_task *kbi_self_tls __attribute__((tls_model("initial-exec")));
__thread uint32_t kbi_descriptor_loads __attribute__((tls_model("initial-exec")));

#if !defined(__x86_64__)
KBI_NOINLINE struct kbi_task *kbi_self_reload(void);
KBI_NOINLINE struct kbi_task *kbi_self_reload(void)
{
	kbi_compiler_barrier();
	return kbi_self_tls;
}
#endif

ptrdiff_t kbi_self_offset, kbi_descriptor_loads_at;

enum { BUNDLE = KBI_DESCRIPTOR_BUNDLE };

struct kbi_descriptor_table kbi_descriptor_table;

enum {
	FEWEST = 4096,
	KERNEL_ONLY = 256, /* without address space: for kernel threads that wait for our objects */
};
/* as in a page */
static struct kb_thread kernel_only[KERNEL_ONLY] KBI_ALIGNED(sizeof(struct kb_thread));

static struct {
	uint32_t max;           /* constant after setup */
	a32 ready;              /* 0, 1 being set up, 2 */
	a32 lock;
	/* under the lock */
	struct kb_thread *free; /* single ones */
	struct kb_thread *bundles;
} table;

static void reserve_table(void)
{
	/* a process with limited address space has fewer threads and needs most of the space for
	 * their stacks */
	table.max = (uint32_t)(kbi_sys_reserve(kbi_options.max_threads * sizeof(struct kb_thread)) /
			       sizeof(struct kb_thread));
	kbi_descriptor_table.at = kbi_sys_map_table(table.max * sizeof(struct kb_thread));
	while (!kbi_descriptor_table.at && table.max / 8 >= FEWEST) {
		table.max /= 8;
		kbi_descriptor_table.at = kbi_sys_map_table(table.max * sizeof(struct kb_thread));
	}
	if (kbi_descriptor_table.at)
		kbi_descriptor_table.charged = kbi_sys_map_table(table.max * sizeof(a64));
	/* with small pages a walk through a million descriptors in any order misses the TLB at each
	 * step */
	if (kbi_descriptor_table.at)
		kbi_sys_map_large(kbi_descriptor_table.at, table.max * sizeof(struct kb_thread));
	/* whole groups, so that a scan may run over the last one's end */
	if (kbi_descriptor_table.at && !kbi_board_setup((table.max + 63) / 64 * 64))
		return;
	kbi_descriptor_table.at = kernel_only;
	table.max = KERNEL_ONLY;
}

int kbi_descriptor_setup(void)
{
	uint32_t none = 0;

	/* acquire: pairs with the release in kbi_lock_tell below */
	while (a_load_acq(&table.ready) != 2) {
		if (!a_cas_acq(&table.ready, &none, 1)) {
			kbi_lock_await(&table.ready, 1);
			none = 0;
			continue;
		}
		/* a foreign thread may come first of all; kb_init tells the reason */
		kbi_option_load_quietly();
		reserve_table();
		kbi_lock_tell(&table.ready, 2);
	}
	return kbi_descriptor_table.at == kernel_only ? ENOMEM : 0;
}

static void lock_table(void)
{
	kbi_lock_take(&table.lock);
}

static void unlock_table(void)
{
	kbi_lock_leave(&table.lock);
}

/* Under the lock. A bundle is linked by its members' `next`; the first member's `prev` leads to
 * the next bundle. */
static void put_bundle(struct kb_thread *first)
{
	first->task.prev = (struct kbi_task *)table.bundles;
	table.bundles = first;
}

static struct kb_thread *take_bundle(void)
{
	struct kb_thread *first = table.bundles;

	if (first)
		table.bundles = (struct kb_thread *)first->task.prev;
	return first;
}

static void put_single(struct kb_thread *t)
{
	t->task.next = (struct kbi_task *)table.free;
	table.free = t;
}

/* Under the lock: returns a descriptor, a returned or a new one; NULL: all are in use. */
static struct kb_thread *draw_descriptor(void)
{
	struct kb_thread *t = table.free;
	uint32_t n = a_load_rlx(&kbi_descriptor_table.used);

	if (t) {
		table.free = (struct kb_thread *)t->task.next;
		return t;
	}
	if (n == table.max)
		return NULL;
	t = &kbi_descriptor_table.at[n];
	t->task.index = n;
	/* release: pairs with the acquire in kbi_descriptor_limit */
	a_store_rel(&kbi_descriptor_table.used, n + 1);
	return t;
}

/* Under the lock: draws for a caller without a cache; opens a bundle if there is no single
 * descriptor. */
static struct kb_thread *draw_single(void)
{
	if (!table.free)
		table.free = take_bundle();
	return draw_descriptor();
}

static void refill_cache(struct kbi_descriptor_cache *c)
{
	struct kb_thread *t;

	c->free = c->spare;
	c->n = c->free ? BUNDLE : 0;
	c->spare = NULL;
	if (c->free)
		return;
	lock_table();
	c->free = take_bundle();
	c->n = c->free ? BUNDLE : 0;
	while (c->n < BUNDLE && (t = draw_descriptor())) {
		t->task.next = (struct kbi_task *)c->free;
		c->free = t;
		c->n++;
	}
	unlock_table();
}

struct kb_thread *kbi_descriptor_alloc_slow(struct kbi_descriptor_cache *c)
{
	struct kb_thread *t;

	if (!c) {
		kbi_descriptor_setup();
		lock_table();
		t = draw_single();
		unlock_table();
		return t;
	}
	refill_cache(c);
	t = c->free;
	if (t) {
		c->free = (struct kb_thread *)t->task.next;
		c->n--;
	}
	return t;
}

void kbi_descriptor_free_slow(struct kbi_descriptor_cache *c, struct kb_thread *t)
{
	if (!c || c->spare) {
		lock_table();
		if (c)
			put_bundle(c->spare);
		else
			put_single(t);
		unlock_table();
	}
	if (!c)
		return;
	c->spare = c->free;
	t->task.next = NULL;
	c->free = t;
	c->n = 1;
}

void kbi_descriptor_after_fork(void)
{
	if (!a_load_rlx(&table.lock))
		return;
	table.free = table.bundles = NULL;
	unlock_table();
}

__attribute__((no_sanitize("thread"))) uint32_t kbi_descriptor_ever_used(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < kbi_descriptor_limit(); i++)
		n += kbi_descriptor_table.at[i].task.ctx.sp != NULL; /* kbi_descriptor_alloc */
	return n;
}

uint32_t kbi_descriptor_limit(void)
{
	/* acquire: pairs with the release in draw_descriptor */
	return a_load_acq(&kbi_descriptor_table.used);
}

struct kb_thread *kbi_descriptor_at(uint32_t index)
{
	return index < kbi_descriptor_limit() ? &kbi_descriptor_table.at[index] : NULL;
}
