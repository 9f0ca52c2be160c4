/* os/libcall.c - libc's system calls where virtual processors are processes. Contract in libcall.h.
 *
 * Anonymous memory is taken from the space, which every process has mapped for reading and writing; a map of a file,
 * and another protection, is made in every process, at an address from the space. Such ranges are kept in a table of odd
 * ones, so that they become plain memory of the space again when they are unmapped. A private map of a file that may be
 * written is a copy of it in the space.
 * Runs on the caller's stack, inside libc; calls nothing of libc's that could come back here. */
#include "os/libcall.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "os/everywhere.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/sys.h"

#ifndef SYS_alarm /* newer machines have setitimer only */
#define SYS_alarm (-1)
#endif

enum { ODD_MOST = 4096, PLAIN = PROT_READ | PROT_WRITE, CLONE3 = 435 };

struct range {
	uintptr_t from, to;
};

static struct {
	int pid;          /* the program's */
	long parent, brk;
	a32 lock;
	/* under the lock */
	unsigned n;
	struct range odd[ODD_MOST];
	bool all_odd;     /* the table was too small once */
} libcall;

long (*kbi_libcall_wait)(long nr, const long arg[6]);
long (*kbi_libcall_fork)(const long arg[6]);
long (*kbi_libcall_there)(long nr, const long arg[6]);
long (*kbi_libcall_futex)(const long arg[6]);
long (*kbi_libcall_exec)(long nr, const long arg[6]);

static size_t whole(size_t bytes)
{
	return (bytes + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
}

static bool is_error(long r)
{
	return (unsigned long)r > -4096ul;
}

/* ---- odd ranges --------------------------------------------------------------------------------------------- */

static void note_odd(uintptr_t from, size_t bytes)
{
	kbi_lock_take(&libcall.lock);
	if (libcall.n < ODD_MOST)
		libcall.odd[libcall.n++] = (struct range){ from, from + bytes };
	else
		libcall.all_odd = true;
	kbi_lock_leave(&libcall.lock);
}

/* Ranges that lie in it whole are forgotten. */
static bool take_odd(uintptr_t from, size_t bytes, bool forget)
{
	bool any;

	kbi_lock_take(&libcall.lock);
	any = libcall.all_odd;
	for (unsigned i = 0; i < libcall.n;) {
		struct range *r = &libcall.odd[i];

		any |= r->from < from + bytes && r->to > from;
		if (forget && r->from >= from && r->to <= from + bytes)
			*r = libcall.odd[--libcall.n];
		else
			i++;
	}
	kbi_lock_leave(&libcall.lock);
	return any;
}

/* ---- in every process ------------------------------------------------------------------------------------------ */

static long everywhere(long nr, long a, long b, long c, long d, long e, long f)
{
	return kbi_everywhere(&(struct kbi_everywhere_call){ .nr = nr, .arg = { a, b, c, d, e, f }, .pointer = -1 });
}

static long protect(uintptr_t at, size_t bytes, int protection)
{
	return everywhere(SYS_mprotect, (long)at, (long)bytes, protection, 0, 0, 0);
}

/* The space's memory from `backing` on, at `at`. */
static long map_space(uintptr_t at, size_t bytes, int protection, const void *backing)
{
	return everywhere(SYS_mmap, (long)at, (long)bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
			  kbi_memory_descriptor(), (long)kbi_memory_offset(backing));
}

/* What lies there becomes plain zeroed memory. */
static void make_plain(void *p, size_t bytes)
{
	if (take_odd((uintptr_t)p, bytes, true))
		map_space((uintptr_t)p, bytes, PLAIN, p);
}

/* ---- maps ---------------------------------------------------------------------------------------------------------- */

struct request {
	uintptr_t at;
	size_t bytes;
	int protection, flags, fd;
	long offset;
};

/* Where it shall be: addresses from the space, unless the caller says where. 0: none. */
static uintptr_t place(struct request *r)
{
	if (r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return r->at;
	return (uintptr_t)kbi_memory_take(r->bytes);
}

static void unplace(const struct request *r, uintptr_t at)
{
	if (!(r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
		kbi_memory_give((void *)at, r->bytes);
}

/* Memory of the space there, zeroed. */
static long back(const struct request *r, uintptr_t at, int protection)
{
	void *backing = (void *)at;

	if (kbi_memory_holds(backing, r->bytes)) {
		make_plain(backing, r->bytes);
		if (r->flags & MAP_FIXED)
			kbi_memory_clear(backing, r->bytes);
	} else {
		backing = kbi_memory_take(r->bytes);
		if (!backing)
			return -ENOMEM;
		return map_space(at, r->bytes, protection, backing);
	}
	if ((protection & (PLAIN | PROT_EXEC)) == PLAIN)
		return (long)at;
	note_odd(at, r->bytes);
	return is_error(protect(at, r->bytes, protection)) ? -ENOMEM : (long)at;
}

static void fill(char *p, size_t bytes, int fd, long offset)
{
	long n;

	for (; bytes > 0; p += n, offset += n, bytes -= (size_t)n) {
		n = kbi_sys(SYS_pread64, fd, p, bytes, offset);
		if (n <= 0)
			return;
	}
}

/* A copy of the file's part. */
static long map_copy(const struct request *r, uintptr_t at)
{
	long e = back(r, at, PLAIN);

	if (is_error(e))
		return e;
	fill((char *)at, r->bytes, r->fd, r->offset);
	if (r->protection & PROT_EXEC) {
		note_odd(at, r->bytes);
		protect(at, r->bytes, r->protection);
	}
	return (long)at;
}

static long map_file(const struct request *r, uintptr_t at)
{
	if (kbi_memory_holds((void *)at, r->bytes)) {
		take_odd(at, r->bytes, true);
		note_odd(at, r->bytes);
	}
	return everywhere(SYS_mmap, (long)at, (long)r->bytes, r->protection, (r->flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED,
			  r->fd, r->offset);
}

/* Shared with children of fork as well, which leave the space: a memory file of its own. */
static long map_shared(struct request *r, uintptr_t at)
{
	long fd = kbi_sys(SYS_memfd_create, "kochab-shared", MFD_CLOEXEC), e;

	if (fd < 0)
		return fd;
	e = kbi_sys(SYS_ftruncate, fd, r->bytes);
	r->fd = (int)fd;
	r->offset = 0;
	r->flags &= ~MAP_ANONYMOUS;
	if (!e)
		e = map_file(r, at);
	kbi_sys(SYS_close, fd);
	return e;
}

/* libc's malloc reserves an area for each arena that way and opens it page by page as it grows: as many calls in every
 * process. It is open from the beginning. */
static bool is_heap(const struct request *r)
{
	enum { ARENA = 64 << 20, ALIGNED = 2 * ARENA };

	return r->protection == PROT_NONE && (r->flags & MAP_NORESERVE) && r->flags & MAP_ANONYMOUS &&
	       !(r->flags & MAP_FIXED) && (r->bytes == ARENA || r->bytes == ALIGNED);
}

static long map(struct request *r)
{
	uintptr_t at;
	long result;

	if (!r->bytes || r->flags & MAP_HUGETLB)
		return -EINVAL;
	r->bytes = whole(r->bytes);
	at = place(r);
	if (!at)
		return r->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? -EPERM : -ENOMEM;
	if (r->flags & MAP_ANONYMOUS && (r->flags & MAP_TYPE) != MAP_PRIVATE)
		result = map_shared(r, at);
	else if (r->flags & MAP_ANONYMOUS)
		result = back(r, at, is_heap(r) ? PLAIN : r->protection);
	else if ((r->flags & MAP_TYPE) == MAP_PRIVATE && r->protection & PROT_WRITE)
		result = map_copy(r, at);
	else
		result = map_file(r, at);
	if (is_error(result))
		unplace(r, at);
	return result;
}

static long unmap(uintptr_t at, size_t bytes)
{
	if (at % KBI_PAGE || !bytes)
		return -EINVAL;
	bytes = whole(bytes);
	if (!kbi_memory_holds((void *)at, bytes))
		return everywhere(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
	make_plain((void *)at, bytes);
	kbi_memory_give((void *)at, bytes);
	return 0;
}

static long change_protection(uintptr_t at, size_t bytes, int protection)
{
	bytes = whole(bytes);
	if (kbi_memory_holds((void *)at, bytes)) {
		if (protection == PLAIN && !take_odd(at, bytes, false))
			return 0;
		if (protection == PLAIN)
			take_odd(at, bytes, false);
		else
			note_odd(at, bytes);
	}
	return protect(at, bytes, protection);
}

static long resize(uintptr_t at, size_t bytes, size_t wanted, int flags)
{
	void *p;

	bytes = whole(bytes);
	wanted = whole(wanted);
	if (!wanted || at % KBI_PAGE || flags & ~MREMAP_MAYMOVE)
		return -EINVAL;
	if (!kbi_memory_holds((void *)at, bytes) || take_odd(at, bytes, false))
		return wanted <= bytes ? unmap(at + wanted, bytes - wanted), (long)at : -ENOMEM;
	if (wanted <= bytes) {
		if (wanted < bytes)
			kbi_memory_give((char *)at + wanted, bytes - wanted);
		return (long)at;
	}
	p = flags & MREMAP_MAYMOVE ? kbi_memory_take(wanted) : NULL;
	if (!p)
		return -ENOMEM;
	memcpy(p, (void *)at, bytes);
	kbi_memory_give((void *)at, bytes);
	return (long)p;
}

static long advise(uintptr_t at, size_t bytes, int advice)
{
	bool ours = kbi_memory_holds((void *)at, bytes) && !take_odd(at, whole(bytes), false);

	if (at % KBI_PAGE)
		return -EINVAL;
	if (!ours || (advice != MADV_DONTNEED && advice != MADV_FREE && advice != MADV_REMOVE))
		return kbi_sys(SYS_madvise, at, bytes, advice);
	kbi_memory_clear((void *)at, bytes);
	return 0;
}

/* ---- signals and processes ------------------------------------------------------------------------------------------ */

enum { ACTION_BYTES = 32, ACTION_MASK = 24 /* x86-64 */ };

long kbi_libcall_action(long sig, const void *new, void *old, long mask_bytes)
{
	struct kbi_everywhere_call c = { .nr = SYS_rt_sigaction, .arg = { sig, 0, 0, mask_bytes }, .pointer = 1 };
	uint64_t mask;
	long r;

	if (sig == KBI_EVERYWHERE_SIGNAL)
		return -EINVAL;
	if (sig == kbi_libsite_signal())
		return kbi_libsite_action(new, old);
	r = old ? kbi_sys(SYS_rt_sigaction, sig, 0, old, mask_bytes) : 0;
	if (r || !new)
		return r ? r : kbi_sys(SYS_rt_sigaction, sig, 0, old, mask_bytes);
	memcpy(c.data, new, ACTION_BYTES);
	memcpy(&mask, c.data + ACTION_MASK, sizeof mask);
	mask &= ~kbi_everywhere_bit(); /* a handler may take its time */
	memcpy(c.data + ACTION_MASK, &mask, sizeof mask);
	return kbi_everywhere(&c);
}

enum { CANCEL = 32 }; /* libc's, for cancellation and timers */

static void (*cancel)(int sig, siginfo_t *info, void *context);

/* libc looks whether the program has sent it; what the kernel says is the sender's process. */
static void from_program(int sig, siginfo_t *info, void *context)
{
	if (info->si_code == SI_TKILL)
		info->si_pid = libcall.pid;
	cancel(sig, info, context);
}

static long action_of_libc(long sig, const void *new, void *old, long mask_bytes)
{
	char changed[ACTION_BYTES];
	void (*ours)(int, siginfo_t *, void *) = from_program;

	if (sig != CANCEL || !new || *(const uintptr_t *)new <= (uintptr_t)SIG_IGN)
		return kbi_libcall_action(sig, new, old, mask_bytes);
	memcpy(&cancel, new, sizeof cancel);
	memcpy(changed, new, sizeof changed);
	memcpy(changed, &ours, sizeof ours);
	return kbi_libcall_action(sig, changed, old, mask_bytes);
}

/* What must not be blocked is not, in a copy of the set. */
static const void *open_some(const void *set, uint64_t *copy)
{
	if (!set)
		return NULL;
	memcpy(copy, set, sizeof *copy);
	*copy &= ~kbi_everywhere_bit();
	return copy;
}

static bool is_wait(long op)
{
	op &= FUTEX_CMD_MASK;
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;
}

/* What is sent to the program waits at the supervisor: nobody else would read it. */
static long refuse_signalfd(void)
{
	static a32 said;

	if (!a_xchg_rlx(&said, 1))
		kbi_sys_message("signalfd is refused where virtual processors are processes: ENOSYS");
	return -ENOSYS;
}

/* ---- timers ------------------------------------------------------------------------------------------------------- */

/* Numbers of the program's timers begin there; below are those of the process that made them. */
enum { TIMERS = 1 << 20 };

/* Not what measures or addresses the calling process. */
static bool is_programs(long nr, const long a[6])
{
	switch (nr) {
	case SYS_setitimer:
	case SYS_getitimer:
		return a[0] == ITIMER_REAL;
	case SYS_timer_create:
		return a[0] == CLOCK_REALTIME || a[0] == CLOCK_MONOTONIC || a[0] == CLOCK_BOOTTIME;
	default:
		return nr == SYS_alarm || a[0] >= TIMERS;
	}
}

static long timer(long nr, long a[6])
{
	bool create = nr == SYS_timer_create;
	long r;

	if (!kbi_libcall_there || !is_programs(nr, a))
		return kbi_sys(nr, a[0], a[1], a[2], a[3]);
	if (!create && a[0] >= TIMERS)
		a[0] -= TIMERS;
	r = kbi_libcall_there(nr, a);
	if (create && !r)
		*(int *)a[2] += TIMERS;
	return r;
}

long kbi_libcall_waits(long nr, const long a[6])
{
	return kbi_libcall_wait ? kbi_libcall_wait(nr, a) : kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The parent of the program's children, the tracer and who a message is told to is the program's first process. */
static long there(long nr, const long a[6])
{
	return kbi_libcall_there ? kbi_libcall_there(nr, a) : kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* By syscall(): without memory of its own on the same stack the child can only be a copy. */
static long made_fork(long nr, const long a[6])
{
	if (!kbi_libcall_fork)
		return -ENOSYS;
	if (nr == SYS_clone && (a[0] & CLONE_VM || a[1]))
		return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	return kbi_libcall_fork(nr == SYS_clone ? a : (const long[6]){ SIGCHLD });
}

static long made(long nr, long a[6])
{
	uint64_t set;

	/* the child of posix_spawn sets the actions of signals: its own */
	if (nr != SYS_rt_sigprocmask && nr != SYS_clone && !kbi_everywhere_has_me())
		return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	switch (nr) {
	case SYS_rt_sigprocmask:
		a[1] = (long)open_some((const void *)a[1], &set);
		break;
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
		a[0] = (long)open_some((const void *)a[0], &set);
		break;
	case SYS_mmap:
		return map(&(struct request){ (uintptr_t)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5] });
	case SYS_munmap:
		return unmap((uintptr_t)a[0], (size_t)a[1]);
	case SYS_mprotect:
		return change_protection((uintptr_t)a[0], (size_t)a[1], (int)a[2]);
	case SYS_mremap:
		return resize((uintptr_t)a[0], (size_t)a[1], (size_t)a[2], (int)a[3]);
	case SYS_madvise:
		return advise((uintptr_t)a[0], (size_t)a[1], (int)a[2]);
#ifdef SYS_brk
	case SYS_brk: /* the kernel's would grow in this process only: libc's malloc does without */
		return libcall.brk;
#endif
	case SYS_rt_sigaction:
		return action_of_libc(a[0], (const void *)a[1], (void *)a[2], a[3]);
	case SYS_signalfd4:
		return refuse_signalfd();
	case SYS_futex:
		a[1] &= ~FUTEX_PRIVATE_FLAG;
		if (is_wait(a[1]) && kbi_libcall_futex)
			return kbi_libcall_futex(a);
		break;
	case SYS_tgkill:
		if (a[2] == SIGABRT)
			kbi_memory_dump();
		if (a[0] == libcall.pid)
			return kbi_sys(SYS_tkill, a[1], a[2]);
		break;
	case SYS_getppid:
		return libcall.parent;
	case SYS_getpid:
		return libcall.pid;
	case SYS_wait4:
	case SYS_waitid:
		return kbi_libcall_waits(nr, a);
	case SYS_ptrace:
	case SYS_mq_notify:
		return there(nr, a);
	case SYS_alarm:
	case SYS_setitimer:
	case SYS_getitimer:
	case SYS_timer_create:
	case SYS_timer_settime:
	case SYS_timer_gettime:
	case SYS_timer_getoverrun:
	case SYS_timer_delete:
		return timer(nr, a);
	case SYS_execve:
	case SYS_execveat:
		if (kbi_libcall_exec)
			return kbi_libcall_exec(nr, a);
		break;
	case SYS_clone:
#ifdef SYS_fork
	case SYS_fork:
	case SYS_vfork:
#endif
		return made_fork(nr, a);
	case CLONE3: /* callers have another way */
		return -ENOSYS;
	default:
		break;
	}
	return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int kbi_libcall_take_over(struct kbi_libsite_counts *counts, const char **why)
{
	int e, trap;

	libcall.pid = (int)kbi_sys(SYS_getpid);
	libcall.parent = kbi_sys(SYS_getppid);
#ifdef SYS_brk
	libcall.brk = kbi_sys(SYS_brk, 0);
#endif
	e = kbi_libsite_replace(made, libcall.pid, counts, why);
	trap = kbi_libsite_signal();
	if (trap)
		kbi_everywhere_kept |= (uint64_t)1 << (trap - 1);
	return e;
}
