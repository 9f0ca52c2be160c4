/* posix/deputy.h - deputies: a deputy is a kernel thread kept for a lightweight thread, because
 * another thread asks the kernel by number for something about the lightweight thread, which may be
 * on no kernel thread then. A change is made to the deputy, so that the kernel judges it; the
 * lightweight thread takes the change over, with a kernel thread of its own (posix/bind), before it
 * goes on. Until then, questions by number are asked about the deputy. The kernel may also send the
 * lightweight thread's signals to the deputy, which passes them on. A deputy ends with its thread.
 * Callers: posix/number, call_blocking, cputimer, thread. Takes a lock that no handler interrupts.
 * Never switches. */
#ifndef KBI_DEPUTY_H
#define KBI_DEPUTY_H

#include "posix/posix.h"

/* Makes the system call n, which changes the kernel thread whose number is argument `at`, for to.t,
 * which is not the caller and keeps no kernel thread. Returns the kernel's result; -EAGAIN: there
 * are no more kernel threads. */
long kbi_deputy_change(struct kbi_signal_to to, long n, const long *a, int at);
/* Returns the number of the deputy whose state to.t has to take over; 0: there is nothing to take
 * over. */
int kbi_deputy_shows(struct kbi_signal_to to);
/* Returns the number of a kernel thread that passes the kernel's signals on to to.t; negative:
 * -EAGAIN. */
int kbi_deputy_receives(struct kbi_signal_to to);
/* fcntl's F_SETOWN_EX and F_GETOWN_EX: the owner is given by the number that the program knows. */
typedef int Fcntl(int fd, int what, long arg);
struct f_owner_ex;
int kbi_deputy_set_owner(Fcntl *original, int fd, const struct f_owner_ex *given);
int kbi_deputy_owner(Fcntl *original, int fd, struct f_owner_ex *own);
/* Dismisses the deputy of the calling thread, which ends. Call after kbi_signal_thread_ends. */
void kbi_deputy_thread_ends(void);

#endif
