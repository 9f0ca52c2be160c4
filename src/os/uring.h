/* os/uring.h - an io_uring: its memory and its three system calls, with the kernel's header only.
 * No locks: the caller makes sure that a single thread at a time fills and a single thread at a
 * time reaps.
 * Callers: io/async, core/worker_pool, the command's doctor. */
#ifndef KBI_URING_H
#define KBI_URING_H

#include <sys/uio.h>

#include "base/atom.h"

#if defined(__has_include)
#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif
#endif

#ifdef IORING_FEAT_RW_CUR_POS
#define KBI_HAVE_URING 1
#else
#define KBI_HAVE_URING 0 /* headers older than Linux 5.6 */
#endif

/* A request, in the kernel's numbers. */
struct kbi_uring_ask {
	uint8_t op;
	int fd;
	uint64_t address, offset;
	uint32_t length, flags; /* flags of the operation */
	uint64_t data;          /* returned with the answer */
	uint32_t buffer;        /* number of the buffer for READ_FIXED, WRITE_FIXED */
};

struct kbi_uring {
	int fd; /* -1: no ring */
	/* memory shared with the kernel */
	a32 *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
	uint32_t sq_mask, cq_mask, entries;
	void *rings, *sqes, *cqes;
};

/* Opens a ring. Returns 0; ENOSYS (kernel too old, or built without), EPERM (forbidden: sysctl,
 * seccomp), ENOMEM, EMFILE. */
int kbi_uring_open(struct kbi_uring *u, unsigned entries);
void kbi_uring_close(struct kbi_uring *u);
/* Lets up to n kernel threads of the ring be inside file systems for each submitting thread. The
 * kernel's default is four per processor; without the ring, each thread that waits for a disk would
 * have a kernel thread. Does nothing before Linux 5.15. */
void kbi_uring_workers(struct kbi_uring *u, unsigned n);
/* Registers buffers for READ_FIXED and WRITE_FIXED; n = 0 unregisters them. Returns 0; EBUSY: there
 * are buffers already; ENXIO: there are none; ENOMEM, EFAULT, EINVAL: the kernel refuses them. */
int kbi_uring_buffers(struct kbi_uring *u, const struct iovec *v, unsigned n);
/* Puts a request into the ring. Returns false if the ring is full; then submit first. */
bool kbi_uring_fill(struct kbi_uring *u, const struct kbi_uring_ask *a);
/* Submits the filled requests to the kernel. Returns 0, or an errno value; the kernel leaves
 * requests that it did not take in the ring. */
int kbi_uring_submit(struct kbi_uring *u);
/* Returns true if the calling kernel thread has submitted requests to a ring, ours or the
 * program's. Its requests end with the kernel thread. Before Linux 5.18 returns true if the process
 * has any ring. */
bool kbi_uring_used_here(void);
/* Takes the next answer. Returns false if there is none. */
bool kbi_uring_reap(struct kbi_uring *u, uint64_t *data, int32_t *result);

/* Returns true if the kernel holds answers that had no room in the ring. */
static inline bool kbi_uring_kept(const struct kbi_uring *u)
{
#if KBI_HAVE_URING
	return a_load_rlx(u->sq_flags) & IORING_SQ_CQ_OVERFLOW;
#else
	(void)u;
	return false;
#endif
}

/* Returns true if there is an answer. Reads memory only; any thread may call. */
static inline bool kbi_uring_answered(const struct kbi_uring *u)
{
	return a_load_rlx(u->cq_head) != a_load_rlx(u->cq_tail) || kbi_unlikely(kbi_uring_kept(u));
}

#endif
