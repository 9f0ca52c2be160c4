/* libc/emulate_map.c - memory where virtual processors are processes. Contract in emulate_map.h.
 *
 * Anonymous memory is taken from the space, which every process has mapped for reading and writing.
 * A map of a file, and another protection, is made in every process, at an address from the space
 * (libc/emulate_odd). A private map of a file that may be written is a copy of the file in the
 * space. Runs on the caller's stack, inside libc; calls no function of libc's that could come back
 * here. */
#include "libc/emulate_map.h"
#include "os/fd.h"

#include <errno.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "base/atom.h"
#include "libc/broadcast.h"
#include "libc/emulate_chosen.h"
#include "libc/emulate_lock.h"
#include "libc/emulate_odd.h"
#include "libc/emulate_private.h"
#include "os/maps.h"
#include "os/memory.h"
#include "os/memory_marks.h"
#include "os/sys.h"

enum { PLAIN = PROT_READ | PROT_WRITE, DROPPABLE = 8 /* Linux 6.11's MAP_DROPPABLE */ };

static size_t whole_pages(size_t bytes)
{
	return (bytes + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
}

static bool is_syscall_error(long r)
{
	return (unsigned long)r > -4096ul;
}

/* ---- in every process ------------------------------------------------------------------------ */

long kbi_emulate_broadcast(long nr, long a, long b, long c, long d, long e, long f)
{
	return kbi_broadcast(&(struct kbi_broadcast_call){ .nr = nr, .arg = { a, b, c, d, e, f },
		.pointer = -1 });
}

/* Maps the space's memory from `backing` on at `at`. */
static long map_space(uintptr_t at, size_t bytes, int protection, const void *backing)
{
	return kbi_emulate_broadcast(SYS_mmap, (long)at, (long)bytes, protection,
		MAP_SHARED | MAP_FIXED | MAP_NORESERVE, kbi_memory_descriptor(),
		(long)kbi_memory_offset(backing));
}

/* Makes the range plain zeroed memory. */
static void make_plain(void *p, size_t bytes)
{
	if (kbi_emulate_odd_take((uintptr_t)p, bytes, true))
		map_space((uintptr_t)p, bytes, PLAIN, p);
}

/* Clears the parts of the memory file that are mapped in the range: they read as zero from now on,
 * also where main's memory lay before the start. The kernel gets the advice (if not 0) for the rest
 * of the range. */
static long clear_parts(uintptr_t at, size_t bytes, int advice)
{
	uintptr_t end = at + bytes, next;
	struct kbi_maps_line m;
	long r = 0, e;

	for (; at < end; at = next) {
		if (kbi_maps_find(at, &m))
			return advice ? -ENOMEM : 0;
		next = m.to < end ? m.to : end;
		if (m.shared && m.inode == kbi_memory_file())
			kbi_memory_clear_place(m.offset + (at - m.from), next - at);
		else if (advice && (e = kbi_sys(SYS_madvise, at, next - at, advice)))
			r = e;
	}
	return r;
}

/* ---- maps ------------------------------------------------------------------------------------ */

struct request {
	uintptr_t at;
	size_t bytes;
	int protection, flags, fd;
	long offset;
};

/* Returns the address for a map: the caller's, or an address from the space; 0: none. */
static uintptr_t place_request(struct request *r)
{
	if (r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return r->at;
	return (uintptr_t)kbi_memory_take(r->bytes);
}

static bool is_claim(const struct request *r)
{
	return r->flags & MAP_FIXED_NOREPLACE && !(r->flags & MAP_FIXED);
}

/* Claims a range where nothing is mapped in this process, and keeps it for the caller. A kernel
 * that takes the flag for a hint answers with another address. */
static long claim_here(uintptr_t at, size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	long r = kbi_sys(SYS_mmap, at, bytes, PROT_NONE, flags, -1, 0);

	if (is_syscall_error(r) || r == (long)at)
		return is_syscall_error(r) ? r : 0;
	kbi_sys(SYS_munmap, r, bytes);
	return -EEXIST;
}

/* Undoes a placement after the map was refused or lies elsewhere. When a file refuses, the kernel
 * may have unmapped the memory there, in this process only. If the caller chose the address, the
 * range is as after munmap then. */
static void undo_placement(const struct request *r, uintptr_t at)
{
	bool chosen = r->flags & MAP_FIXED, ours = kbi_memory_holds((void *)at, r->bytes);

	if (chosen && claim_here(at, r->bytes))
		return;
	if (ours) {
		kbi_emulate_odd_take(at, r->bytes, true);
		map_space(at, r->bytes, PLAIN, (void *)at);
	}
	if (!chosen)
		kbi_memory_give((void *)at, r->bytes);
	else if (ours)
		kbi_memory_clear((void *)at, r->bytes);
	else
		kbi_emulate_broadcast(SYS_munmap, (long)at, (long)r->bytes, 0, 0, 0, 0);
}

/* Notes that the memory there is not the space's. Returns `result`. */
static long note_other(uintptr_t at, size_t bytes, long result)
{
	if (is_syscall_error(result) || !kbi_memory_holds((void *)at, bytes))
		return result;
	kbi_emulate_odd_take(at, bytes, true);
	kbi_emulate_odd_note(at, bytes, false);
	return result;
}

/* Puts zeroed memory of the space there. Returns the address or -errno. */
static long back_by_space(const struct request *r, uintptr_t at, int protection)
{
	void *backing = (void *)at;

	if (kbi_memory_holds(backing, r->bytes)) {
		make_plain(backing, r->bytes);
		if (r->flags & MAP_FIXED)
			kbi_memory_clear(backing, r->bytes);
	} else {
		backing = kbi_memory_take(r->bytes);
		if (!backing)
			return -ENOMEM;
		return map_space(at, r->bytes, protection, backing);
	}
	if ((protection & (PLAIN | PROT_EXEC)) == PLAIN)
		return (long)at;
	kbi_emulate_odd_note(at, r->bytes, true);
	return is_syscall_error(kbi_emulate_private_protect(at, r->bytes, protection)) ?
		-ENOMEM : (long)at;
}

static void fill_from_file(char *p, size_t bytes, int fd, long offset)
{
	long n;

	for (; bytes > 0; p += n, offset += n, bytes -= (size_t)n) {
		n = kbi_sys(SYS_pread64, fd, p, bytes, offset);
		if (n <= 0)
			return;
	}
}

/* Puts a copy of the file's part there. */
static long map_copy(const struct request *r, uintptr_t at)
{
	long e = back_by_space(r, at, PLAIN);

	if (is_syscall_error(e))
		return e;
	fill_from_file((char *)at, r->bytes, r->fd, r->offset);
	if (r->protection & PROT_EXEC) {
		kbi_emulate_odd_note(at, r->bytes, true);
		kbi_emulate_private_protect(at, r->bytes, r->protection);
	}
	return (long)at;
}

static long map_file_at(const struct request *r, uintptr_t at)
{
	int flags = (r->flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED;

	return note_other(at, r->bytes, kbi_emulate_broadcast(SYS_mmap, (long)at, (long)r->bytes,
		r->protection, flags, r->fd, r->offset));
}

struct not_childs {
	uintptr_t at;
	bool is;
};

static void look_for_mapping(const struct kbi_maps_line *m, const char *name,
	const char *flags, void *arg)
{
	struct not_childs *n = arg;

	(void)name;
	if (n->at >= m->from && n->at < m->to)
		for (; *flags; flags++)
			n->is |= flags[0] == 'd' && flags[1] == 'c';
}

/* Returns true for a device's map that children do not get: a process that is started later would
 * not have it. */
static bool is_not_for_children(int fd, uintptr_t at)
{
	struct not_childs n = { .at = at };
	struct stat st;

	if (kbi_sys(SYS_fstat, fd, &st) || S_ISREG(st.st_mode))
		return false;
	kbi_maps_each(look_for_mapping, &n);
	return n.is;
}

static long map_checked_file(const struct request *r, uintptr_t at)
{
	bool may_choose = !(r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE));
	long result = map_file_at(r, at);

	if (result == -EINVAL && may_choose)
		result = kbi_emulate_chosen_map(r->bytes, r->protection, r->flags, r->fd, r->offset);
	if (is_syscall_error(result) || !is_not_for_children(r->fd, (uintptr_t)result))
		return result;
	kbi_sys_message("a mapping that children do not get (a device's) is refused where virtual "
		"processors are processes: EINVAL");
	if (result == (long)at)
		make_plain((void *)at, r->bytes);
	else
		kbi_emulate_broadcast(SYS_munmap, result, (long)r->bytes, 0, 0, 0, 0);
	return -EINVAL;
}

/* Returns true if files may not be so long (RLIMIT_FSIZE). That limit is for files, not for memory,
 * and would raise a signal. */
static bool is_too_long(size_t bytes)
{
	struct rlimit l;

	return !kbi_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &l) && bytes > l.rlim_cur;
}

/* Maps a System V segment: it is no file, and ends with its last mapping. */
static long map_segment(const struct request *r, uintptr_t at)
{
	long id = kbi_sys(SYS_shmget, IPC_PRIVATE, r->bytes, IPC_CREAT | 0600), e;

	if (id < 0)
		return -ENOMEM;
	e = kbi_emulate_broadcast(SYS_shmat, id, (long)at,
		SHM_REMAP | (r->protection & PROT_EXEC ? SHM_EXEC : 0), 0, 0, 0);
	kbi_sys(SYS_shmctl, id, IPC_RMID, NULL);
	note_other(at, r->bytes, e);
	if (is_syscall_error(e) || (r->protection | PROT_EXEC) == (PLAIN | PROT_EXEC))
		return e;
	return is_syscall_error(kbi_emulate_private_protect(at, r->bytes, r->protection)) ?
		-ENOMEM : (long)at;
}

/* Makes memory that is shared with children of fork as well, which leave the space: in a memory
 * file of its own. */
static long map_shared(struct request *r, uintptr_t at)
{
	long fd, e;

	if (is_too_long(r->bytes))
		return map_segment(r, at);
	KBI_FD_BRIEFLY();
	fd = kbi_sys(SYS_memfd_create, "kochab-shared", MFD_CLOEXEC);
	if (fd < 0)
		return fd;
	e = kbi_sys(SYS_ftruncate, fd, r->bytes);
	r->fd = (int)fd;
	r->offset = 0;
	r->flags &= ~MAP_ANONYMOUS;
	if (!e)
		e = map_file_at(r, at);
	kbi_sys(SYS_close, fd);
	return e;
}

/* Returns true for an arena of libc's malloc: malloc reserves it so and opens it page by page as it
 * grows, which would be as many calls in every process. So it is made readable and writable from
 * the beginning. */
static bool is_malloc_arena(const struct request *r)
{
	enum { ARENA = 64 << 20, ALIGNED = 2 * ARENA };

	return r->protection == PROT_NONE && (r->flags & MAP_NORESERVE) && r->flags & MAP_ANONYMOUS &&
	       !(r->flags & MAP_FIXED) && (r->bytes == ARENA || r->bytes == ALIGNED);
}

/* Claims a range where the program has nothing: in the space; or where this process has nothing
 * mapped, and so no other process has. There the claim stays until something is mapped over it. */
static long claim_range(const struct request *r)
{
	if (r->at % KBI_PAGE)
		return -EINVAL;
	if (kbi_memory_holds((void *)r->at, r->bytes))
		return kbi_memory_take_at((void *)r->at, r->bytes) ? 0 : -EEXIST;
	return claim_here(r->at, r->bytes);
}

/* Makes MAP_DROPPABLE: a kernel may discard its contents at any time, but ours never does; children
 * get it zeroed. */
static long map_droppable(struct request *r, uintptr_t at)
{
	long result = back_by_space(r, at, r->protection);

	if (!is_syscall_error(result) && kbi_memory_mark(at, r->bytes, KBI_MEMORY_WIPED, true))
		return -ENOMEM;
	return result;
}

static long map_request_at(struct request *r, uintptr_t at)
{
	int type = r->flags & MAP_TYPE;

	if (r->flags & MAP_ANONYMOUS && type == DROPPABLE)
		return map_droppable(r, at);
	if (r->flags & MAP_ANONYMOUS && type != MAP_PRIVATE)
		return map_shared(r, at);
	if (r->flags & MAP_ANONYMOUS)
		return back_by_space(r, at, is_malloc_arena(r) ? PLAIN : r->protection);
	if (type == MAP_PRIVATE && r->protection & PROT_WRITE)
		return map_copy(r, at);
	return map_checked_file(r, at);
}

static long unmap_range(uintptr_t at, size_t bytes);

static long make_mapping(struct request *r)
{
	uintptr_t at;
	long result;

	if (!r->bytes || r->flags & MAP_HUGETLB)
		return -EINVAL;
	r->bytes = whole_pages(r->bytes);
	result = is_claim(r) ? claim_range(r) : 0;
	if (is_syscall_error(result))
		return result;
	at = place_request(r);
	if (!at)
		return r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? -EPERM : -ENOMEM;
	if (r->flags & MAP_FIXED)
		kbi_memory_unmark(at, r->bytes);
	result = map_request_at(r, at);
	if (!is_syscall_error(result) && kbi_emulate_lock_new((uintptr_t)result, r->bytes,
		r->protection && !is_malloc_arena(r))) {
		unmap_range((uintptr_t)result, r->bytes);
		return -EAGAIN;
	}
	if (result != (long)at) /* an error, or another address */
		undo_placement(r, at);
	return result;
}

static long unmap_range(uintptr_t at, size_t bytes)
{
	if (at % KBI_PAGE || !bytes)
		return -EINVAL;
	bytes = whole_pages(bytes);
	kbi_memory_unmark(at, bytes);
	if (!kbi_memory_holds((void *)at, bytes)) {
		clear_parts(at, bytes, 0);
		return kbi_emulate_broadcast(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
	}
	kbi_emulate_lock_gone(at, bytes);
	make_plain((void *)at, bytes);
	kbi_memory_give((void *)at, bytes);
	return 0;
}

/* ---- System V memory: attached in every process ---------------------------------------------- */

static long attach_segment(long id, uintptr_t at, long flags)
{
	struct shmid_ds d;
	long r = kbi_sys(SYS_shmctl, id, IPC_STAT, &d);
	size_t bytes;

	if (r)
		return r;
	if (at)
		return kbi_emulate_broadcast(SYS_shmat, id, (long)at, flags, 0, 0, 0);
	bytes = whole_pages(d.shm_segsz);
	at = (uintptr_t)kbi_memory_take(bytes);
	if (!at)
		return -ENOMEM;
	kbi_emulate_odd_note(at, bytes, false);
	r = kbi_emulate_broadcast(SYS_shmat, id, (long)at, flags | SHM_REMAP, 0, 0, 0);
	if (is_syscall_error(r))
		unmap_range(at, bytes);
	return r;
}

static long detach_segment(uintptr_t at)
{
	size_t bytes = kbi_emulate_odd_bytes(at);
	long r = kbi_emulate_broadcast(SYS_shmdt, (long)at, 0, 0, 0, 0, 0);

	if (!r && bytes)
		unmap_range(at, bytes);
	return r;
}

/* ---- protections, sizes, advice -------------------------------------------------------------- */

/* Extends a protection with PROT_GROWSDOWN to the low end of the mapping. The loader so addresses
 * main's stack from one of its pages down; main's stack is shared here and does not grow. */
static void find_low_end(uintptr_t *at, size_t *bytes, int *protection)
{
	struct kbi_maps_line m;

	if (!(*protection & PROT_GROWSDOWN) || kbi_maps_find(*at, &m) || !m.shared)
		return;
	*bytes += *at - m.from;
	*at = m.from;
	*protection &= ~PROT_GROWSDOWN;
}

static long change_protection(uintptr_t at, size_t bytes, int protection)
{
	long r;

	bytes = whole_pages(bytes);
	find_low_end(&at, &bytes, &protection);
	if (kbi_memory_holds((void *)at, bytes)) {
		if (protection == PLAIN && !kbi_emulate_odd_take(at, bytes, false))
			return 0;
		if (protection != PLAIN)
			kbi_emulate_odd_note(at, bytes, true);
	}
	r = kbi_emulate_private_protect(at, bytes, protection);
	if (!r && protection == PLAIN)
		kbi_emulate_odd_forget_own(at, bytes);
	return r;
}

/* Moves a map of a file to another place in the space, in every process. */
static long move_odd(uintptr_t at, size_t bytes, size_t wanted)
{
	uintptr_t to = (uintptr_t)kbi_memory_take(wanted);
	long r;

	if (!to)
		return -ENOMEM;
	r = kbi_emulate_broadcast(SYS_mremap, (long)at, (long)bytes, (long)wanted,
		MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0);
	kbi_emulate_odd_note(to, wanted, false);
	if (is_syscall_error(r)) {
		unmap_range(to, wanted);
		return r;
	}
	unmap_range(at, bytes);
	return (long)to;
}

static long resize_mapping(uintptr_t at, size_t bytes, size_t wanted, int flags)
{
	void *p;

	bytes = whole_pages(bytes);
	wanted = whole_pages(wanted);
	if (!wanted || at % KBI_PAGE || flags & ~MREMAP_MAYMOVE)
		return -EINVAL;
	if (wanted <= bytes)
		return wanted < bytes ? unmap_range(at + wanted, bytes - wanted) : 0, (long)at;
	if (!(flags & MREMAP_MAYMOVE) || !kbi_memory_holds((void *)at, bytes))
		return -ENOMEM;
	if (kbi_emulate_odd_take(at, bytes, false))
		return kbi_emulate_odd_is_own(at, bytes) ? -ENOMEM : move_odd(at, bytes, wanted);
	p = kbi_memory_take(wanted);
	if (!p)
		return -ENOMEM;
	memcpy(p, (void *)at, bytes);
	kbi_memory_give((void *)at, bytes);
	return (long)p;
}

/* Numbers as in libc's headers, and Linux 6.13's; these two need page tables that all processes
 * share. */
enum { GUARD_INSTALL = 102, GUARD_REMOVE };

static bool is_space_memory(uintptr_t at, size_t bytes)
{
	struct kbi_maps_line m;

	if (kbi_memory_holds((void *)at, bytes) && !kbi_emulate_odd_take(at, bytes, false))
		return true;
	return !kbi_maps_find(at, &m) && m.shared && m.inode == kbi_memory_file();
}

/* Marks memory for children (MADV_DONTFORK, MADV_WIPEONFORK): the kernel would treat our own other
 * processes as children. */
static long advise_children(uintptr_t at, size_t bytes, int advice)
{
	bool has = advice == MADV_DONTFORK || advice == MADV_WIPEONFORK;
	bool wipes = advice == MADV_WIPEONFORK || advice == MADV_KEEPONFORK;

	if (wipes && !is_space_memory(at, bytes))
		return -EINVAL;
	return -kbi_memory_mark(at, bytes, wipes ? KBI_MEMORY_WIPED : KBI_MEMORY_NOT_CHILDS, has);
}

static long discard_memory(uintptr_t at, size_t bytes, int advice)
{
	bool ours = kbi_memory_holds((void *)at, bytes) && !kbi_emulate_odd_take(at, bytes, false);

	if (!ours && !kbi_memory_is_added((void *)at, bytes))
		return clear_parts(at, bytes, advice);
	kbi_memory_clear((void *)at, bytes);
	return 0;
}

static long advise_memory(uintptr_t at, size_t bytes, int advice)
{
	if (at % KBI_PAGE)
		return -EINVAL;
	bytes = whole_pages(bytes);
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_REMOVE:
		return discard_memory(at, bytes, advice);
	case MADV_DONTFORK:
	case MADV_DOFORK:
	case MADV_WIPEONFORK:
	case MADV_KEEPONFORK:
		return advise_children(at, bytes, advice);
	case GUARD_INSTALL:
	case GUARD_REMOVE:
		return -EINVAL;
	case MADV_DONTDUMP:
	case MADV_DODUMP:
		return kbi_emulate_broadcast(SYS_madvise, (long)at, (long)bytes, advice, 0, 0, 0);
	default:
		return kbi_sys(SYS_madvise, at, bytes, advice);
	}
}

long kbi_emulate_memory(long nr, const long a[6])
{
	switch (nr) {
	case SYS_mmap:
		return make_mapping(&(struct request){ (uintptr_t)a[0], (size_t)a[1], (int)a[2],
			(int)a[3], (int)a[4], a[5] });
	case SYS_munmap:
		return unmap_range((uintptr_t)a[0], (size_t)a[1]);
	case SYS_mprotect:
		return change_protection((uintptr_t)a[0], (size_t)a[1], (int)a[2]);
	case SYS_mremap:
		return resize_mapping((uintptr_t)a[0], (size_t)a[1], (size_t)a[2], (int)a[3]);
	case SYS_madvise:
		return advise_memory((uintptr_t)a[0], (size_t)a[1], (int)a[2]);
	case SYS_shmat:
		return attach_segment(a[0], (uintptr_t)a[1], a[2]);
	case SYS_shmdt:
		return detach_segment((uintptr_t)a[0]);
	default:
		return -ENOSYS;
	}
}
