/* os/uring.c - io_uring without a library: Kochab needs two mappings, four indices and one system
 * call. Contract in uring.h.
 * Uses neither SINGLE_ISSUER nor DEFER_TASKRUN, so any kernel thread may submit. */
#include "os/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "os/fd.h"
#include "os/newer.h"
#include "os/sys.h"

/* IORING_FEAT_LINKED_FILE: Linux 5.19; tables of rings came just before. */
enum { KNOWS_TABLES = 1 << 12 };

static a8 has_tables; /* 1: the kernel has tables of rings; written by kbi_uring_open */

static bool is_ring(const char *name, void *unused)
{
	(void)unused;
	return !strcmp(name, "anon_inode:[io_uring]");
}

/* A thread that has never used a ring has no table of rings: EINVAL, or EBADF if the table is
 * empty. An older kernel answers EINVAL for every thread, so the thread may have used any ring of
 * the process. */
bool kbi_uring_used_here(void)
{
	const unsigned by_table = 1u << 4; /* IORING_ENTER_REGISTERED_RING */
	long r = kbi_sys(SYS_io_uring_enter, 0, 0, 0, by_table, NULL, 0);

	return r == -EBADF || r >= 0 ||
		(r == -EINVAL && !a_load_rlx(&has_tables) && kbi_fd_find(is_ring, NULL));
}

#if KBI_HAVE_URING

enum { MOST_WORKERS = 19 /* IORING_REGISTER_IOWQ_MAX_WORKERS: Linux 5.15 */ };

#ifndef IORING_SETUP_NO_MMAP
#define IORING_SETUP_NO_MMAP (1u << 14) /* Linux 6.5 */
#endif

static void *map_ring_part(int fd, size_t bytes, off_t where)
{
	long p = kbi_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		where);

	return p < 0 && p > -4096 ? NULL : (void *)p;
}

/* If virtual processors are processes, the ring lies in memory that they share: a mapping of the
 * ring's file would belong to a single process, and not at our address. A page holds the rings and
 * a page the requests: larger areas had to be contiguous until Linux 6.10. The address fields have
 * names only in newer headers. */
enum { OURS_ENTRIES = 32 };
static int take_shared_ring(struct kbi_uring *u, struct io_uring_params *p)
{
	char *pages = kbi_sys_map(2 * KBI_PAGE);
	uint64_t rings = (uintptr_t)pages, sqes = rings + KBI_PAGE;

	if (!pages)
		return ENOMEM;
	p->flags |= IORING_SETUP_NO_MMAP;
	memcpy(&p->cq_off.resv1 + 1, &rings, sizeof rings);
	memcpy(&p->sq_off.resv1 + 1, &sqes, sizeof sqes);
	u->rings = pages;
	u->sqes = pages + KBI_PAGE;
	return 0;
}

/* Maps the ring. Indices and answers share a mapping (IORING_FEAT_SINGLE_MMAP, Linux 5.4). */
static int map_ring(struct kbi_uring *u, const struct io_uring_params *p)
{
	size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);

	if (p->flags & IORING_SETUP_NO_MMAP)
		return 0;
	u->rings = map_ring_part(u->fd, sq > cq ? sq : cq, IORING_OFF_SQ_RING);
	u->sqes = map_ring_part(u->fd, p->sq_entries * sizeof(struct io_uring_sqe),
		IORING_OFF_SQES);
	return u->rings && u->sqes ? 0 : ENOMEM;
}

static void lay_out_ring(struct kbi_uring *u, const struct io_uring_params *p)
{
	char *rings = u->rings;
	uint32_t *array;

	u->sq_flags = (a32 *)(rings + p->sq_off.flags);
	u->sq_head = (a32 *)(rings + p->sq_off.head);
	u->sq_tail = (a32 *)(rings + p->sq_off.tail);
	u->cq_head = (a32 *)(rings + p->cq_off.head);
	u->cq_tail = (a32 *)(rings + p->cq_off.tail);
	u->sq_mask = *(uint32_t *)(rings + p->sq_off.ring_mask);
	u->cq_mask = *(uint32_t *)(rings + p->cq_off.ring_mask);
	u->cqes = rings + p->cq_off.cqes;
	u->entries = p->sq_entries;
	array = (uint32_t *)(rings + p->sq_off.array);
	for (uint32_t i = 0; i < p->sq_entries; i++)
		array[i] = i;
}

int kbi_uring_open(struct kbi_uring *u, unsigned entries)
{
	enum { NEEDED = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS };
	struct io_uring_params p;
	long fd;
	int e = 0;
	bool brief;

	memset(&p, 0, sizeof p);
	u->fd = -1;
	if (kbi_sys_from.processes) {
		entries = entries < OURS_ENTRIES ? entries : OURS_ENTRIES;
		e = take_shared_ring(u, &p);
	}
	if (e)
		return e;
	brief = kbi_fd_begin();
	fd = kbi_sys(SYS_io_uring_setup, entries, &p);
	u->fd = fd < 0 ? -1 : kbi_fd_move((int)fd);
	kbi_fd_end(brief);
	if (fd < 0) {
		if (p.flags & IORING_SETUP_NO_MMAP)
			kbi_sys_unmap(u->rings, 2 * KBI_PAGE);
		return (int)-fd;
	}
	a_store_rlx(&has_tables, (p.features & KNOWS_TABLES) != 0);
	e = (p.features & NEEDED) == NEEDED ? map_ring(u, &p) : ENOSYS;
	if (e)
		kbi_uring_close(u);
	else
		lay_out_ring(u, &p);
	return e;
}

void kbi_uring_close(struct kbi_uring *u)
{
	kbi_sys(SYS_close, u->fd);
	u->fd = -1;
}

void kbi_uring_workers(struct kbi_uring *u, unsigned n)
{
	/* for files; 0: the kernel's default for sockets and similar files, which may wait for ever */
	uint32_t most[] = { n, 0 };

	kbi_sys(SYS_io_uring_register, u->fd, MOST_WORKERS, most, 2);
}

int kbi_uring_buffers(struct kbi_uring *u, const struct iovec *v, unsigned n)
{
	return (int)-kbi_sys(SYS_io_uring_register, u->fd,
		n ? IORING_REGISTER_BUFFERS : IORING_UNREGISTER_BUFFERS, n ? v : NULL, n);
}

bool kbi_uring_fill(struct kbi_uring *u, const struct kbi_uring_ask *a)
{
	uint32_t tail = a_load_rlx(u->sq_tail);
	struct io_uring_sqe *s = (struct io_uring_sqe *)u->sqes + (tail & u->sq_mask);

	/* acquire: pairs with the kernel's release after it has read the entry */
	if (tail - a_load_acq(u->sq_head) >= u->entries)
		return false;
	memset(s, 0, sizeof *s);
	s->opcode = a->op;
	s->fd = a->fd;
	s->addr = a->address;
	s->off = a->offset;
	s->len = a->length;
	s->rw_flags = (int)a->flags;
	s->user_data = a->data;
	s->buf_index = (uint16_t)a->buffer;
	/* release: pairs with the kernel's acquire of the tail */
	a_store_rel(u->sq_tail, tail + 1);
	return true;
}

int kbi_uring_submit(struct kbi_uring *u)
{
	uint32_t n = a_load_rlx(u->sq_tail) - a_load_rlx(u->sq_head);
	long r = n ? kbi_sys(SYS_io_uring_enter, u->fd, n, 0, 0, NULL, 0) : 0;

	return r < 0 ? (int)-r : 0;
}

/* Asks the kernel to store the answers it holds, which had no room in the ring. */
static void fetch_kept_answers(struct kbi_uring *u)
{
	long r;

	if (a_load_rlx(u->cq_head) != a_load_rlx(u->cq_tail) || !kbi_uring_kept(u))
		return;
	r = kbi_sys(SYS_io_uring_enter, u->fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
	if (r == -EBADF || r == -EOPNOTSUPP)
		a_store_rlx(u->sq_flags, 0); /* the program has closed the ring: the answers never come */
}

bool kbi_uring_reap(struct kbi_uring *u, uint64_t *data, int32_t *result)
{
	uint32_t head = a_load_rlx(u->cq_head);
	const struct io_uring_cqe *c = (const struct io_uring_cqe *)u->cqes + (head & u->cq_mask);

	fetch_kept_answers(u);
	/* acquire: pairs with the kernel's release of the tail */
	if (head == a_load_acq(u->cq_tail))
		return false;
	*data = c->user_data;
	*result = c->res;
	/* release: pairs with the kernel's acquire; the entry belongs to the kernel again */
	a_store_rel(u->cq_head, head + 1);
	return true;
}

#else

int kbi_uring_open(struct kbi_uring *u, unsigned entries)
{
	(void)entries;
	u->fd = -1;
	return ENOSYS;
}

void kbi_uring_close(struct kbi_uring *u)
{
	(void)u;
}

void kbi_uring_workers(struct kbi_uring *u, unsigned n)
{
	(void)u, (void)n;
}

int kbi_uring_buffers(struct kbi_uring *u, const struct iovec *v, unsigned n)
{
	(void)u, (void)v, (void)n;
	return ENOSYS;
}

bool kbi_uring_fill(struct kbi_uring *u, const struct kbi_uring_ask *a)
{
	(void)u, (void)a;
	return false;
}

int kbi_uring_submit(struct kbi_uring *u)
{
	(void)u;
	return ENOSYS;
}

bool kbi_uring_reap(struct kbi_uring *u, uint64_t *data, int32_t *result)
{
	(void)u, (void)data, (void)result;
	return false;
}

#endif
