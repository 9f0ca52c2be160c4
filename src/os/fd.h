/* os/fd.h - the numbers of the runtime's own descriptors, which lie away from the numbers that
 * programs count on. Any kernel thread may call.
 * Callers: os, libc, core/boot, space, io, posix. */
#ifndef KBI_FD_H
#define KBI_FD_H

#include "base/atom.h"
#include "base/base.h"

enum { KBI_FD_FROM = 900, KBI_FD_KEPT = 1024 };

/* Lowest number that a descriptor of the runtime has had. */
extern KBI_HIDDEN a32 kbi_fd_lowest;
/* Records that the runtime has, or is about to have, this number. */
void kbi_fd_note(int fd);
/* Makes the kernel's table long enough for such numbers. Call while the process has a single kernel
 * thread: later the kernel waits until no processor can be in the shorter table, which takes 10 to
 * 20 ms. */
void kbi_fd_make_room(void);
/* The kernel gives a file of the runtime the lowest free number. The program may be about to place
 * a file of its own at this number by dup2, after another thread has just closed the number: the
 * runtime would lose its file, and later close the program's. So the runtime opens a file, and
 * closes or moves it, between kbi_fd_begin and kbi_fd_end; dup2 and similar calls are between
 * kbi_fd_place and kbi_fd_placed. Each side waits for the other side in turns, but at most for some
 * seconds, because a process may be killed inside; a handler that interrupts the other side does
 * not wait. kbi_fd_begin and kbi_fd_place return true if the caller is inside. Sections of one kind
 * may be nested. */
bool kbi_fd_begin(void);
void kbi_fd_end(bool inside);
bool kbi_fd_place(void);
void kbi_fd_placed(bool inside);
void kbi_fd_forked(void);
/* Makes the rest of the block such a section of the runtime. */
#define KBI_FD_BRIEFLY() bool kbi_fd_inside_ __attribute__((unused, cleanup(kbi_fd_end_of))) = \
	kbi_fd_begin()
/* Moves a descriptor away from the program's numbers, marks it close-on-exec, and returns its new
 * number. If the descriptor limit is low, the descriptor stays where it is. */
int kbi_fd_move(int fd);
/* kbi_fd_keep reserves this number for the runtime until kbi_fd_let: the program's closes by number
 * skip it. Returns false if there is no room to record it. */
bool kbi_fd_keep(int fd);
void kbi_fd_let(int fd);
bool kbi_fd_is_kept(int fd);
/* Returns the highest kept number; -1: none. */
int kbi_fd_highest_kept(void);
/* Calls is(name, arg) for each descriptor of the process until it returns true; name is the file as
 * /proc names it ("anon_inode:[io_uring]"; at most 63 bytes). Returns true if a call did; false,
 * too, if /proc cannot be read. */
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
