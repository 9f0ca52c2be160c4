/* mem/heap_space.c - the region, its frontier, and free spans. Contract in heap_space.h.
 *
 * Free spans are listed by length. Spans that have their pages (dirty) and spans that have returned
 * them (clean) are listed apart. Dirty spans are taken first, because they cost no page faults.
 * Free neighbours of one kind are joined at once. */
#include "mem/heap_space.h"
#include "os/lock.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "base/san.h"

enum {
	EXACT = 32,           /* each length below this has a list of its own */
	LISTS = EXACT + 32,   /* longer spans: a list for each doubling */
	STEP = 256,           /* units made accessible at once */
	RECORDS = 1 << 16,    /* bytes mapped at once for the heap's own records */
	MARK_BYTES = KBI_MARK_WORDS * 8,
};
/* sanitizers leave less room */
#define RESERVE ((size_t)1 << (KBI_SAN ? 36 : sizeof(size_t) == 8 ? 44 : 30))
#define KEEP ((size_t)16 << 20)

/* All free spans of one kind. */
struct set {
	struct kbi_slab *list[LISTS];
	uint64_t filled; /* bit l: list[l] is not empty */
	size_t units;
};

struct kbi_space kbi_space;

static struct {
	a32 lock;
	a32 ready; /* 0: not yet; 1: set up; 2: there is no address space */
	/* under the lock */
	struct set clean, dirty;
	/* the frontier: units that were ever taken; open: units whose pages are accessible */
	size_t frontier, open;
	size_t used, peak;     /* units that are not free; its maximum */
	size_t keep;           /* dirty units that need not be returned; 0: the default */
	bool pinned;           /* the system refused to take pages back: they are locked in memory */
	char *record, *record_end;
	size_t record_bytes;
} space;

/* ---- the region ------------------------------------------------------------------------------ */

static bool map_region_at(void *at, size_t bytes)
{
	return kbi_sys_mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED) != NULL;
}

static size_t bytes_per_unit(void)
{
	return KBI_UNIT + sizeof(struct kbi_slab) + sizeof(a32) + MARK_BYTES;
}

/* Returns the most that may be reserved: half of the address space that a limit leaves the
 * program. */
static size_t reserve_limit(void)
{
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };

	kbi_sys(SYS_prlimit64, 0, RLIMIT_AS, NULL, &r);
	return r.rlim_cur == RLIM_INFINITY || r.rlim_cur / 2 > RESERVE ? RESERVE :
									 (size_t)r.rlim_cur / 2;
}

/* Lays out the records first and the blocks behind them; the gap between them is never
 * accessible. */
static void lay_out_region(uintptr_t low, size_t units)
{
	kbi_space.slab = (struct kbi_slab *)low;
	kbi_space.marks = (uint64_t *)(kbi_space.slab + units);
	kbi_space.tag = (a32 *)((char *)kbi_space.marks + units * MARK_BYTES);
	kbi_space.base = ((uintptr_t)(kbi_space.tag + units) + 2 * KBI_UNIT - 1) &
			 ~(uintptr_t)(KBI_UNIT - 1);
	kbi_space.units = units;
}

static bool reserve_region(void)
{
	for (size_t bytes = reserve_limit(); bytes >= 1 << 20; bytes /= 2) {
		size_t units = bytes / bytes_per_unit() & ~(size_t)63,
		       all = units * bytes_per_unit() + 2 * KBI_UNIT;
		void *low = units ? kbi_sys_mmap(NULL, all, PROT_NONE, MAP_NORESERVE) : NULL;

		if (low) {
			lay_out_region((uintptr_t)low, units);
			return true;
		}
	}
	return false;
}

bool kbi_space_setup(void)
{
	/* acquire: pairs with the release below; kbi_space is set */
	if (kbi_unlikely(a_load_acq(&space.ready) == 0)) {
		kbi_lock_take(&space.lock);
		if (a_load_rlx(&space.ready) == 0)
			/* release: pairs with the acquire above */
			a_store_rel(&space.ready, reserve_region() ? 1 : 2);
		kbi_lock_leave(&space.lock);
	}
	return a_load_rlx(&space.ready) == 1;
}

/* Returns the whole pages that hold the items [from, to) of an array. */
static struct kbi_memory_part pages_of_items(const void *array, size_t each, size_t from, size_t to)
{
	uintptr_t at = (uintptr_t)array;

	return (struct kbi_memory_part){ (at + from * each) & ~(uintptr_t)(KBI_PAGE - 1),
					 (at + to * each + KBI_PAGE - 1) & ~(uintptr_t)(KBI_PAGE - 1) };
}

/* Fills part with the memory of the units [from, to): records, tags, marks, pages. */
static void parts_of(size_t from, size_t to, struct kbi_memory_part part[KBI_MEMORY_PARTS])
{
	part[0] = pages_of_items(kbi_space.slab, sizeof(struct kbi_slab), from, to);
	part[1] = pages_of_items(kbi_space.tag, sizeof(a32), from, to);
	part[2] = pages_of_items(kbi_space.marks, MARK_BYTES, from, to);
	part[3] = pages_of_items((void *)kbi_space.base, KBI_UNIT, from, to);
}

static bool open_units_to(size_t to)
{
	struct kbi_memory_part part[KBI_MEMORY_PARTS];

	if (to > kbi_space.units)
		return false;
	parts_of(space.open, to, part);
	for (unsigned i = 0; i < KBI_MEMORY_PARTS && !kbi_space.shared; i++)
		if (kbi_sys(SYS_mprotect, part[i].from, part[i].to - part[i].from, PROT_READ | PROT_WRITE))
			return false;
	space.open = to;
	return true;
}

static void fill_opened_parts(struct kbi_memory_part part[KBI_MEMORY_PARTS])
{
	parts_of(0, space.open, part);
}

bool kbi_space_region(struct kbi_memory_region *r)
{
	bool is = kbi_space_setup();

	*r = (struct kbi_memory_region){ 0 };
	if (is) {
		r->from = pages_of_items(kbi_space.slab, 1, 0, 0).from;
		r->to = kbi_space.base + (kbi_space.units << KBI_UNIT_SHIFT);
		r->parts = fill_opened_parts;
	}
	return is;
}

/* ---- free spans, under the lock -------------------------------------------------------------- */

static struct set *set_of_state(enum kbi_unit_state state)
{
	return state == KBI_UNIT_FREE_CLEAN ? &space.clean : &space.dirty;
}

static unsigned list_of_length(size_t units)
{
	return units < EXACT ? (unsigned)units :
			       EXACT - 5 + 63 - (unsigned)__builtin_clzll((unsigned long long)units);
}

static void unlink_span(struct kbi_slab *s)
{
	struct set *set = set_of_state((enum kbi_unit_state)s->state);
	unsigned l = list_of_length(s->units);

	if (s->prev)
		s->prev->next = s->next;
	else
		set->list[l] = s->next;
	if (s->next)
		s->next->prev = s->prev;
	if (!set->list[l])
		set->filled &= ~((uint64_t)1 << l);
	set->units -= s->units;
}

static void link_span(struct kbi_slab *s, size_t units, enum kbi_unit_state state)
{
	struct set *set = set_of_state(state);
	unsigned l = list_of_length(units);

	s->units = (uint32_t)units;
	s->back = 0;
	s->state = s[units - 1].state = (uint8_t)state;
	s[units - 1].back = (uint32_t)units - 1;
	s->prev = NULL;
	s->next = set->list[l];
	if (s->next)
		s->next->prev = s;
	set->list[l] = s;
	set->filled |= (uint64_t)1 << l;
	set->units += units;
}

/* Lists a span that becomes free, joined with its neighbours of the same kind. */
static void add_span(struct kbi_slab *s, size_t units, enum kbi_unit_state state)
{
	struct kbi_slab *right = s + units;

	if (right < kbi_space.slab + space.frontier && right->state == state) {
		unlink_span(right);
		units += right->units;
	}
	if (s > kbi_space.slab && s[-1].state == state) {
		s = s - 1 - s[-1].back;
		unlink_span(s);
		units += s->units;
	}
	link_span(s, units, state);
}

static struct kbi_slab *find_span(struct set *set, size_t units)
{
	unsigned l = list_of_length(units);
	uint64_t longer = set->filled & ~(((uint64_t)2 << l) - 1);

	for (struct kbi_slab *s = set->list[l]; s; s = s->next)
		if (s->units >= units)
			return s;
	return longer ? set->list[__builtin_ctzll(longer)] : NULL;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void mark_used(struct kbi_slab *s, size_t units)
{
	s->state = s[units - 1].state = KBI_UNIT_USED;
	s->units = (uint32_t)units;
	s->back = s[units - 1].back = 0;
	s->moved = false;
}

/* Returns the number of units from here to the next unit whose address is a multiple of `align`
 * units. */
static size_t gap_to_aligned(size_t unit, size_t align)
{
	return -((kbi_space.base >> KBI_UNIT_SHIFT) + unit) & (align - 1);
}

/* Takes a part of a free span; the rest stays free. */
static struct kbi_slab *carve_span(struct kbi_slab *s, size_t units, size_t align)
{
	size_t all = s->units, front = gap_to_aligned((size_t)(s - kbi_space.slab), align);
	enum kbi_unit_state state = (enum kbi_unit_state)s->state;

	unlink_span(s);
	if (front)
		link_span(s, front, state);
	if (all - front > units)
		link_span(s + front + units, all - front - units, state);
	mark_used(s + front, units);
	return s + front;
}

static struct kbi_slab *take_free(struct set *set, size_t units, size_t align)
{
	struct kbi_slab *s = set->filled ? find_span(set, units + align - 1) : NULL;

	return s ? carve_span(s, units, align) : NULL;
}

static struct kbi_slab *take_fresh(size_t units, size_t align)
{
	size_t front = gap_to_aligned(space.frontier, align), end = space.frontier + front + units;
	struct kbi_slab *s = &kbi_space.slab[space.frontier + front];

	if (end > kbi_space.units)
		return NULL;
	if (end > space.open && !open_units_to(end + STEP < kbi_space.units ? end + STEP : end) &&
	    !open_units_to(end))
		return NULL;
	if (front)
		add_span(s - front, front, KBI_UNIT_FREE_CLEAN);
	mark_used(s, units);
	space.frontier = end;
	return s;
}

size_t kbi_space_take(size_t units, size_t align, bool *zero)
{
	struct kbi_slab *s;

	if (!kbi_space_setup() || units > kbi_space.units || align > kbi_space.units)
		return ~(size_t)0;
	kbi_lock_take(&space.lock);
	*zero = false;
	s = take_free(&space.dirty, units, align);
	if (!s) {
		*zero = true;
		s = take_free(&space.clean, units, align);
	}
	if (!s)
		s = take_fresh(units, align);
	if (s)
		space.used += units;
	if (space.used > space.peak)
		space.peak = space.used;
	kbi_lock_leave(&space.lock);
	return s ? (size_t)(s - kbi_space.slab) : ~(size_t)0;
}

bool kbi_space_extend(size_t unit, size_t units, size_t more)
{
	struct kbi_slab *s = &kbi_space.slab[unit], *right = s + units;
	bool done = false;

	kbi_lock_take(&space.lock);
	if (unit + units < space.frontier &&
	    (right->state == KBI_UNIT_FREE_CLEAN || right->state == KBI_UNIT_FREE_DIRTY) &&
	    right->units >= more) {
		carve_span(right, more, 1);
		done = true;
	} else if (unit + units == space.frontier) {
		done = take_fresh(more, 1) != NULL;
	}
	if (done) {
		bool moved = s->moved;

		mark_used(s, units + more);
		s->moved = moved;
		space.used += more;
	}
	kbi_lock_leave(&space.lock);
	return done;
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* Takes the longest dirty span out of its list; it is USED meanwhile. NULL: no more than `keep`
 * units are dirty. */
static struct kbi_slab *take_dirtiest(size_t keep)
{
	struct kbi_slab *s = NULL;

	if (space.dirty.units > keep && !space.pinned) {
		s = space.dirty.list[63 - __builtin_clzll(space.dirty.filled)];
		carve_span(s, s->units, 1);
	}
	return s;
}

/* Returns dirty pages to the system. Called under the lock, and releases it while the kernel
 * works. */
static bool trim_dirty_spans(size_t keep)
{
	struct kbi_slab *s;
	bool any = false;

	while ((s = take_dirtiest(keep))) {
		size_t unit = (size_t)(s - kbi_space.slab);
		long r;

		kbi_lock_leave(&space.lock);
		r = kbi_sys(SYS_madvise, kbi_space_at(unit), (size_t)s->units << KBI_UNIT_SHIFT,
			    kbi_space.shared ? MADV_REMOVE : MADV_DONTNEED);
		kbi_lock_take(&space.lock);
		space.pinned |= r != 0;
		add_span(s, s->units, r ? KBI_UNIT_FREE_DIRTY : KBI_UNIT_FREE_CLEAN);
		any |= r == 0;
	}
	return any;
}

/* Returns the dirty units that may be kept: the more units are in use, the more. */
static size_t kept_units(void)
{
	return (space.keep ? space.keep : KEEP >> KBI_UNIT_SHIFT) + space.used / 8;
}

static void give_span(size_t unit, size_t units)
{
	add_span(&kbi_space.slab[unit], units, KBI_UNIT_FREE_DIRTY);
	space.used -= units;
	if (space.dirty.units > kept_units())
		trim_dirty_spans(kept_units() / 2);
}

/* Maps a span anew whose pages were moved here. These lie in a mapping of their own; the new
 * mapping joins its neighbours. A shared region is one mapping. */
static void remap_moved_span(const struct kbi_slab *s, size_t unit, size_t units)
{
	if (s->moved && !kbi_space.shared)
		map_region_at(kbi_space_at(unit), units << KBI_UNIT_SHIFT);
}

void kbi_space_give(size_t unit, size_t units)
{
	remap_moved_span(&kbi_space.slab[unit], unit, units);
	kbi_lock_take(&space.lock);
	give_span(unit, units);
	kbi_lock_leave(&space.lock);
}

void kbi_space_cut(size_t unit, size_t keep)
{
	struct kbi_slab *s = &kbi_space.slab[unit];
	size_t units = s->units - keep;

	remap_moved_span(s, unit + keep, units);
	kbi_lock_take(&space.lock);
	s[keep - 1].state = KBI_UNIT_USED;
	s[keep - 1].back = 0;
	s->units = (uint32_t)keep;
	give_span(unit + keep, units);
	kbi_lock_leave(&space.lock);
}

bool kbi_space_trim(size_t keep)
{
	bool any;

	kbi_lock_take(&space.lock);
	space.pinned = false;
	any = trim_dirty_spans(keep >> KBI_UNIT_SHIFT);
	kbi_lock_leave(&space.lock);
	return any;
}

void kbi_space_keep(size_t bytes)
{
	kbi_lock_take(&space.lock);
	space.keep = (bytes >> KBI_UNIT_SHIFT) + 1;
	kbi_lock_leave(&space.lock);
}

/* ---- the heap's own records ------------------------------------------------------------------ */

void *kbi_space_record(size_t bytes)
{
	void *p = NULL;

	bytes = (bytes + 511) & ~(size_t)511;
	kbi_lock_take(&space.lock);
	if ((size_t)(space.record_end - space.record) < bytes) {
		size_t all = bytes > RECORDS ? bytes : RECORDS;
		char *more = kbi_sys_from.take ? kbi_sys_from.take(all) :
						 kbi_sys_mmap(NULL, all, PROT_READ | PROT_WRITE, 0);

		if (more) {
			space.record = more;
			space.record_end = more + all;
		}
	}
	if ((size_t)(space.record_end - space.record) >= bytes) {
		p = space.record;
		space.record += bytes;
		space.record_bytes += bytes;
	}
	kbi_lock_leave(&space.lock);
	return p;
}

void kbi_space_count(struct kbi_space_count *c)
{
	kbi_lock_take(&space.lock);
	c->frontier = space.frontier << KBI_UNIT_SHIFT;
	c->clean = space.clean.units << KBI_UNIT_SHIFT;
	c->dirty = space.dirty.units << KBI_UNIT_SHIFT;
	c->peak = space.peak << KBI_UNIT_SHIFT;
	c->records = space.record_bytes;
	kbi_lock_leave(&space.lock);
}

void kbi_space_freeze(void)
{
	kbi_lock_take(&space.lock);
}

void kbi_space_thaw(void)
{
	kbi_lock_leave(&space.lock);
}
