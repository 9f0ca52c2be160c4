/* os/memory_leave.c - leaving the shared space. Contract in memory_leave.h.
 * Each mapping of the memory file is replaced by private zeroed memory, into which the parts of the
 * file with data are read. This replaces all memory that the program can write to, including the
 * variables of this library and the thread's stack: so the code uses only data on the outside stack
 * and calls nothing elsewhere. Between the two steps a mapping reads as zero, including the
 * compiler's stack canary in TLS; this library is built without canaries. */
#include "os/memory_leave.h"

#include <errno.h>
#include <sys/mman.h>

#include "arch/arch.h"
#include "os/maps.h"
#include "os/memory.h"
#include "os/sys.h"

enum { STACK = 1 << 16, SEEK_TO_DATA = 3, SEEK_TO_HOLE = 4 };

/* Lies at the bottom of its stack. */
struct kbi_leave {
	int fd;
	uint64_t inode;         /* of the memory file */
	uintptr_t space, used;  /* beginning of the space; end of its used part */
	size_t size;
	char *text;
	const char *line;
	struct kbi_maps_line map;
	struct kbi_memory_region added; /* an allocator's region */
	struct kbi_memory_part part[KBI_MEMORY_PARTS];
};

static bool is_mmap_error(long r)
{
	return (unsigned long)r > -4096ul;
}

/* Reads the bytes at .. end of the file to address `to`, as far as the file has data. */
static int copy_data(int fd, uintptr_t to, size_t at, size_t end)
{
	long from, hole, n;

	for (size_t begin = at; begin < end; begin = (size_t)hole) {
		from = kbi_sys(SYS_lseek, fd, begin, SEEK_TO_DATA);
		if (from >= 0 && (size_t)from < begin)
			return EIO; /* another file */
		if (from < 0 || (size_t)from >= end)
			return from < 0 && from != -ENXIO ? (int)-from : 0;
		hole = kbi_sys(SYS_lseek, fd, from, SEEK_TO_HOLE);
		if (hole <= from || (size_t)hole > end)
			hole = (long)end;
		for (; from < hole; from += n) {
			n = kbi_sys(SYS_pread64, fd, to + ((size_t)from - at), hole - from, from);
			if (n <= 0)
				return n ? (int)-n : EIO;
		}
	}
	return 0;
}

static bool map_private(uintptr_t from, uintptr_t to, int protection)
{
	return !is_mmap_error(kbi_sys(SYS_mmap, from, to - from, protection,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
}

/* Replaces the allocator's region. Only its opened parts become accessible, as before it was
 * shared: a system with strict overcommit accounting would refuse the whole region. */
static int replace_added(struct kbi_leave *l, const struct kbi_maps_line *m)
{
	int e = map_private(m->from, m->to, PROT_NONE) ? 0 : ENOMEM;

	for (unsigned i = 0; i < KBI_MEMORY_PARTS && !e; i++) {
		uintptr_t from = l->part[i].from > m->from ? l->part[i].from : m->from;
		uintptr_t to = l->part[i].to < m->to ? l->part[i].to : m->to;

		if (from >= to)
			continue;
		if (kbi_sys(SYS_mprotect, from, to - from, PROT_READ | PROT_WRITE))
			return ENOMEM;
		e = copy_data(l->fd, from, m->offset + (from - m->from), m->offset + (to - m->from));
		if (!e && m->protection != (PROT_READ | PROT_WRITE))
			kbi_sys(SYS_mprotect, from, to - from, m->protection);
	}
	return e;
}

static int replace_mapping(struct kbi_leave *l, const struct kbi_maps_line *m)
{
	const int plain = PROT_READ | PROT_WRITE;
	uintptr_t end = m->to;
	int e;

	if (m->from >= l->added.from && m->from < l->added.to)
		return replace_added(l, m);

	if (m->from >= l->space && m->from < l->space + l->size && end > l->used) {
		end = m->from > l->used ? m->from : l->used;
		kbi_sys(SYS_munmap, end, m->to - end);
	}
	if (m->from == end)
		return 0;
	if (!map_private(m->from, end, plain))
		return ENOMEM;
	e = copy_data(l->fd, m->from, m->offset, m->offset + (end - m->from));
	if (!e && m->protection != plain)
		kbi_sys(SYS_mprotect, m->from, end - m->from, m->protection);
	return e;
}

static int read_space_state(struct kbi_leave *l)
{
	int e = kbi_maps_read(l->text, KBI_MAPS_TEXT);

	l->fd = kbi_memory_descriptor();
	l->size = kbi_memory_size();
	kbi_memory_used(&l->space, &l->used);
	l->inode = kbi_memory_file();
	l->added = *kbi_memory_added();
	if (l->added.to)
		l->added.parts(l->part);
	return e;
}

int kbi_leave(struct kbi_leave *l)
{
	int e = read_space_state(l);

	for (l->line = l->text; !e && (l->line = kbi_maps_next(l->line, &l->map));)
		if (l->map.shared && l->map.inode == l->inode)
			e = replace_mapping(l, &l->map);
	if (!e)
		kbi_memory_forget();
	return e;
}

/* Maps private memory, not from the space. */
struct kbi_leave *kbi_leave_prepare(void)
{
	long at = kbi_sys(SYS_mmap, 0, STACK + KBI_MAPS_TEXT, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct kbi_leave *l = (struct kbi_leave *)at;

	if (is_mmap_error(at))
		return NULL;
	l->text = (char *)at + STACK;
	return l;
}

void kbi_leave_drop(struct kbi_leave *l)
{
	kbi_sys(SYS_munmap, l, STACK + KBI_MAPS_TEXT);
}

void kbi_leave_call(struct kbi_leave *l, void (*fn)(void *), void *arg)
{
	kbi_ctx_call_on(l->text, fn, arg);
}
