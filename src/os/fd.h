/* os/fd.h - the numbers of the runtime's own descriptors: away from the numbers that programs count on. Any kernel thread.
 * Callers: os, space, io, posix. */
#ifndef KBI_FD_H
#define KBI_FD_H

#include "base/atom.h"
#include "base/base.h"

enum { KBI_FD_FROM = 900, KBI_FD_KEPT = 1024 };

/* No descriptor of the runtime's has had a lower number. */
extern KBI_HIDDEN a32 kbi_fd_lowest;
/* The runtime has, or is about to have, this number. */
void kbi_fd_note(int fd);
/* While the process has a single kernel thread: the kernel makes its table long enough for such numbers at once. Later it
 * waits until no processor can be in the shorter table, which takes 10 to 20 ms. */
void kbi_fd_make_room(void);
/* Out of the program's way, and closed on exec: its new number. Where the limit is low it stays where it is. */
int kbi_fd_move(int fd);
/* This number is the runtime's until it is let go: the program's closes by number leave it alone. False: no room to
 * note it. */
bool kbi_fd_keep(int fd);
void kbi_fd_let(int fd);
bool kbi_fd_is_kept(int fd);
/* The highest; -1: none. */
int kbi_fd_highest_kept(void);
/* Calls for each of the process's descriptors, with its file as /proc names it ("anon_inode:[io_uring]"; at most 63
 * bytes), until a call says true. Returns that; false, too, where /proc cannot be read. */
bool kbi_fd_find(bool (*is)(const char *name, void *arg), void *arg);

static inline bool kbi_fd_may_be_ours(int fd)
{
	return kbi_unlikely(fd >= (int)a_load_rlx(&kbi_fd_lowest));
}

#endif
