/* posix/proc.c - a lightweight thread's files in /proc. The kernel does not know the number that gettid gives it, so
 * /proc/NUMBER/stat would not be there, and who looks whether its own threads run, as libdispatch does once a second, would
 * take it for dead. Shown is a kernel thread in the same state. Callers: posix/call_apart. Never switches. */
#include "posix/bind.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/handoff.h"
#include "core/spare.h"
#include "core/vp.h"
#include "os/sys.h"

enum { PID_MOST = 4194304 /* PID_MAX_LIMIT; numbers of lightweight threads are above */ };

/* The place of the thread's number in path; NULL: it has none. */
static const char *number_in(const char *path)
{
	long process;
	char *end;

	if (strncmp(path, "/proc/", 6) != 0)
		return NULL;
	path += 6;
	if (strncmp(path, "self/task/", 10) == 0)
		return path + 10;
	process = strtol(path, &end, 10);
	return process == getpid() && strncmp(end, "/task/", 6) == 0 ? end + 6 : path;
}

/* Eight bytes, as many as such a path has at least. Nobody has asked the kernel yet whether the program's pointer is
 * one: it reads them, and refuses what it is to do with them. */
static bool is_readable(const char *path)
{
	enum { NOTHING = -1, BYTES = 8 };

	return path && kbi_sys(SYS_rt_sigprocmask, NOTHING, path, NULL, BYTES) != -EFAULT;
}

/* Whose files are shown for t's: if none is in its state that of the virtual processor it was on last. */
static int tid_of(const struct kb_thread *t)
{
	/* acquire: partner is the release in kbi_handoff_begin */
	uint64_t st = a_load_acq(&t->task.state);
	int tid = 0;

	if (kbi_state_kind(st) == KBI_TASK_BLOCKED)
		tid = kbi_handoff_tid(t);
	else if (kbi_state_kind(st) == KBI_TASK_WAITING)
		tid = kbi_spare_idle_tid();
	return tid ? tid : (int)a_load_rlx(&kbi_vps[kbi_state_vp(st) < kbi_vp_n ? kbi_state_vp(st) : 0]->tid);
}

bool kbi_proc_opens(const char *path, int how, int *r)
{
	char other[128], *end;
	const char *at = is_readable(path) ? number_in(path) : NULL;
	struct kb_thread *t;
	long number, fd;
	int saved = errno;

	if (kbi_likely(!at) || *at < '1' || *at > '9')
		return false;
	number = strtol(at, &end, 10);
	errno = saved;
	t = number > PID_MOST && (!*end || *end == '/') ? kbi_bind_find(number) : NULL;
	if (!t || snprintf(other, sizeof other, "%.*s%d%s", (int)(at - path), path, tid_of(t), end) >= (int)sizeof other)
		return false;
	fd = kbi_sys(SYS_openat, AT_FDCWD, other, how, 0);
	*r = (int)fd;
	if (fd < 0) {
		*r = -1;
		errno = (int)-fd;
	}
	return true;
}
