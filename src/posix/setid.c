/* posix/setid.c - setuid and its family. In the kernel they concern a single kernel thread; POSIX
 * says the process. libc signals each of its threads by the tid in its control block and waits for
 * an answer from that block, which cannot work where blocks and kernel threads differ. Once the
 * runtime runs, this unit makes the call on each kernel thread: the caller's first (its failure
 * ends the call), then each in /proc/self/task by libc's own signal for this with a handler of
 * ours, until a pass finds none with a different identity. If a kernel thread cannot be changed,
 * the process ends with a message: the thread must not keep rights that the program gave up.
 * Before the first thread, and after fork in the child, libc's own functions are used.
 * Callers: programs. One call at a time; further callers yield. The handler uses no TLS. */
#include "posix/posix.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/vp.h"
#include "libc/broadcast.h"
#include "libc/tcb.h"
#include "os/fd.h"
#include "os/sys.h"

enum { SIGNAL_SETID = 33, PASSES = 100, DIRENTS = 4096, STATUS = 4096 };

struct call {
	long nr, a, b, c;
};

static struct call current; /* constant while a signal is on its way */
static a32 answered;
static a32 busy;

/* ---- the handler -------------------------------------------------------------------------- */

/* The kernel's struct sigaction: the handler is the first word, the rest is as libc filled it
 * in. */
struct action {
	void (*handler)(int);
	uint64_t rest[7]; /* flags, and the machine's further fields */
};

enum { RESTORER = 0x04000000 }; /* the kernel's SA_RESTORER, on machines that have it */

static void handle_setid_signal(int sig)
{
	(void)sig;
	kbi_sys(current.nr, current.a, current.b, current.c);
	/* release: pairs with the acquire in apply_setid_to_tid */
	a_store_rel(&answered, 1);
	kbi_sys_futex_wake(&answered, 1);
}

static long call_rt_sigaction(int sig, const struct action *new, struct action *old)
{
	return kbi_sys(SYS_rt_sigaction, sig, new, old, 8);
}

static void install_setid_handler(struct action *before)
{
	struct action ours;

	call_rt_sigaction(SIGNAL_SETID, NULL, before);
	ours = *before;
	/* libc's is not installed yet: any handler that libc installed shows how a handler returns */
	if ((uintptr_t)ours.handler <= 1)
		call_rt_sigaction(SIGSEGV, NULL, &ours);
	ours.handler = handle_setid_signal;
	ours.rest[0] = (ours.rest[0] & RESTORER) | SA_RESTART | SA_ONSTACK;
	call_rt_sigaction(SIGNAL_SETID, &ours, NULL);
}

/* ---- one kernel thread -------------------------------------------------------------------- */

static long send_to(int tid, int sig)
{
	return kbi_sys(SYS_tgkill, kbi_sys(SYS_getpid), tid, sig);
}

/* Signals a kernel thread and waits until it has answered or is gone. */
static void apply_setid_to_tid(int tid)
{
	static const struct timespec look_again = { 0, 10000000 };

	a_store_rlx(&answered, 0);
	if (send_to(tid, SIGNAL_SETID))
		return;
	/* acquire: pairs with the release in handle_setid_signal */
	while (!a_load_acq(&answered)) {
		kbi_sys_futex_wait(&answered, 0, &look_again);
		if (send_to(tid, 0))
			return;
	}
}

/* Stores the lines of its status that contain its identity; empty: the thread is gone. */
static void read_tid_identity(int tid, char *text, size_t size)
{
	char path[64], all[STATUS];
	long n;
	int fd;

	text[0] = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	KBI_FD_BRIEFLY();
	fd = (int)kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = kbi_sys(SYS_read, fd, all, sizeof(all) - 1);
	kbi_sys(SYS_close, fd);
	all[n > 0 ? n : 0] = 0;
	for (char *save, *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, "Uid:", 4) || !strncmp(line, "Gid:", 4) || !strncmp(line, "Groups:", 7))
			strncat(text, line, size - strlen(text) - 1);
}

/* ---- all of them -------------------------------------------------------------------------- */

struct dirent64_head {
	uint64_t ino, off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* Calls fn for each kernel thread except the caller's; returns how often fn returned true. */
static int for_each_other_tid(bool (*fn)(int tid, const char *own), const char *own)
{
	char buf[DIRENTS] KBI_ALIGNED(8);
	KBI_FD_BRIEFLY();
	int fd = (int)kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/task",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int me = kbi_sys_gettid(), found = 0;
	long n;

	if (fd < 0)
		kbi_sys_fatal("set*id: cannot see the process's threads in /proc/self/task");
	while ((n = kbi_sys(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent64_head *d = (const void *)(buf + at);
			int tid = atoi(d->name);

			if (tid > 0 && tid != me)
				found += fn(tid, own);
			at += d->reclen;
		}
	}
	kbi_sys(SYS_close, fd);
	return found;
}

/* Changes a thread if its identity differs. True: it did, and the thread has been told. */
static bool update_tid_identity(int tid, const char *own)
{
	char theirs[STATUS];

	read_tid_identity(tid, theirs, sizeof(theirs));
	if (theirs[0] == 0 || strcmp(theirs, own) == 0)
		return false;
	apply_setid_to_tid(tid);
	return true;
}

static void broadcast_setid(void)
{
	char own[STATUS];
	struct action before;
	int passes = 0;

	read_tid_identity(kbi_sys_gettid(), own, sizeof(own));
	install_setid_handler(&before);
	while (for_each_other_tid(update_tid_identity, own))
		if (++passes > PASSES)
			kbi_sys_fatal("set*id: a kernel thread kept its old identity");
	call_rt_sigaction(SIGNAL_SETID, &before, NULL);
}

/* Makes the call in each process, where virtual processors are processes, while all stand still: a
 * process that has given up its rights could not ask the next. */
static long apply_setid_to_processes(const struct call *c)
{
	struct kbi_broadcast_call all =
		{ .nr = c->nr, .arg = { c->a, c->b, c->c }, .rights = true, .pointer = -1 };
	uint64_t mask;
	long r;

	kbi_broadcast_stop(&mask);
	r = kbi_broadcast_stopped(&all);
	kbi_broadcast_release(mask);
	return r;
}

static int apply_setid(long nr, long a, long b, long c)
{
	uint32_t free = 0;
	long r;

	/* the child of vfork is a process of its own, with an identity of its own */
	if (kbi_posix_in_vfork())
		return kbi_posix_answer(kbi_sys(nr, a, b, c));
	/* acquire: pairs with the release store of `busy` below */
	while (!a_cas_acq(&busy, &free, 1)) {
		free = 0;
		sched_yield();
	}
	kbi_tcb_freeze(); /* may wait, as a thread */
	kbi_np_enter(kbi_self());
	current = (struct call){ nr, a, b, c };
	r = kbi_sys_from.processes ? apply_setid_to_processes(&current) : kbi_sys(nr, a, b, c);
	if (r == 0)
		broadcast_setid();
	kbi_np_leave(kbi_self());
	kbi_tcb_thaw();
	/* release: pairs with the acquire of `busy` above */
	a_store_rel(&busy, 0);
	if (r == 0)
		return 0;
	errno = (int)-r;
	return -1;
}

static bool by_libc(void)
{
	return kbi_vp_n == 0 || kbi_posix_forked;
}

/* ---- the functions ------------------------------------------------------------------------ */

KBI_POSIX_API int setuid(uid_t id)
{
	return by_libc() ? kbi_libc()->setuid(id) : apply_setid(SYS_setuid, id, 0, 0);
}

KBI_POSIX_API int setgid(gid_t id)
{
	return by_libc() ? kbi_libc()->setgid(id) : apply_setid(SYS_setgid, id, 0, 0);
}

KBI_POSIX_API int setresuid(uid_t r, uid_t e, uid_t s)
{
	return by_libc() ? kbi_libc()->setresuid(r, e, s)
		: apply_setid(SYS_setresuid, (int)r, (int)e, (int)s);
}

KBI_POSIX_API int setresgid(gid_t r, gid_t e, gid_t s)
{
	return by_libc() ? kbi_libc()->setresgid(r, e, s)
		: apply_setid(SYS_setresgid, (int)r, (int)e, (int)s);
}

KBI_POSIX_API int setreuid(uid_t r, uid_t e)
{
	return by_libc() ? kbi_libc()->setreuid(r, e)
		: apply_setid(SYS_setreuid, (int)r, (int)e, 0);
}

KBI_POSIX_API int setregid(gid_t r, gid_t e)
{
	return by_libc() ? kbi_libc()->setregid(r, e)
		: apply_setid(SYS_setregid, (int)r, (int)e, 0);
}

KBI_POSIX_API int seteuid(uid_t e)
{
	if (e == (uid_t)-1) {
		errno = EINVAL;
		return -1;
	}
	return by_libc() ? kbi_libc()->seteuid(e) : apply_setid(SYS_setresuid, -1, (int)e, -1);
}

KBI_POSIX_API int setegid(gid_t e)
{
	if (e == (gid_t)-1) {
		errno = EINVAL;
		return -1;
	}
	return by_libc() ? kbi_libc()->setegid(e) : apply_setid(SYS_setresgid, -1, (int)e, -1);
}

KBI_POSIX_API int setgroups(size_t n, const gid_t *groups)
{
	return by_libc() ? kbi_libc()->setgroups(n, groups)
		: apply_setid(SYS_setgroups, (long)n, (long)groups, 0);
}

/* Defined since libc's initgroups calls libc's own setgroups inside. */
KBI_POSIX_API int initgroups(const char *user, gid_t group)
{
	int n = 0, e;
	gid_t *groups;

	if (by_libc())
		return kbi_libc()->initgroups(user, group);
	getgrouplist(user, group, NULL, &n);
	groups = malloc(((size_t)n + 1) * sizeof(*groups));
	if (!groups)
		return -1;
	e = getgrouplist(user, group, groups, &n) < 0 ? -1 : setgroups((size_t)n, groups);
	free(groups);
	return e;
}
