/* os/uring.h - one io_uring: its memory and its three system calls, by the kernel's header alone. No locks: the caller
 * sees to it that one thread at a time fills and one at a time reaps. Callers: io/async, the command's doctor. */
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
#define KBI_HAVE_URING 0 /* headers before Linux 5.6 */
#endif

/* What is asked for; the numbers of the kernel. */
struct kbi_uring_ask {
	uint8_t op;
	int fd;
	uint64_t address, offset;
	uint32_t length, flags; /* of the operation */
	uint64_t data;          /* comes back with the answer */
	uint32_t buffer;        /* of READ_FIXED, WRITE_FIXED: its number */
};

struct kbi_uring {
	int fd; /* -1: none */
	/* the kernel's memory */
	a32 *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
	uint32_t sq_mask, cq_mask, entries;
	void *rings, *sqes, *cqes;
};

/* 0; ENOSYS (no such kernel, or built without), EPERM (forbidden: sysctl, seccomp), ENOMEM, EMFILE. */
int kbi_uring_open(struct kbi_uring *u, unsigned entries);
void kbi_uring_close(struct kbi_uring *u);
/* So many of its kernel threads may be inside file systems at once for each that submits: by itself the kernel has four for
 * a processor, where threads that wait for a disk would have a kernel thread each. Before Linux 5.15: nothing. */
void kbi_uring_workers(struct kbi_uring *u, unsigned n);
/* Tells the kernel of buffers for READ_FIXED and WRITE_FIXED; 0: it forgets them. EBUSY: there are some; ENXIO: none;
 * ENOMEM, EFAULT, EINVAL: the kernel does not want them. */
int kbi_uring_buffers(struct kbi_uring *u, const struct iovec *v, unsigned n);
/* False: it is full, submit first. */
bool kbi_uring_fill(struct kbi_uring *u, const struct kbi_uring_ask *a);
/* Tells the kernel what has been filled. 0, or an errno value: what it has not taken stays in the ring. */
int kbi_uring_submit(struct kbi_uring *u);
/* Has the calling kernel thread asked something of a ring, this one or the program's? What it has asked ends with it.
 * Before Linux 5.18 it may have if there is any ring. */
bool kbi_uring_used_here(void);
/* The next answer; false: none. */
bool kbi_uring_reap(struct kbi_uring *u, uint64_t *data, int32_t *result);

/* Answers that the kernel keeps, for there was no place. */
static inline bool kbi_uring_kept(const struct kbi_uring *u)
{
#if KBI_HAVE_URING
	return a_load_rlx(u->sq_flags) & IORING_SQ_CQ_OVERFLOW;
#else
	(void)u;
	return false;
#endif
}

/* Is there one? A look at memory, from anywhere. */
static inline bool kbi_uring_answered(const struct kbi_uring *u)
{
	return a_load_rlx(u->cq_head) != a_load_rlx(u->cq_tail) || kbi_unlikely(kbi_uring_kept(u));
}

#endif
