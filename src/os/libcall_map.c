/* os/libcall_map.c - memory where virtual processors are processes. Contract in libcall_map.h.
 *
 * Anonymous memory is taken from the space, which every process has mapped for reading and writing; a map of a file,
 * and another protection, is made in every process, at an address from the space. Such ranges are kept in a table of odd
 * ones, so that they become plain memory of the space again when they are unmapped. A private map of a file that may be
 * written is a copy of it in the space.
 * Runs on the caller's stack, inside libc; calls nothing of libc's that could come back here. */
#include "os/libcall_map.h"

#include <errno.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "os/everywhere.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/sys.h"

enum { ODD_MOST = 4096, PLAIN = PROT_READ | PROT_WRITE };

struct range {
	uintptr_t from, to;
	bool own; /* memory of the space with another protection; else something else is mapped there */
};

static struct {
	a32 lock;
	/* under the lock */
	unsigned n;
	struct range odd[ODD_MOST];
	bool all_odd;     /* the table was too small once */
} ranges;

static size_t whole(size_t bytes)
{
	return (bytes + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
}

static bool is_error(long r)
{
	return (unsigned long)r > -4096ul;
}

/* ---- odd ranges --------------------------------------------------------------------------------------------- */

static void note_odd(uintptr_t from, size_t bytes, bool own)
{
	kbi_lock_take(&ranges.lock);
	if (ranges.n < ODD_MOST)
		ranges.odd[ranges.n++] = (struct range){ from, from + bytes, own };
	else
		ranges.all_odd = true;
	kbi_lock_leave(&ranges.lock);
}

/* Ranges that lie in it whole are forgotten. */
static bool take_odd(uintptr_t from, size_t bytes, bool forget)
{
	bool any;

	kbi_lock_take(&ranges.lock);
	any = ranges.all_odd;
	for (unsigned i = 0; i < ranges.n;) {
		struct range *r = &ranges.odd[i];

		any |= r->from < from + bytes && r->to > from;
		if (forget && r->from >= from && r->to <= from + bytes)
			*r = ranges.odd[--ranges.n];
		else
			i++;
	}
	kbi_lock_leave(&ranges.lock);
	return any;
}

/* ---- in every process ------------------------------------------------------------------------------------------ */

long kbi_libcall_everywhere(long nr, long a, long b, long c, long d, long e, long f)
{
	return kbi_everywhere(&(struct kbi_everywhere_call){ .nr = nr, .arg = { a, b, c, d, e, f }, .pointer = -1 });
}

static long protect(uintptr_t at, size_t bytes, int protection)
{
	return kbi_libcall_everywhere(SYS_mprotect, (long)at, (long)bytes, protection, 0, 0, 0);
}

/* The space's memory from `backing` on, at `at`. */
static long map_space(uintptr_t at, size_t bytes, int protection, const void *backing)
{
	return kbi_libcall_everywhere(SYS_mmap, (long)at, (long)bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
				      kbi_memory_descriptor(), (long)kbi_memory_offset(backing));
}

/* What lies there becomes plain zeroed memory. */
static void make_plain(void *p, size_t bytes)
{
	if (take_odd((uintptr_t)p, bytes, true))
		map_space((uintptr_t)p, bytes, PLAIN, p);
}

/* ---- maps ---------------------------------------------------------------------------------------------------------- */

struct request {
	uintptr_t at;
	size_t bytes;
	int protection, flags, fd;
	long offset;
};

/* Where it shall be: addresses from the space, unless the caller says where. 0: none. */
static uintptr_t place(struct request *r)
{
	if (r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return r->at;
	return (uintptr_t)kbi_memory_take(r->bytes);
}

static bool claims(const struct request *r)
{
	return r->flags & MAP_FIXED_NOREPLACE && !(r->flags & MAP_FIXED);
}

static void unplace(const struct request *r, uintptr_t at)
{
	if (!(r->flags & MAP_FIXED))
		kbi_memory_give((void *)at, r->bytes);
}

/* Memory of the space there, zeroed. */
static long back(const struct request *r, uintptr_t at, int protection)
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
	note_odd(at, r->bytes, true);
	return is_error(protect(at, r->bytes, protection)) ? -ENOMEM : (long)at;
}

static void fill(char *p, size_t bytes, int fd, long offset)
{
	long n;

	for (; bytes > 0; p += n, offset += n, bytes -= (size_t)n) {
		n = kbi_sys(SYS_pread64, fd, p, bytes, offset);
		if (n <= 0)
			return;
	}
}

/* A copy of the file's part. */
static long map_copy(const struct request *r, uintptr_t at)
{
	long e = back(r, at, PLAIN);

	if (is_error(e))
		return e;
	fill((char *)at, r->bytes, r->fd, r->offset);
	if (r->protection & PROT_EXEC) {
		note_odd(at, r->bytes, true);
		protect(at, r->bytes, r->protection);
	}
	return (long)at;
}

static long map_file(const struct request *r, uintptr_t at)
{
	if (kbi_memory_holds((void *)at, r->bytes)) {
		take_odd(at, r->bytes, true);
		note_odd(at, r->bytes, false);
	}
	return kbi_libcall_everywhere(SYS_mmap, (long)at, (long)r->bytes, r->protection,
				      (r->flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED, r->fd, r->offset);
}

/* Shared with children of fork as well, which leave the space: a memory file of its own. */
static long map_shared(struct request *r, uintptr_t at)
{
	long fd = kbi_sys(SYS_memfd_create, "kochab-shared", MFD_CLOEXEC), e;

	if (fd < 0)
		return fd;
	e = kbi_sys(SYS_ftruncate, fd, r->bytes);
	r->fd = (int)fd;
	r->offset = 0;
	r->flags &= ~MAP_ANONYMOUS;
	if (!e)
		e = map_file(r, at);
	kbi_sys(SYS_close, fd);
	return e;
}

/* libc's malloc reserves an area for each arena that way and opens it page by page as it grows: as many calls in every
 * process. It is open from the beginning. */
static bool is_heap(const struct request *r)
{
	enum { ARENA = 64 << 20, ALIGNED = 2 * ARENA };

	return r->protection == PROT_NONE && (r->flags & MAP_NORESERVE) && r->flags & MAP_ANONYMOUS &&
	       !(r->flags & MAP_FIXED) && (r->bytes == ARENA || r->bytes == ALIGNED);
}

/* Where nothing of the program's lies: in the space, or where this process has nothing mapped, then none has. There the
 * claim stays until something is mapped over it. A kernel that takes the flag for a hint answers with another address. */
static long claim(const struct request *r)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	long at;

	if (r->at % KBI_PAGE)
		return -EINVAL;
	if (kbi_memory_holds((void *)r->at, r->bytes))
		return kbi_memory_take_at((void *)r->at, r->bytes) ? 0 : -EEXIST;
	at = kbi_sys(SYS_mmap, r->at, r->bytes, PROT_NONE, flags, -1, 0);
	if (is_error(at) || at == (long)r->at)
		return at;
	kbi_sys(SYS_munmap, at, r->bytes);
	return -EEXIST;
}

static long map(struct request *r)
{
	uintptr_t at;
	long result;

	if (!r->bytes || r->flags & MAP_HUGETLB)
		return -EINVAL;
	r->bytes = whole(r->bytes);
	result = claims(r) ? claim(r) : 0;
	if (is_error(result))
		return result;
	at = place(r);
	if (!at)
		return r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? -EPERM : -ENOMEM;
	if (r->flags & MAP_ANONYMOUS && (r->flags & MAP_TYPE) != MAP_PRIVATE)
		result = map_shared(r, at);
	else if (r->flags & MAP_ANONYMOUS)
		result = back(r, at, is_heap(r) ? PLAIN : r->protection);
	else if ((r->flags & MAP_TYPE) == MAP_PRIVATE && r->protection & PROT_WRITE)
		result = map_copy(r, at);
	else
		result = map_file(r, at);
	if (is_error(result))
		unplace(r, at);
	return result;
}

static long unmap(uintptr_t at, size_t bytes)
{
	if (at % KBI_PAGE || !bytes)
		return -EINVAL;
	bytes = whole(bytes);
	if (!kbi_memory_holds((void *)at, bytes))
		return kbi_libcall_everywhere(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
	make_plain((void *)at, bytes);
	kbi_memory_give((void *)at, bytes);
	return 0;
}

/* ---- System V memory: attached in every process --------------------------------------------------------------------- */

/* Memory of the space that has become plain again. */
static void forget_own(uintptr_t from, size_t bytes)
{
	kbi_lock_take(&ranges.lock);
	for (unsigned i = 0; i < ranges.n;) {
		struct range *r = &ranges.odd[i];

		if (r->own && r->from >= from && r->to <= from + bytes)
			*r = ranges.odd[--ranges.n];
		else
			i++;
	}
	kbi_lock_leave(&ranges.lock);
}

static size_t bytes_of_odd(uintptr_t from)
{
	size_t bytes = 0;

	kbi_lock_take(&ranges.lock);
	for (unsigned i = 0; i < ranges.n && !bytes; i++)
		if (ranges.odd[i].from == from)
			bytes = ranges.odd[i].to - from;
	kbi_lock_leave(&ranges.lock);
	return bytes;
}

static long attach(long id, uintptr_t at, long flags)
{
	struct shmid_ds d;
	long r = kbi_sys(SYS_shmctl, id, IPC_STAT, &d);
	size_t bytes;

	if (r)
		return r;
	if (at)
		return kbi_libcall_everywhere(SYS_shmat, id, (long)at, flags, 0, 0, 0);
	bytes = whole(d.shm_segsz);
	at = (uintptr_t)kbi_memory_take(bytes);
	if (!at)
		return -ENOMEM;
	note_odd(at, bytes, false);
	r = kbi_libcall_everywhere(SYS_shmat, id, (long)at, flags | SHM_REMAP, 0, 0, 0);
	if (is_error(r))
		unmap(at, bytes);
	return r;
}

static long detach(uintptr_t at)
{
	size_t bytes = bytes_of_odd(at);
	long r = kbi_libcall_everywhere(SYS_shmdt, (long)at, 0, 0, 0, 0, 0);

	if (!r && bytes)
		unmap(at, bytes);
	return r;
}

/* ---- protections, sizes, advice ----------------------------------------------------------------------------------- */

static long change_protection(uintptr_t at, size_t bytes, int protection)
{
	long r;

	bytes = whole(bytes);
	if (kbi_memory_holds((void *)at, bytes)) {
		if (protection == PLAIN && !take_odd(at, bytes, false))
			return 0;
		if (protection != PLAIN)
			note_odd(at, bytes, true);
	}
	r = protect(at, bytes, protection);
	if (!r && protection == PLAIN)
		forget_own(at, bytes);
	return r;
}

/* Of a file: another place in the space. What lies there then is the same in every process. */
static long move_odd(uintptr_t at, size_t bytes, size_t wanted)
{
	uintptr_t to = (uintptr_t)kbi_memory_take(wanted);
	long r;

	if (!to)
		return -ENOMEM;
	r = kbi_libcall_everywhere(SYS_mremap, (long)at, (long)bytes, (long)wanted, MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0);
	if (is_error(r)) {
		kbi_memory_give((void *)to, wanted);
		return r;
	}
	note_odd(to, wanted, false);
	unmap(at, bytes);
	return (long)to;
}

static bool is_own(uintptr_t at, size_t bytes)
{
	bool own = false;

	kbi_lock_take(&ranges.lock);
	for (unsigned i = 0; i < ranges.n; i++)
		own |= ranges.odd[i].own && ranges.odd[i].from < at + bytes && ranges.odd[i].to > at;
	kbi_lock_leave(&ranges.lock);
	return own;
}

static long resize(uintptr_t at, size_t bytes, size_t wanted, int flags)
{
	void *p;

	bytes = whole(bytes);
	wanted = whole(wanted);
	if (!wanted || at % KBI_PAGE || flags & ~MREMAP_MAYMOVE)
		return -EINVAL;
	if (wanted <= bytes)
		return wanted < bytes ? unmap(at + wanted, bytes - wanted) : 0, (long)at;
	if (!(flags & MREMAP_MAYMOVE) || !kbi_memory_holds((void *)at, bytes))
		return -ENOMEM;
	if (take_odd(at, bytes, false))
		return is_own(at, bytes) ? -ENOMEM : move_odd(at, bytes, wanted);
	p = kbi_memory_take(wanted);
	if (!p)
		return -ENOMEM;
	memcpy(p, (void *)at, bytes);
	kbi_memory_give((void *)at, bytes);
	return (long)p;
}

static long advise(uintptr_t at, size_t bytes, int advice)
{
	bool ours = kbi_memory_holds((void *)at, bytes) && !take_odd(at, whole(bytes), false);

	if (at % KBI_PAGE)
		return -EINVAL;
	ours |= kbi_memory_is_added((void *)at, bytes);
	if (!ours || (advice != MADV_DONTNEED && advice != MADV_FREE && advice != MADV_REMOVE))
		return kbi_sys(SYS_madvise, at, bytes, advice);
	kbi_memory_clear((void *)at, bytes);
	return 0;
}

long kbi_libcall_memory(long nr, const long a[6])
{
	switch (nr) {
	case SYS_mmap:
		return map(&(struct request){ (uintptr_t)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5] });
	case SYS_munmap:
		return unmap((uintptr_t)a[0], (size_t)a[1]);
	case SYS_mprotect:
		return change_protection((uintptr_t)a[0], (size_t)a[1], (int)a[2]);
	case SYS_mremap:
		return resize((uintptr_t)a[0], (size_t)a[1], (size_t)a[2], (int)a[3]);
	case SYS_madvise:
		return advise((uintptr_t)a[0], (size_t)a[1], (int)a[2]);
	case SYS_shmat:
		return attach(a[0], (uintptr_t)a[1], a[2]);
	case SYS_shmdt:
		return detach((uintptr_t)a[0]);
	default:
		return -ENOSYS;
	}
}
