/* posix/proc.h - the files in /proc of lightweight threads, by the numbers that gettid gives them.
 * The kernel does not know these numbers: it is given the path of a kernel thread in an equal
 * state, or, where a file contains the thread's name or number, a copy with the thread's own
 * values. Callers: posix/path, listing; posix/call_blocking, for open. Never switches. */
#ifndef KBI_PROC_H
#define KBI_PROC_H

#include "posix/posix.h"

struct kbi_proc_path {
	char text[160];
	/* descriptor of a copy, which the caller closes once it has opened the path; -1: none */
	int fd;
};

enum kbi_proc_how {
	KBI_PROC_NAMED,  /* the program asks something about the path */
	KBI_PROC_READ,   /* the program opens it to read */
	KBI_PROC_WRITTEN /* the program opens it to write */
};

/* True if path is a lightweight thread's; *p: the path for the kernel instead. path must be
 * readable. Keeps errno. */
bool kbi_proc_other(int dir, const char *path, enum kbi_proc_how how, struct kbi_proc_path *p);
void kbi_proc_done(const struct kbi_proc_path *p);
/* Opens such a path for open(2); *r: the result of open. False: the path is not a lightweight
 * thread's. path may be invalid. */
bool kbi_proc_opens(int dir, const char *path, int how, int *r);
/* True if path is the list of the program's threads, /proc/self/task. path must be readable. */
bool kbi_proc_is_list(int dir, const char *path);
/* Stores the target of the link /proc/thread-self; returns its length, as readlink does; -1: it is
 * another path. */
long kbi_proc_link(const char *path, char *to, size_t room);

#endif
