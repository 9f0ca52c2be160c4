/* os/sys.c - the basic system calls of the runtime. Contract in sys.h.
 * Runs on any stack; never switches, never allocates through malloc. */
#include "os/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Marks each module that this file is linked into: libc/module then knows that its system calls are
 * Kochab's. */
__attribute__((section(".note.kochab"), used, aligned(4))) static const struct {
	uint32_t name_size, size, type;
	char name[8];
} note = { 8, 0, 1, "Kochab" };

#if !KBI_SYS_DIRECT
long kbi_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long r = syscall(n, a, b, c, d, e, f);

	if (r == -1)
		r = -errno;
	errno = saved;
	return r;
}
#endif

struct kbi_sys_from kbi_sys_from = { .futex = FUTEX_PRIVATE_FLAG };

long kbi_sys_futex_wait(const void *word, uint32_t expected, const struct timespec *timeout)
{
	return kbi_sys(SYS_futex, word, FUTEX_WAIT | kbi_sys_from.futex, expected, timeout);
}

long kbi_sys_futex_wake(const void *word, int n)
{
	return kbi_sys(SYS_futex, word, FUTEX_WAKE | kbi_sys_from.futex, n);
}

long kbi_sys_signal(int tid, int sig)
{
	if (kbi_sys_from.processes)
		return kbi_sys(SYS_tkill, tid, sig);
	return kbi_sys(SYS_tgkill, getpid(), tid, sig);
}

/* The target is a process of ours, whose number is tid, or a kernel thread of the caller's
 * process. */
long kbi_sys_signal_info(int tid, int sig, const void *info)
{
	long e = kbi_sys_from.processes ? kbi_sys(SYS_rt_tgsigqueueinfo, tid, tid, sig, info) : -ESRCH;

	return e == -ESRCH ? kbi_sys(SYS_rt_tgsigqueueinfo, kbi_sys(SYS_getpid), tid, sig, info) : e;
}

long kbi_sys_futex_wait_shared(const void *word, uint32_t expected, const struct timespec *timeout)
{
	return kbi_sys(SYS_futex, word, FUTEX_WAIT, expected, timeout);
}

long kbi_sys_futex_wake_shared(const void *word, int n)
{
	return kbi_sys(SYS_futex, word, FUTEX_WAKE, n);
}

int kbi_sys_gettid(void)
{
	return (int)kbi_sys(SYS_gettid);
}

/* Tests 8 bytes: the kernel reads the mask before it rejects the invalid operation -1, so it
 * changes nothing. */
static bool can_read_mask(const char *at)
{
	return kbi_sys(SYS_rt_sigprocmask, -1, at, NULL, 8) != -EFAULT;
}

bool kbi_sys_can_read(const void *at, size_t n)
{
	return can_read_mask(at) && can_read_mask((const char *)at + n - 8);
}

/* The parent may have ended before the request to the kernel, hence the check. */
void kbi_sys_die_with(int parent)
{
	kbi_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	if (kbi_sys(SYS_getppid) != parent)
		kbi_sys(SYS_exit_group, 0);
	kbi_sys(SYS_prctl, PR_SET_PTRACER, parent);
}

long kbi_sys_poll_now(struct pollfd *fds, size_t n)
{
	long r;

	do {
		struct timespec none = { 0, 0 };

		r = kbi_sys(SYS_ppoll, fds, n, &none, NULL, 0);
	} while (kbi_unlikely(r == -EINTR));
	return r;
}

bool kbi_sys_is_ready(int fd, short events)
{
	struct pollfd p = { fd, events, 0 };

	return kbi_sys_poll_now(&p, 1) > 0;
}

void kbi_sys_yield(void)
{
	kbi_sys(SYS_sched_yield);
}

void kbi_sys_yield_to_holder(unsigned n)
{
	enum { NAP_EVERY = 16, NAP_NS = 50000 };
	struct timespec nap = { 0, NAP_NS };

	if (n % NAP_EVERY == NAP_EVERY - 1)
		kbi_sys(SYS_nanosleep, &nap, NULL);
	else
		kbi_sys_yield();
}

void kbi_sys_write(int fd, const char *text, size_t n)
{
	while (n > 0) {
		long r = kbi_sys(SYS_write, fd, text, n);

		if (r <= 0 && r != -EINTR)
			return;
		if (r > 0) {
			text += r;
			n -= (size_t)r;
		}
	}
}

/* Returns the length of a control character at `text`: 2 for U+0080 to U+009F, else 1; 0: no
 * control character. */
static size_t control_length(const char *text, size_t n)
{
	unsigned char c = (unsigned char)text[0], next = n > 1 ? (unsigned char)text[1] : 0;

	if (c == 0xc2 && next >= 0x80 && next < 0xa0)
		return 2;
	return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

void kbi_sys_harmless(char *text, size_t n)
{
	size_t bytes;

	for (size_t i = 0; i < n; i++)
		for (bytes = control_length(text + i, n - i); bytes > 0; bytes--)
			text[i + bytes - 1] = '?';
}

static void write_message(const char *format, va_list ap)
{
	char line[512] = "kochab: ";
	size_t start = strlen(line);
	int n = vsnprintf(line + start, sizeof line - start - 1, format, ap);
	size_t end = n < 0 ? start : start + (size_t)n;

	if (end > sizeof line - 2)
		end = sizeof line - 2;
	kbi_sys_harmless(line, end);
	line[end] = '\n';
	kbi_sys_write(STDERR_FILENO, line, end + 1);
}

bool kbi_sys_is_open(void)
{
	return kbi_sys(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
}

const void *kbi_sys_shown(const void *address)
{
	return kbi_sys_is_open() ? address : NULL;
}

void kbi_sys_message(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	write_message(format, ap);
	va_end(ap);
}

void kbi_sys_fatal(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	write_message(format, ap);
	va_end(ap);
	abort();
}

/* Makes a raw system call where possible, so that an interrupting handler finds our code and not
 * libc's. */
void *kbi_sys_mmap(void *at, size_t bytes, int protection, int flags)
{
	flags |= MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(__s390__) /* s390's mmap takes its arguments in a struct */
	void *p = mmap(at, bytes, protection, flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
#else
	unsigned long r = (unsigned long)kbi_sys(SYS_mmap, at, bytes, protection, flags, -1, 0);

	return r > -4096ul ? NULL : (void *)r;
#endif
}

/* Bypasses libc's mmap: a library may have put its own function in front of it, as UCX does. Such a
 * function takes a lock, and our caller may hold that lock. Unmapping goes through libc, because
 * such a library must know of it. */
void *kbi_sys_map(size_t bytes)
{
	if (kbi_sys_from.take)
		return kbi_sys_from.take(bytes);
	return kbi_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
}

/* The order matters: the kernel populates no memory that may not be accessed, and none that is no
 * longer locked. */
void *kbi_sys_map_table(size_t bytes)
{
	void *p;

	if (kbi_sys_from.take)
		return kbi_sys_from.take(bytes);
	p = kbi_sys_mmap(NULL, bytes, PROT_NONE, MAP_NORESERVE);
	if (!p)
		return NULL;
	kbi_sys(SYS_munlock, p, bytes);
	if (kbi_sys(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE) == 0)
		return p;
	kbi_sys(SYS_munmap, p, bytes);
	return NULL;
}

void kbi_sys_map_large(void *at, size_t bytes)
{
	const uintptr_t large = (uintptr_t)2 << 20, end = (uintptr_t)at + bytes;
	uintptr_t from = ((uintptr_t)at + 2 * large - 1) & -large;

	if (from < end)
		kbi_sys(SYS_madvise, from, end - from, MADV_HUGEPAGE);
}

void kbi_sys_unmap(void *p, size_t bytes)
{
	if (kbi_sys_from.give)
		kbi_sys_from.give(p, bytes);
	else
		munmap(p, bytes);
}

size_t kbi_sys_reserve(size_t wanted)
{
	enum { PART = 64, LEAST = 1 << 16 };
	struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(RLIMIT_AS, &l);
	if (l.rlim_cur == RLIM_INFINITY || wanted < l.rlim_cur / PART)
		return wanted;
	return l.rlim_cur / PART > LEAST ? (size_t)(l.rlim_cur / PART) :
		wanted < LEAST ? wanted : LEAST;
}

static uint64_t timespec_to_ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t kbi_sys_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return timespec_to_ns(t);
}

uint64_t kbi_sys_clock(int clock)
{
	struct timespec t;

	if (kbi_sys(SYS_clock_gettime, clock, &t) != 0)
		return 0;
	return timespec_to_ns(t);
}
