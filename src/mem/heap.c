/* mem/heap.c - the cases that are not inline: medium sizes, empty and full bins, large blocks,
 * alignment, resizing. Contract in heap.h. */
#include "mem/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/option.h"
#include "mem/heap_guard.h"
#include "mem/heap_hard.h"
#include "mem/heap_large.h"
#include "os/lock.h"
#include "os/sys.h"

/* ---- options: before the first block, which may come before main and all constructors -------- */

static a32 started; /* 0: no, 1: yes */

static uint64_t read_heap_option(const char *name)
{
	const struct kbi_option *o = kbi_option_find(name, strlen(name));
	const char *text = environ && kbi_option_obeys(o) ? getenv(o->env) : NULL;
	uint64_t value;

	return text && kbi_option_parse(o, text, &value) == 0 ? value : o->def;
}

static KBI_NOINLINE void setup_heap(void)
{
	static a32 lock;

	kbi_lock_take(&lock);
	if (!a_load_rlx(&started)) {
		kbi_options.heap = (uint32_t)read_heap_option("heap");
		kbi_options.heap_stats = read_heap_option("heap_stats") != 0;
		if (kbi_options.heap == KBI_OPT_HEAP_HARDENED)
			kbi_hard_setup();
		kbi_options.heap_guard = (uint32_t)read_heap_option("heap_guard");
		kbi_guard_setup(kbi_options.heap_guard);
		/* release: pairs with the acquire in kbi_heap_start */
		a_store_rel(&started, 1);
	}
	kbi_lock_leave(&lock);
}

void kbi_heap_start(void)
{
	/* acquire: pairs with the release in setup_heap; the options and the mode */
	if (kbi_unlikely(!a_load_acq(&started)))
		setup_heap();
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Takes a guarded block, because b's next block is chosen; if there is no room for a guarded block,
 * takes b's. */
static KBI_NOINLINE void *take_chosen(struct kbi_owner *o, struct kbi_bin *b, size_t align,
				      size_t n, const void *caller)
{
	void *p = kbi_guard_take(align, n, caller);

	kbi_owner_untrap(o, b);
	if (p) {
		kbi_owner_set_next_trap(o, b);
		return p;
	}
	p = *b->take--;
	kbi_owner_set_trap(o, b);
	return p;
}

static void *take_class(unsigned k, size_t align, size_t n, const void *caller)
{
	struct kbi_owner *o = kbi_owner_self;
	struct kbi_bin *b = &o->bin[k];

	if (kbi_likely(*b->take))
		return *b->take--;
	if (kbi_unlikely(kbi_owner_is_trapped(o, b)))
		return take_chosen(o, b, align, n, caller);
	o = kbi_life_mine();
	return o ? kbi_owner_take(o, k) : NULL;
}

static KBI_NOINLINE void *take_large(size_t n)
{
	bool zero;

	return kbi_large_take(n, 1, &zero);
}

static void *take_plain(size_t n, const void *caller)
{
	if (kbi_unlikely(n > KBI_HEAP_SMALL))
		return take_large(n);
	return take_class(kbi_class_of(n ? n : 1), 1, n, caller);
}

/* In hardened mode the inline path never succeeds, because the owner in the slot is an empty front;
 * so every call comes here. */
void *kbi_heap_take_for(size_t n, const void *caller)
{
	void *p;

	kbi_heap_start();
	p = kbi_unlikely(kbi_owner_hardened) ? kbi_hard_take(1, n, caller) : take_plain(n, caller);
	if (kbi_unlikely(!p))
		errno = ENOMEM;
	return p;
}

void *kbi_heap_take_slow(size_t n)
{
	return kbi_heap_take_for(n, __builtin_return_address(0));
}

void *kbi_heap_take_empty(size_t n, struct kbi_bin *b)
{
	struct kbi_owner *o = kbi_owner_self;
	void *p;

	if (kbi_unlikely(kbi_owner_is_trapped(o, b)))
		return take_chosen(o, b, 1, n, __builtin_return_address(0));
	if (kbi_unlikely(!kbi_owner_exchange(o, b)))
		return kbi_heap_take_for(n, __builtin_return_address(0));
	p = *b->take--;
	if (kbi_unlikely(kbi_guard.every))
		kbi_owner_set_trap(o, b);
	return p;
}

/* Returns the first class whose blocks are long enough and lie at multiples of align; 0: none. */
static unsigned aligned_class(size_t align, size_t n)
{
	unsigned k;

	n = (n + align - 1) & ~(align - 1);
	if (n > KBI_HEAP_SMALL || align > KBI_HEAP_SMALL)
		return 0;
	k = kbi_class_of(n ? n : align);
	while (kbi_class_bytes(k) & (align - 1))
		k++;
	return k;
}

void *kbi_heap_take_aligned(size_t align, size_t n, const void *caller)
{
	bool zero;
	unsigned k;

	if (kbi_unlikely(n > PTRDIFF_MAX || align > PTRDIFF_MAX))
		return NULL;
	if (align <= KBI_HEAP_GRAIN)
		return kbi_heap_take_for(n, caller);
	kbi_heap_start();
	if (kbi_unlikely(kbi_owner_hardened))
		return kbi_hard_take(align, n, caller);
	k = aligned_class(align, n);
	return k ? take_class(k, align, n, caller) : kbi_large_take(n ? n : 1, align, &zero);
}

void *kbi_heap_take_zeroed(size_t n, const void *caller)
{
	bool zero = false;
	void *p;

	kbi_heap_start();
	if (n > KBI_HEAP_SMALL && !kbi_owner_hardened)
		p = kbi_large_take(n, 1, &zero);
	else
		p = kbi_owner_hardened ? kbi_hard_take(1, n, caller) : kbi_heap_take(n);
	if (p && !zero)
		memset(p, 0, n);
	return p;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static KBI_NOINLINE KBI_NORETURN void abort_bad_free(const void *p)
{
	kbi_sys_fatal("heap: free(%p): not a block", kbi_sys_shown(p));
}

static void give_by_tag(void *p, uint32_t tag)
{
	struct kbi_owner *o = kbi_owner_self;

	if (kbi_unlikely(tag >> KBI_TAG_SHIFT == 0)) {
		if (!kbi_large_is(p))
			abort_bad_free(p);
		kbi_large_give(p);
		return;
	}
	if (kbi_unlikely(!o->behind))
		o = kbi_life_begin();
	if (kbi_unlikely(!o))
		return; /* no memory for an owner: the block is lost */
	/* the owner taken over just now owns the block */
	if (kbi_unlikely((tag ^ o->key) < sizeof o->bin))
		kbi_owner_give(o, (tag ^ o->key) >> KBI_BIN_SHIFT, p);
	else
		kbi_owner_send(o, tag, p);
}

void kbi_heap_give_for(void *p, const void *caller)
{
	size_t unit = kbi_space_unit(p);

	if (kbi_unlikely(kbi_guard_has(p))) {
		kbi_guard_give(p, caller);
		return;
	}
	if (kbi_unlikely(kbi_owner_hardened)) {
		kbi_hard_give(p, caller);
		return;
	}
	if (kbi_likely(unit < kbi_space.units))
		give_by_tag(p, a_load_rlx(&kbi_space.tag[unit]));
	else if (p)
		abort_bad_free(p);
}

void kbi_heap_give_slow(void *p)
{
	kbi_heap_give_for(p, __builtin_return_address(0));
}

void kbi_heap_give_full(struct kbi_owner *o, uint32_t bin, void *p)
{
	kbi_owner_give(o, bin >> KBI_BIN_SHIFT, p);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

size_t kbi_heap_bytes(const void *p, const void *caller)
{
	size_t unit = kbi_space_unit(p);

	if (!p)
		return 0;
	if (kbi_unlikely(kbi_guard_has(p)))
		return kbi_guard_bytes(p, caller);
	if (kbi_unlikely(kbi_owner_hardened))
		return kbi_hard_bytes(p, caller);
	if (kbi_large_is(p))
		return kbi_large_bytes(p);
	if (unit >= kbi_space.units || a_load_rlx(&kbi_space.tag[unit]) >> KBI_TAG_SHIFT == 0)
		abort_bad_free(p);
	return kbi_slab_class[(a_load_rlx(&kbi_space.tag[unit]) & KBI_TAG_LARGE) >> KBI_BIN_SHIFT].size;
}

void *kbi_heap_resize(void *p, size_t n, const void *caller)
{
	size_t had = kbi_heap_bytes(p, caller);
	void *q;

	if (p && n > KBI_HEAP_SMALL && !kbi_owner_hardened && kbi_large_is(p))
		return kbi_large_resize(p, n);
	if (p && n <= had && n >= had / 2 && !kbi_owner_hardened && !kbi_guard_has(p))
		return p;
	q = kbi_heap_take_for(n, caller);
	if (!q || !p)
		return q;
	memcpy(q, p, n < had ? n : had);
	kbi_heap_give_for(p, caller);
	return q;
}

bool kbi_heap_trim(size_t keep)
{
	struct kbi_owner *o = kbi_owner_self->behind;

	kbi_hard_flush(__builtin_return_address(0));
	if (o)
		kbi_owner_flush(o);
	kbi_life_tend_all();
	return kbi_space_trim(keep);
}
