/* posix/proc.h - the files in /proc of lightweight threads, by the numbers that gettid gives them. The kernel does not
 * know these: shown are the files of a kernel thread in the same state, and where the thread's name or number stands in
 * them a copy that has its own. Callers: posix/path; posix/call_apart, for open. Never switches. */
#ifndef KBI_PROC_H
#define KBI_PROC_H

#include "posix/posix.h"

struct kbi_proc_path {
	char text[160];
	int fd; /* a copy, which the caller closes when it has opened the path; -1 */
};

enum kbi_proc_how {
	KBI_PROC_NAMED,  /* something is asked about the path */
	KBI_PROC_READ,   /* it is opened, to be read; */
	KBI_PROC_WRITTEN /* or to be written */
};

/* Is it a thread's? p: the path that the kernel is to get instead. path can be read. Keeps errno. */
bool kbi_proc_other(int dir, const char *path, enum kbi_proc_how how, struct kbi_proc_path *p);
void kbi_proc_done(const struct kbi_proc_path *p);
/* The same for open: it is opened. *r as open(2) gives it. path may be no pointer. */
bool kbi_proc_opens(int dir, const char *path, int how, int *r);
/* Is it the list of the program's threads, /proc/self/task? path can be read. */
bool kbi_proc_is_list(int dir, const char *path);
/* Where the link /proc/thread-self leads: its length, as readlink gives it; -1: it is another path. */
long kbi_proc_link(const char *path, char *to, size_t room);

#endif
