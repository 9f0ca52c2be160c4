/* io/fifo.h - opening a FIFO, which waits for the other end, with a deadline: the system call has
 * none, and io_uring does not wait.
 * Callers: file. Calls sync/waitq. */
#ifndef KBI_FIFO_H
#define KBI_FIFO_H

#include <stdint.h>
#include <sys/types.h>

#include "sync/waitq.h"

/* Opens a FIFO. False: path is no FIFO, or a FIFO that opens at once: to be opened as any file.
 * Else *fd is the descriptor or -errno, with -ETIMEDOUT at the deadline. */
KBI_SWITCHES bool kbi_fifo_open(const char *path, int flags, mode_t mode, struct kbi_until until,
	int *fd);
/* Returns the right answer after io_uring has answered fd, perhaps at once although the
 * other end does not exist. */
KBI_SWITCHES int kbi_fifo_opened(int fd, const char *path, int flags, mode_t mode,
	struct kbi_until until);

#endif
