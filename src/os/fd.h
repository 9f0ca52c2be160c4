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
/* The kernel gives a file of the runtime's the lowest number that is free. The program may be about to put a file of its
 * own there by dup2, since another thread has just closed the number: the runtime would lose its file, and then close the
 * program's. So the runtime opens a file, and closes or moves it again, between kbi_fd_begin and kbi_fd_end, and dup2 and
 * its like come between kbi_fd_place and kbi_fd_placed. Each waits for the other, but for a second only: the caller may be
 * a handler that has come in between. True: it is inside. Pieces of one kind may be nested. */
bool kbi_fd_begin(void);
void kbi_fd_end(bool inside);
bool kbi_fd_place(void);
void kbi_fd_placed(bool inside);
void kbi_fd_forked(void);
/* The rest of the block is such a piece of the runtime's. */
#define KBI_FD_BRIEFLY() bool kbi_fd_inside_ __attribute__((unused, cleanup(kbi_fd_end_of))) = kbi_fd_begin()
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

static inline void kbi_fd_end_of(const bool *inside)
{
	kbi_fd_end(*inside);
}

static inline bool kbi_fd_may_be_ours(int fd)
{
	return kbi_unlikely(fd >= (int)a_load_rlx(&kbi_fd_lowest));
}

#endif
