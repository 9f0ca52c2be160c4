/* posix/malloc.c - libc's names for the heap, of which libkochab-malloc.so is made: preloaded, on
 * its own or beside the drop-in, it is the program's malloc. It keeps what libc promises for each
 * function: errno, zero sizes, overflow, alignment. It is part of neither libkochab nor the
 * drop-in; they find it by kb_heap_door (mem/heap_door).
 * Callers: programs. Calls mem/heap. Never switches. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kochab/heap.h>

#include "base/option.h"
#include "libc/names.h"
#include "libc/redirect.h"
#include "mem/heap.h"
#include "mem/heap_door.h"
#include "mem/heap_guard.h"
#include "mem/heap_hard.h"
#include "mem/heap_stats.h"
#include "os/sys.h"

#define OURS __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* Returns p; sets errno if p is NULL. */
static inline void *or_enomem(void *p)
{
	if (kbi_unlikely(!p))
		errno = ENOMEM;
	return p;
}

static bool is_power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

OURS void *malloc(size_t n)
{
	return kbi_heap_take(n);
}

OURS void free(void *p)
{
	kbi_heap_give(p);
}

OURS void *calloc(size_t count, size_t each)
{
	size_t n;

	if (kbi_unlikely(__builtin_mul_overflow(count, each, &n)))
		return or_enomem(NULL);
	return or_enomem(kbi_heap_take_zeroed(n, CALLER));
}

OURS void *realloc(void *p, size_t n)
{
	if (kbi_unlikely(!n && p)) {
		kbi_heap_give_for(p, CALLER);
		return NULL;
	}
	return or_enomem(kbi_heap_resize(p, n, CALLER));
}

OURS void *reallocarray(void *p, size_t count, size_t each)
{
	size_t n;

	if (kbi_unlikely(__builtin_mul_overflow(count, each, &n)))
		return or_enomem(NULL);
	return realloc(p, n);
}

static void *take_aligned(size_t align, size_t n, const void *caller)
{
	if (kbi_unlikely(!is_power_of_two(align))) {
		errno = EINVAL;
		return NULL;
	}
	return or_enomem(kbi_heap_take_aligned(align, n, caller));
}

OURS void *aligned_alloc(size_t align, size_t n)
{
	return take_aligned(align, n, CALLER);
}

/* libc's memalign rounds up to the next power of two. */
OURS void *memalign(size_t align, size_t n)
{
	size_t power = KBI_HEAP_GRAIN;

	while (power < align && power <= PTRDIFF_MAX)
		power *= 2;
	return take_aligned(power, n, CALLER);
}

OURS int posix_memalign(void **p, size_t align, size_t n)
{
	void *q;

	if (!is_power_of_two(align) || align % sizeof(void *))
		return EINVAL;
	q = kbi_heap_take_aligned(align, n, CALLER);
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

static size_t page_bytes(void)
{
	return (size_t)getpagesize();
}

OURS void *valloc(size_t n)
{
	return take_aligned(page_bytes(), n, CALLER);
}

OURS void *pvalloc(size_t n)
{
	size_t p = page_bytes();

	if (n > PTRDIFF_MAX - p)
		return or_enomem(NULL);
	return take_aligned(p, n ? (n + p - 1) & ~(p - 1) : p, CALLER);
}

OURS size_t malloc_usable_size(void *p)
{
	return kbi_heap_bytes(p, CALLER);
}

/* ---- statistics and limits ---------------------------------------------------------------- */

OURS int malloc_trim(size_t keep)
{
	return kbi_heap_trim(keep);
}

/* Numbers of glibc's settings: other libcs have no names for them. */
enum { MXFAST = 1, TRIM_THRESHOLD = -1, ARENA_MAX = -8 /* the lowest */ };

/* Only TRIM_THRESHOLD has an effect here. */
OURS int mallopt(int what, int value)
{
	if (what == TRIM_THRESHOLD && value >= 0)
		kbi_space_keep((size_t)value);
	return what == MXFAST || (what <= TRIM_THRESHOLD && what >= ARENA_MAX);
}

/* libc's struct mallinfo2, which older libcs lack; and mallinfo, which is deprecated in newer
 * libcs. */
struct accounts {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct int_accounts {
	int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

OURS struct accounts accounts(void) __asm__("mallinfo2");
OURS struct int_accounts int_accounts(void) __asm__("mallinfo");

struct accounts accounts(void)
{
	struct kbi_stats s;

	kbi_stats_take(&s);
	return (struct accounts){
		.arena = s.slab_bytes + s.space.dirty,
		.hblks = s.large,
		.hblkhd = s.large_bytes,
		.usmblks = s.space.peak,
		.uordblks = s.out_bytes,
		.fordblks = s.slab_bytes - s.out_bytes + s.space.dirty,
		.keepcost = s.space.dirty,
	};
}

struct int_accounts int_accounts(void)
{
	struct accounts m = accounts();

	return (struct int_accounts){
		.arena = (int)m.arena,
		.hblks = (int)m.hblks,
		.hblkhd = (int)m.hblkhd,
		.usmblks = (int)m.usmblks,
		.uordblks = (int)m.uordblks,
		.fordblks = (int)m.fordblks,
		.keepcost = (int)m.keepcost,
	};
}

OURS int malloc_info(int options, FILE *to)
{
	struct kbi_stats s;

	if (options) {
		errno = EINVAL;
		return -1;
	}
	kbi_stats_take(&s);
	fprintf(to, "<malloc version=\"kochab-1\">\n<sizes>\n");
	for (unsigned k = 1; k < KBI_HEAP_CLASSES; k++)
		if (s.class[k].slabs)
			fprintf(to, "  <size from=\"%u\" to=\"%u\" total=\"%zu\" count=\"%zu\"/>\n",
				kbi_slab_class[k - 1].size * (k > 1) + 1, kbi_slab_class[k].size,
				s.class[k].out * kbi_slab_class[k].size, s.class[k].out);
	fprintf(to, "</sizes>\n<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n", s.large,
		s.large_bytes);
	fprintf(to, "<system type=\"current\" size=\"%zu\"/>\n"
		"<system type=\"max\" size=\"%zu\"/>\n</malloc>\n",
		s.slab_bytes + s.large_bytes + s.space.dirty, s.space.peak);
	return 0;
}

static void print_heap_stats(void)
{
	static char text[16384];
	size_t n = kbi_stats_json(text, sizeof text);

	kbi_sys_write(STDERR_FILENO, text, n < sizeof text ? n : sizeof text - 1);
}

OURS void malloc_stats(void)
{
	print_heap_stats();
}

OURS size_t kb_heap_stats_json(char *buf, size_t size)
{
	return kbi_stats_json(buf, size);
}

/* ---- beside the runtime ------------------------------------------------------------------- */

/* Defined by the linker: the ELF header of this library. */
extern const char __ehdr_start KBI_HIDDEN;

/* Returns the heap's owner record of a VP's worker (its kernel thread or process); at each switch
 * the thread that runs gets this pointer in its slot. */
static void *owner_of_worker(void)
{
	if (!kbi_owner_self->behind)
		kbi_life_begin();
	return kbi_owner_self;
}

static void end_worker_owner(void)
{
	kbi_life_stays();
	kbi_life_end();
}

static void set_shared_space(bool is, const struct kbi_sys_from *from)
{
	kbi_sys_from = *from;
	kbi_space.shared = is;
	kbi_guard_stop();
}

OURS const struct kbi_door *kb_heap_door(void)
{
	static struct kbi_door door;

	door = (struct kbi_door){
		.version = KBI_DOOR_VERSION,
		.slot = &kbi_owner_self,
		.none = &kbi_owner_none,
		.here = owner_of_worker,
		.stays = kbi_life_stays,
		.ends = end_worker_owner,
		.region = kbi_space_region,
		.shared = set_shared_space,
		.held = kbi_life_hold,
		.renumber = kbi_life_renumber,
		.explain = kbi_guard_explain,
		.stats_json = kbi_stats_json,
		.ehdr = &__ehdr_start,
	};
	return &door;
}

__attribute__((constructor(101))) static void start_heap(void)
{
	kbi_heap_start();
	kbi_life_watch();
	if (!kbi_redirect(false))
		kbi_sys_message(
			"libc's table of names cannot be written: who looks malloc up in libc finds libc's");
	/* the runtime's handler asks through the door */
	if (kbi_guard.every && !kbi_names_look_up("kb_thread_create"))
		kbi_guard_watch();
	if (kbi_options.heap_stats)
		atexit(print_heap_stats);
}
