/* posix/deputy.h - a kernel thread that is kept for a lightweight one, because another thread asks the kernel for something
 * about that by its number. The lightweight thread may be on no kernel thread then. What is set is set at the deputy, where
 * the kernel judges it, and the thread takes it over, with a kernel thread of its own (posix/bind), before it goes on;
 * until then the deputy is what by-number questions are asked about. And the kernel may send signals for the thread to the
 * deputy, which gives them to it. It ends with its thread.
 * Callers: posix/number, posix/bind, posix/identity, posix/thread. Never switches. */
#ifndef KBI_DEPUTY_H
#define KBI_DEPUTY_H

#include "posix/posix.h"

/* The system call n with these arguments changes a kernel thread, whose number is argument `at`: it is to change to.t,
 * which is not the caller and keeps no kernel thread. As kernels answer; -EAGAIN: there are no more kernel threads. */
long kbi_deputy_change(struct kbi_signal_to to, long n, const long *a, int at);
/* The number of the deputy whose state to.t is about to take over; 0: there is nothing. */
int kbi_deputy_shows(struct kbi_signal_to to);
/* The number of a kernel thread that passes the kernel's signals on to to.t; negative: -EAGAIN. */
int kbi_deputy_receives(struct kbi_signal_to to);
/* fcntl's F_SETOWN_EX and F_GETOWN_EX: the owner by the number that the program knows. */
typedef int Fcntl(int fd, int what, long arg);
struct f_owner_ex;
int kbi_deputy_set_owner(Fcntl *original, int fd, const struct f_owner_ex *given);
int kbi_deputy_owner(Fcntl *original, int fd, struct f_owner_ex *own);
/* The calling thread ends; behind kbi_signal_thread_ends. */
void kbi_deputy_thread_ends(void);

#endif
