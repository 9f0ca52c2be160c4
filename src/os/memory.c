/* os/memory.c - the shared space. Contract in memory.h.
 * The memory file is sparse: memory never written costs nothing, returned memory is punched out.
 * Its descriptor is moved away from the program's numbers. Addresses are given out from below;
 * returned addresses are kept in a sorted table. All data of this unit is in .data, which
 * kbi_memory_convert makes shared like the rest, so all processes see one state. */
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "os/fd.h"
#include "os/lock.h"
#include "os/maps.h"
#include "os/random.h"
#include "os/sys.h"

enum {
	/* returned ranges not yet taken again; beyond that number addresses are lost, not memory */
	HOLES = 4096,
	MOST_MAPS = 1 << 14,
	STACK_MOST = 1 << 30,  /* limit of main's stack if there is no limit */
	HUGE = 2 << 20,        /* bytes of a huge page */
	RUN = 512,             /* pages looked up at once */
	SEEK_TO_DATA = 3, SEEK_TO_HOLE = 4,
};

#define LARGEST ((size_t)16 << 40)
#define SMALLEST ((size_t)4 << 30)

struct hole {
	uintptr_t at;
	size_t size;
};

static struct {
	int fd;
	uint64_t file;
	uintptr_t base;
	size_t size;
	struct kbi_memory_region added; /* in the file it follows the space, see place_added */
	a32 lock;
	/* under the lock */
	uintptr_t next;
	unsigned holes;
	struct hole hole[HOLES];
} space = { .fd = -1 };

static size_t whole_pages(size_t bytes)
{
	return (bytes + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
}

size_t kbi_memory_size(void)
{
	return space.size;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void drop_hole(unsigned i)
{
	space.holes--;
	for (; i < space.holes; i++)
		space.hole[i] = space.hole[i + 1];
}

static uintptr_t take_hole(size_t bytes)
{
	for (unsigned i = 0; i < space.holes; i++) {
		struct hole *h = &space.hole[i];
		uintptr_t at = h->at;

		if (h->size < bytes)
			continue;
		h->at += bytes;
		h->size -= bytes;
		if (!h->size)
			drop_hole(i);
		return at;
	}
	return 0;
}

static uintptr_t take_addresses(size_t bytes)
{
	uintptr_t at = take_hole(bytes);

	if (at || space.base + space.size - space.next < bytes)
		return at;
	at = space.next;
	space.next += bytes;
	return at;
}

static void add_hole(uintptr_t at, size_t bytes)
{
	unsigned i = 0;

	while (i < space.holes && space.hole[i].at < at)
		i++;
	if (i > 0 && space.hole[i - 1].at + space.hole[i - 1].size == at) {
		space.hole[--i].size += bytes;
	} else {
		if (space.holes == HOLES)
			return;
		for (unsigned j = space.holes++; j > i; j--)
			space.hole[j] = space.hole[j - 1];
		space.hole[i] = (struct hole){ at, bytes };
	}
	if (i + 1 < space.holes && space.hole[i].at + space.hole[i].size == space.hole[i + 1].at) {
		space.hole[i].size += space.hole[i + 1].size;
		drop_hole(i + 1);
	}
}

void *kbi_memory_take(size_t bytes)
{
	uintptr_t at;

	bytes = whole_pages(bytes);
	if (!bytes || bytes > space.size)
		return NULL;
	kbi_lock_take(&space.lock);
	at = take_addresses(bytes);
	kbi_lock_leave(&space.lock);
	return (void *)at;
}

/* Takes a range out of the holes; *free: it was free. Returns false if no address there was ever
 * given out. */
static bool take_from_hole(uintptr_t at, size_t bytes, bool *free)
{
	for (unsigned i = 0; i < space.holes; i++) {
		struct hole h = space.hole[i];

		if (at < h.at || at - h.at >= h.size)
			continue;
		*free = bytes <= h.size - (at - h.at);
		if (!*free)
			return true;
		drop_hole(i);
		if (at > h.at)
			add_hole(h.at, at - h.at);
		if (h.at + h.size > at + bytes)
			add_hole(at + bytes, h.at + h.size - at - bytes);
		return true;
	}
	return at < space.next;
}

bool kbi_memory_take_at(void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p, end;
	bool free = false;

	kbi_lock_take(&space.lock);
	end = space.next;
	if (!take_from_hole(at, bytes, &free)) {
		if (at > end)
			add_hole(end, at - end);
		space.next = at + bytes;
		free = true;
	}
	kbi_lock_leave(&space.lock);
	return free;
}

bool kbi_memory_is_added(const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p;

	return space.size && at >= space.added.from && at < space.added.to &&
		bytes <= space.added.to - at;
}

/* Returns the place of an address of the region in the file. A page lies between the space and the
 * region: if they were neighbours in the file and in memory, the kernel would report them as one
 * mapping. */
static size_t place_added(uintptr_t at)
{
	return space.size + KBI_PAGE + (at - space.added.from);
}

/* Returns the place in the file of memory in the space or in the allocator's region. */
static size_t place_in_file(const void *p)
{
	return kbi_memory_is_added(p, 1) ? place_added((uintptr_t)p) : (uintptr_t)p - space.base;
}

void kbi_memory_clear_place(size_t place, size_t bytes)
{
	kbi_sys(SYS_fallocate, space.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place,
		whole_pages(bytes));
}

void kbi_memory_clear(void *p, size_t bytes)
{
	kbi_memory_clear_place(place_in_file(p), bytes);
}

int kbi_memory_descriptor(void)
{
	return space.fd;
}

uint64_t kbi_memory_file(void)
{
	return space.file;
}

size_t kbi_memory_offset(const void *p)
{
	return (uintptr_t)p - space.base;
}

void kbi_memory_give(void *p, size_t bytes)
{
	bytes = whole_pages(bytes);
	if (!kbi_memory_holds(p, bytes)) {
		kbi_sys(SYS_munmap, p, bytes); /* mapped before the space was open */
		return;
	}
	kbi_memory_clear(p, bytes);
	kbi_lock_take(&space.lock);
	add_hole((uintptr_t)p, bytes);
	kbi_lock_leave(&space.lock);
}

bool kbi_memory_holds(const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p;

	return space.size && at >= space.base && at - space.base < space.size &&
		bytes <= space.size - (at - space.base);
}

void kbi_memory_used(uintptr_t *from, uintptr_t *to)
{
	*from = space.base;
	*to = space.next;
}

/* Includes a part of the file in a core dump: `bytes` bytes from `place`, mapped at `at`. */
static void dump_range(size_t place, size_t bytes, uintptr_t at)
{
	long from = (long)place, to;

	for (; (from = kbi_sys(SYS_lseek, space.fd, from, SEEK_TO_DATA)) >= 0 &&
			(size_t)from - place < bytes; from = to) {
		to = kbi_sys(SYS_lseek, space.fd, from, SEEK_TO_HOLE);
		if (to <= from || kbi_sys(SYS_madvise, at + ((size_t)from - place), to - from, MADV_DODUMP))
			return;
	}
}

void kbi_memory_dump(void)
{
	struct rlimit l;

	if (!space.size || kbi_sys(SYS_prlimit64, 0, RLIMIT_CORE, 0, &l) || !l.rlim_cur)
		return;
	dump_range(0, space.next - space.base, space.base);
	dump_range(place_added(space.added.from), space.added.to - space.added.from,
		space.added.from);
}

void kbi_memory_forget(void)
{
	kbi_sys(SYS_close, space.fd);
	space.fd = -1;
	space.size = 0;
	space.file = 0;
	space.added = (struct kbi_memory_region){ 0 };
	kbi_sys_from = (struct kbi_sys_from){ .futex = FUTEX_PRIVATE_FLAG };
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_mmap_error(long r)
{
	return (unsigned long)r > -4096ul;
}

/* Returns a random offset: the kernel may place so large a mapping at whole huge pages only, which
 * would make addresses in it easy to guess. */
static size_t random_offset(void)
{
	uint64_t r;

	kbi_random(&r, sizeof r);
	return r % (HUGE / KBI_PAGE) * KBI_PAGE;
}

static bool reserve_shared_space(int fd, size_t size)
{
	struct stat st;
	long at;

	if (kbi_sys(SYS_ftruncate, fd, size))
		return false;
	/* If the program has locked its future memory, the kernel populates an accessible mapping at
	 * once, but not an inaccessible one. */
	at = kbi_sys(SYS_mmap, 0, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (is_mmap_error(at))
		return false;
	kbi_sys(SYS_munlock, at, size);
	if (kbi_sys(SYS_mprotect, at, size, PROT_READ | PROT_WRITE)) {
		kbi_sys(SYS_munmap, at, size);
		return false;
	}
	space.fd = fd;
	space.file = kbi_sys(SYS_fstat, fd, &st) ? 0 : st.st_ino;
	space.base = (uintptr_t)at;
	space.next = space.base + random_offset();
	space.size = size;
	/* a dump would read, and so allocate, memory never touched; see kbi_memory_dump */
	kbi_sys(SYS_madvise, at, size, MADV_DONTDUMP);
	return true;
}

/* Returns the largest size that the limits allow. A file longer than the limit would raise a
 * signal. */
static size_t most_allowed(void)
{
	struct rlimit l;
	size_t most = LARGEST;

	if (!kbi_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &l) && l.rlim_cur < most)
		most = l.rlim_cur;
	if (!kbi_sys(SYS_prlimit64, 0, RLIMIT_AS, 0, &l) && l.rlim_cur < most)
		most = l.rlim_cur / 2;
	return most;
}

int kbi_memory_open(const char **why)
{
	size_t most = most_allowed();
	long fd = kbi_sys(SYS_memfd_create, "kochab", MFD_CLOEXEC);

	if (fd < 0) {
		*why = "no memory file can be made (memfd_create)";
		return (int)-fd;
	}
	fd = kbi_fd_move((int)fd);
	for (size_t size = LARGEST; size >= SMALLEST; size /= 2) {
		if (size > most || !reserve_shared_space((int)fd, size))
			continue;
		kbi_sys_from.take = kbi_memory_take;
		kbi_sys_from.give = kbi_memory_give;
		return 0;
	}
	kbi_sys(SYS_close, fd);
	*why = "no 4 GiB of addresses can be reserved (limits of address space and file size)";
	return ENOMEM;
}

int kbi_memory_add(const struct kbi_memory_region *region)
{
	struct rlimit l = { .rlim_cur = RLIM_INFINITY };
	size_t all = space.size + KBI_PAGE + (region->to - region->from);

	kbi_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &l); /* a longer file would raise a signal */
	if (l.rlim_cur < all || kbi_sys(SYS_ftruncate, space.fd, all))
		return ENOMEM;
	space.added = *region;
	return 0;
}

const struct kbi_memory_region *kbi_memory_added(void)
{
	return &space.added;
}

/* ---- page tables ----------------------------------------------------------------------------- */

static int pages = -1; /* /proc/self/pagemap, open from kbi_memory_is_told to kbi_memory_convert */

/* Opens the page map. The kernel hides a process that has changed its user from itself, and the
 * file from a process that opens files as another user: both are undone for this moment. */
static long open_pagemap(void)
{
	enum { NEVER, ALWAYS };
	long dumpable = kbi_sys(SYS_prctl, PR_GET_DUMPABLE), user = kbi_sys(SYS_setfsuid, -1), fd;

	if (dumpable != ALWAYS)
		kbi_sys(SYS_prctl, PR_SET_DUMPABLE, ALWAYS);
	kbi_sys(SYS_setfsuid, kbi_sys(SYS_geteuid));
	fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	kbi_sys(SYS_setfsuid, user);
	if (dumpable != ALWAYS)
		kbi_sys(SYS_prctl, PR_SET_DUMPABLE, NEVER);
	return fd;
}

int kbi_memory_is_told(const char **why)
{
	*why = kbi_maps_may_read() ? "/proc/self/pagemap cannot be read"
		: "/proc/self/maps cannot be read";
	pages = (int)open_pagemap();
	return pages < 0 || !kbi_maps_may_read() ? EACCES : 0;
}

/* ---- converting ------------------------------------------------------------------------------ */

/* From here on no function of libc is called: the memory that such calls go through is being
 * moved. */

struct map {
	uintptr_t from, to;
	uint8_t protection;
	bool file;              /* untouched pages are not zero */
	bool stack;
	uintptr_t copy;         /* its address in the space */
};

struct work {
	char *text;
	struct map *map;
	unsigned maps;
	const char *why;
};

static void copy_without_libc(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
#else
	for (volatile char *d = to; n; n--)
		*d++ = *(const char *)from, from = (const char *)from + 1;
#endif
}

/* Cuts the allocator's region out of a line, because share_added handles it: the kernel reports
 * neighbours as one mapping. */
static void clip_added_region(struct kbi_maps_line *l)
{
	if (l->from < space.added.from && l->to > space.added.from)
		l->to = space.added.from;
	if (l->from >= space.added.from && l->from < space.added.to)
		l->from = l->to < space.added.to ? l->to : space.added.to;
}

/* Returns true if the mapping is the program's own memory, to be shared. */
static bool is_to_be_shared(const struct kbi_maps_line *l, struct map *m)
{
	*m = (struct map){ .from = l->from, .to = l->to, .protection = l->protection, .file = l->inode,
		.stack = l->stack };
	if (l->shared || l->kernels)
		return false;
	/* code and constants stay private: no thread writes there */
	return m->protection & PROT_WRITE || (!m->file && !(m->protection & PROT_EXEC));
}

/* Extends main's stack. A private stack grows when memory below it is touched; a shared mapping
 * gets its full size at once. */
static void lengthen_main_stack(struct map *stack, uintptr_t floor)
{
	struct rlimit l = { .rlim_cur = RLIM_INFINITY };
	size_t most;

	kbi_sys(SYS_prlimit64, 0, RLIMIT_STACK, 0, &l);
	most = l.rlim_cur < STACK_MOST ? whole_pages(l.rlim_cur) : 64 << 20;
	floor += 256 * KBI_PAGE; /* the gap that the kernel keeps below a stack */
	if (stack->to - stack->from < most && stack->to - most > floor)
		stack->from = stack->to - most;
}

static int find_maps(struct work *w)
{
	int e = kbi_maps_read(w->text, KBI_MAPS_TEXT);
	const char *p = w->text;
	struct kbi_maps_line l;
	uintptr_t before = 0;

	if (e) {
		w->why = "/proc/self/maps cannot be read";
		return e;
	}
	for (; (p = kbi_maps_next(p, &l)); before = l.to) {
		struct map *m = &w->map[w->maps];

		clip_added_region(&l);
		if (l.from == l.to || !is_to_be_shared(&l, m))
			continue;
		if (m->stack)
			lengthen_main_stack(m, before);
		if (++w->maps == MOST_MAPS) {
			w->why = "the program has too many mappings";
			return E2BIG;
		}
	}
	return 0;
}

/* Copies the present pages; of a file's mapping also the pages not yet read. The kernel copies
 * absent pages and fails where a read would fault: a page reported as swapped may be a guard
 * (MADV_GUARD_INSTALL, in libc's stacks from 2.42 on), and a file may be shorter than its
 * mapping. */
static void copy_map(const struct map *m)
{
	uint64_t page[RUN];

	for (uintptr_t at = m->from; at < m->to; at += (uintptr_t)RUN * KBI_PAGE) {
		size_t left = (m->to - at) / KBI_PAGE, n = left < RUN ? left : RUN;

		if (kbi_sys(SYS_pread64, pages, page, n * 8, at / KBI_PAGE * 8) != (long)(n * 8))
			continue; /* below the stack's end */
		for (size_t i = 0; i < n; i++) {
			uintptr_t from = at + i * KBI_PAGE, to = m->copy + (from - m->from);

			if (page[i] >> 63)
				copy_without_libc((void *)to, (void *)from, KBI_PAGE);
			else if (m->file || page[i] >> 62)
				kbi_sys(SYS_pwrite64, space.fd, from, KBI_PAGE,
					kbi_memory_is_added((void *)from, 1) ? place_added(from) : to - space.base);
		}
	}
}

static int share_mapping(const struct map *m)
{
	if (!(m->protection & PROT_READ))
		kbi_sys(SYS_mprotect, m->from, m->to - m->from, m->protection | PROT_READ);
	copy_map(m);
	return is_mmap_error(kbi_sys(SYS_mmap, m->from, m->to - m->from, m->protection,
		MAP_SHARED | MAP_FIXED | MAP_NORESERVE, space.fd, m->copy - space.base)) ? EFAULT : 0;
}

/* Copies the contents of the allocator's region through a second mapping of its part of the
 * file. */
static int copy_added(struct work *w)
{
	struct kbi_memory_part part[KBI_MEMORY_PARTS];

	if (!space.added.to)
		return 0;
	space.added.parts(part);
	for (unsigned i = 0; i < KBI_MEMORY_PARTS; i++) {
		struct map m = { .from = part[i].from, .to = part[i].to };
		size_t bytes = m.to - m.from;
		long at;

		if (!bytes)
			continue;
		at = kbi_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			space.fd, place_added(m.from));
		if (is_mmap_error(at)) {
			w->why = "no addresses are left for a copy of the heap";
			return ENOMEM;
		}
		m.copy = (uintptr_t)at;
		copy_map(&m);
		kbi_sys(SYS_munmap, at, bytes);
	}
	return 0;
}

static int share_added(void)
{
	size_t bytes = space.added.to - space.added.from;
	uintptr_t at = space.added.from;

	if (!bytes)
		return 0;
	if (is_mmap_error(kbi_sys(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED | MAP_NORESERVE, space.fd, place_added(at))))
		return EFAULT;
	kbi_sys(SYS_madvise, at, bytes, MADV_DONTDUMP);
	return 0;
}

/* Takes all addresses before the first mapping moves: the table of them moves, too. */
static int share_all(struct work *w)
{
	int e = copy_added(w);

	if (e)
		return e;

	for (unsigned i = 0; i < w->maps; i++) {
		w->map[i].copy = (uintptr_t)kbi_memory_take(w->map[i].to - w->map[i].from);
		if (!w->map[i].copy) {
			w->why = "the program has more memory than the space";
			return ENOMEM;
		}
	}
	e = share_added();
	for (unsigned i = 0; i < w->maps && !e; i++)
		e = share_mapping(&w->map[i]);
	if (e)
		w->why = "a mapping could not be moved into the space";
	return e;
}

int kbi_memory_convert(const char **why)
{
	size_t size = KBI_MAPS_TEXT + MOST_MAPS * sizeof(struct map);
	struct work w = { .text = kbi_memory_take(size) };
	int e;

	if (!w.text) {
		*why = "the space is full";
		return ENOMEM;
	}
	w.map = (struct map *)(w.text + KBI_MAPS_TEXT);
	e = find_maps(&w);
	if (!e)
		e = share_all(&w);
	kbi_sys(SYS_close, pages);
	if (e)
		*why = w.why;
	kbi_memory_give(w.text, size);
	return e;
}
