/* posix/number.c - contract in number.h. A single table; the functions that programs call make
 * system calls by their numbers. */
#include "posix/number.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "os/newer.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "posix/deputy.h"

enum { IO_OF_THREAD = 1 /* IOPRIO_WHO_PROCESS */ };
enum kind { READS, SETS, PROCESS, LEADER };

struct row {
	const char *what;
	int8_t at, if_at, is;
	uint8_t kind;
};

static const struct row *row_of_call(long n)
{
#define NUMBER(call, at, kind, if_at, is, what) \
	case SYS_##call: { \
		static const struct row row = { what, at, if_at, is, kind }; \
\
		return &row; \
	}
	switch (n) {
#include "posix/number.def"
	default:
		return NULL;
	}
}

/* ---- a thread changes itself -------------------------------------------------------------- */

/* True if the call needs no kernel thread of the caller's own: the kernel will refuse it, or any
 * kernel thread has the state that it sets. */
static bool changes_nothing(long n, const long *a)
{
	int policy = (int)a[1];
	const struct sched_param *p = (const struct sched_param *)a[2];

	if (n == SYS_sched_setparam)
		return !a_load_rlx(&kbi_posix_me.bound);
	if (n == SYS_sched_setscheduler)
		return (policy == SCHED_OTHER && !a_load_rlx(&kbi_posix_me.bound)) || !p ||
		       kbi_thread_attrs_may_schedule(policy & ~SCHED_RESET_ON_FORK, p->sched_priority);
	return false;
}

static bool is_scheduling(long n)
{
	return n == SYS_sched_setscheduler || n == SYS_sched_setparam || n == SYS_sched_setattr;
}

/* Makes a call about the caller, named by 0 or by its number. Waits by priority are told of the
 * policy before the call and, once the kernel has read what the argument points to, after it. */
static long change_self(const struct row *row, long n, const long *b)
{
	long r;

	if (n == SYS_sched_setscheduler)
		kbi_thread_attrs_expect((int)b[1]);
	if (!changes_nothing(n, b) && !kbi_bind_change(row->what, KBI_BIND_TURNED))
		return -EAGAIN;
	r = kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
	if (r == 0 && is_scheduling(n) && a_load_rlx(&kbi_posix_me.bound))
		kbi_thread_attrs_adopted();
	return r;
}

/* ---- a thread that has a number ----------------------------------------------------------- */

static long change_thread(struct kbi_signal_to to, const struct row *row, long n, long *b)
{
	int kept = kbi_bind_kept(to.t);

	if (!kept)
		return kbi_deputy_change(to, n, b, row->at);
	b[row->at] = kept;
	return kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
}

static long ask_about_thread(struct kbi_signal_to to, const struct row *row, long n, long *b)
{
	int shown = kbi_deputy_shows(to);

	b[row->at] = shown ? shown : kbi_bind_shown(to.t);
	return kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
}

/* 0 and the caller's own number mean the caller, whichever kernel thread it is on. */
static bool is_about_caller(const struct row *row, int number)
{
	return (row->kind == READS || row->kind == SETS) && kbi_bind_is_light() &&
		kbi_bind_is_self(number);
}

static bool is_row_for_call(const struct row *row, const long *a)
{
	return row && (row->if_at < 0 || (int)a[row->if_at] == row->is);
}

static bool call_by_table(long n, const long *a, long *r)
{
	const struct row *row = row_of_call(n);
	struct kbi_signal_to to;
	long b[6];
	int number;

	if (kbi_likely(!is_row_for_call(row, a)))
		return false;
	memcpy(b, a, sizeof(b));
	number = (int)a[row->at];
	if (is_about_caller(row, number)) {
		b[row->at] = 0;
		*r = row->kind == SETS ? change_self(row, n, b)
			: kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
		return true;
	}
	to = (struct kbi_signal_to){ number > 0 ? kbi_bind_find(number) : NULL, (uint32_t)number };
	if (!to.t || (row->kind != READS && row->kind != SETS && number == getpid()))
		return false;
	if (row->kind == LEADER)
		*r = -EINVAL;
	else if (row->kind == PROCESS) {
		b[row->at] = getpid();
		*r = kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
	} else
		*r = row->kind == SETS ? change_thread(to, row, n, b)
			: ask_about_thread(to, row, n, b);
	return true;
}

/* ---- numbers in other places -------------------------------------------------------------- */

/* kcmp: both numbers are of processes. */
static bool compare_processes(const long *a, long *r)
{
	bool first = a[0] != getpid() && kbi_bind_find((int)a[0]),
		second = a[1] != getpid() && kbi_bind_find((int)a[1]);

	if (!first && !second)
		return false;
	*r = kbi_sys(SYS_kcmp, first ? getpid() : a[0], second ? getpid() : a[1], a[2], a[3], a[4]);
	return true;
}

/* capget, capset: the number is in the structure that the first argument points to. */
static bool call_capabilities(long n, const long *a, long *r)
{
	struct __user_cap_header_struct *given = (struct __user_cap_header_struct *)a[0], own;
	struct kb_thread *t;

	if (!kbi_bind_is_readable(given) || given->pid <= 0 || !(t = kbi_bind_find(given->pid)))
		return false;
	own = *given;
	own.pid = kbi_bind_is_self(given->pid) ? 0 : kbi_bind_shown(t);
	*r = kbi_sys(n, &own, a[1]);
	if (own.version != given->version)
		given->version = own.version;
	return true;
}

/* Returns the number of a kernel thread that is not its process's first; 0: each of them is. */
static int tid_of_follower(void)
{
	for (unsigned i = 0; i < kbi_vp_n && !kbi_sys_from.processes; i++)
		if ((int)a_load_rlx(&kbi_vps[i]->tid) != getpid())
			return (int)a_load_rlx(&kbi_vps[i]->tid);
	return 0;
}

/* pidfd_open: answers as the kernel does for a thread that is not a process's first. With
 * PIDFD_THREAD the descriptor would be a kernel thread's and report that thread's end, so the
 * answer is that of an older kernel, which does not know the flag. */
static bool open_thread_pidfd(const long *a, long *r)
{
	int other;

	if (a[0] <= 0 || a[0] == getpid() || !kbi_bind_find((int)a[0]))
		return false;
	other = a[1] ? 0 : tid_of_follower();
	*r = other ? kbi_sys(SYS_pidfd_open, other, 0) : -EINVAL;
	return true;
}

bool kbi_number_call(long n, const long *a, long *r)
{
	switch (n) {
	case SYS_kcmp:
		return compare_processes(a, r);
	case SYS_capget:
	case SYS_capset:
		return call_capabilities(n, a, r);
	case SYS_pidfd_open:
		return open_thread_pidfd(a, r);
	default:
		return call_by_table(n, a, r);
	}
}

/* ---- by their names ----------------------------------------------------------------------- */

/* Some libcs declare some of these functions with different types. */
typedef long Syscall(long n, long a, long b, long c, long d, long e, long f);

static long call_by_number(long n, long a, long b, long c, long d, long e, long f)
{
	const long all[6] = { a, b, c, d, e, f };
	long r;

	kbi_posix_let_turn_end();
	if (!kbi_number_call(n, all, &r))
		return ((Syscall *)(uintptr_t)kbi_libc()->syscall)(n, a, b, c, d, e, f);
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

#define CALL1(n, a) call_by_number(n, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) call_by_number(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) call_by_number(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) call_by_number(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

KBI_POSIX_API int setpriority(__priority_which_t which, id_t who, int value)
{
	return (int)CALL3(SYS_setpriority, which, who, value);
}

/* The kernel's result is 20 minus the priority, so that it is never negative. */
KBI_POSIX_API int getpriority(__priority_which_t which, id_t who)
{
	enum { ZERO = 20 };
	int r = (int)CALL2(SYS_getpriority, which, who);

	return r < 0 ? r : ZERO - r;
}

KBI_POSIX_API int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	return (int)CALL3(SYS_sched_setscheduler, pid, policy, param);
}

KBI_POSIX_API int sched_getscheduler(pid_t pid)
{
	return (int)CALL1(SYS_sched_getscheduler, pid);
}

KBI_POSIX_API int sched_setparam(pid_t pid, const struct sched_param *param)
{
	return (int)CALL2(SYS_sched_setparam, pid, param);
}

KBI_POSIX_API int sched_getparam(pid_t pid, struct sched_param *param)
{
	return (int)CALL2(SYS_sched_getparam, pid, param);
}

KBI_POSIX_API int sched_rr_get_interval(pid_t pid, struct timespec *t)
{
	return (int)CALL2(SYS_sched_rr_get_interval, pid, t);
}

KBI_POSIX_ALIAS(__sched_setscheduler, sched_setscheduler);
KBI_POSIX_ALIAS(__sched_getscheduler, sched_getscheduler);
KBI_POSIX_ALIAS(__sched_getparam, sched_getparam);

/* libc's headers declare these from 2.41 on. */
int kbi_number_sched_getattr(pid_t pid, void *attr, unsigned size,
	unsigned flags) __asm__("sched_getattr");
int kbi_number_sched_setattr(pid_t pid, void *attr, unsigned flags) __asm__("sched_setattr");

KBI_POSIX_API int kbi_number_sched_getattr(pid_t pid, void *attr, unsigned size, unsigned flags)
{
	return (int)CALL4(SYS_sched_getattr, pid, attr, size, flags);
}

KBI_POSIX_API int kbi_number_sched_setattr(pid_t pid, void *attr, unsigned flags)
{
	return (int)CALL3(SYS_sched_setattr, pid, attr, flags);
}

int kbi_number_prlimit(pid_t pid, int resource, const struct rlimit *new,
	struct rlimit *old) __asm__("prlimit");

KBI_POSIX_API int kbi_number_prlimit(pid_t pid, int resource, const struct rlimit *new,
	struct rlimit *old)
{
	return (int)CALL4(SYS_prlimit64, pid, resource, new, old);
}

int kbi_number_prlimit64(pid_t pid, int resource, const struct rlimit *new,
	struct rlimit *old) __asm__("prlimit64");

KBI_POSIX_API int kbi_number_prlimit64(pid_t pid, int resource, const struct rlimit *new,
	struct rlimit *old)
{
	return kbi_number_prlimit(pid, resource, new, old);
}

KBI_POSIX_API pid_t getpgid(pid_t pid)
{
	return (pid_t)CALL1(SYS_getpgid, pid);
}

KBI_POSIX_ALIAS(__getpgid, getpgid);

KBI_POSIX_API pid_t getsid(pid_t pid)
{
	return (pid_t)CALL1(SYS_getsid, pid);
}

KBI_POSIX_API int setpgid(pid_t pid, pid_t group)
{
	return (int)CALL2(SYS_setpgid, pid, group);
}

KBI_POSIX_ALIAS(__setpgid, setpgid);

int capget(void *header, void *data); /* no header of libc declares it */

KBI_POSIX_API int capget(void *header, void *data)
{
	return (int)CALL2(SYS_capget, header, data);
}

KBI_POSIX_API ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n,
	const struct iovec *from, unsigned long m, unsigned long flags)
{
	return call_by_number(SYS_process_vm_readv, pid, (long)to, (long)n, (long)from, (long)m,
		(long)flags);
}

KBI_POSIX_API ssize_t process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n,
	const struct iovec *to, unsigned long m, unsigned long flags)
{
	return call_by_number(SYS_process_vm_writev, pid, (long)from, (long)n, (long)to, (long)m,
		(long)flags);
}

int pidfd_open(pid_t pid, unsigned flags);

KBI_POSIX_API int pidfd_open(pid_t pid, unsigned flags)
{
	return (int)CALL2(SYS_pidfd_open, pid, flags);
}
