/* os/sys.h - raw system calls: no errno, no cancellation point, no function that a program or the
 * drop-in could have interposed. Results are the kernel's: -errno on failure. All system calls of
 * the runtime are made here, or by another unit of os or libc.
 * Callers: all rooms above. Runs on any stack, with any thread pointer loaded. */
#ifndef KBI_SYS_H
#define KBI_SYS_H

#include "base/base.h"

#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
static inline long kbi_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static inline long kbi_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#elif defined(__riscv)
static inline long kbi_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long a7 __asm__("a7") = n;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d;
	register long a4 __asm__("a4") = e;
	register long a5 __asm__("a5") = f;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
			 : "memory");
	return a0;
}
#elif defined(__s390x__)
static inline long kbi_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r1 __asm__("1") = n;
	register long r2 __asm__("2") = a;
	register long r3 __asm__("3") = b;
	register long r4 __asm__("4") = c;
	register long r5 __asm__("5") = d;
	register long r6 __asm__("6") = e;
	register long r7 __asm__("7") = f;

	__asm__ volatile("svc 0"
			 : "+d"(r2)
			 : "d"(r1), "d"(r3), "d"(r4), "d"(r5), "d"(r6), "d"(r7)
			 : "memory", "cc");
	return r2;
}
#else
/* Portable: calls libc's syscall() and restores errno. */
#define KBI_SYS_DIRECT 0
long kbi_sys6(long n, long a, long b, long c, long d, long e, long f);
#endif

/* 1 if kbi_sys6 bypasses libc, whose functions the drop-in may define. */
#ifndef KBI_SYS_DIRECT
#define KBI_SYS_DIRECT 1
#endif

#define KBI_SYS_ARGS(n, a, b, c, d, e, f, ...) \
	kbi_sys6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define kbi_sys(...) KBI_SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* The kernel's struct sched_attr in its first version, which some headers lack. */
struct kbi_sys_schedule {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* Settings for virtual processors that are processes. Constant once they run. */
struct kbi_sys_from {
	void *(*take)(size_t bytes); /* source of memory; NULL: anonymous maps */
	void (*give)(void *p, size_t bytes);
	int futex;                   /* flag added to each futex call */
	bool processes;              /* our kernel threads are in processes of their own */
};
extern KBI_HIDDEN struct kbi_sys_from kbi_sys_from;

/* Sleeps while *word == expected. timeout: relative, NULL none. Returns 0, -EAGAIN, -EINTR,
 * -ETIMEDOUT. */
long kbi_sys_futex_wait(const void *word, uint32_t expected, const struct timespec *timeout);
/* Wakes up to n sleepers and returns their number. */
long kbi_sys_futex_wake(const void *word, int n);
/* kbi_sys_futex_wait and kbi_sys_futex_wake for words that processes share. */
long kbi_sys_futex_wait_shared(const void *word, uint32_t expected, const struct timespec *timeout);
long kbi_sys_futex_wake_shared(const void *word, int n);
int kbi_sys_gettid(void);
/* Sends a signal to a kernel thread of ours. Returns 0, -ESRCH. */
long kbi_sys_signal(int tid, int sig);
/* Sends a signal with a siginfo_t for its handler. Returns 0, -ESRCH. */
long kbi_sys_signal_info(int tid, int sig, const void *info);
/* Makes the calling process end when its parent ends. Lets the parent's children read the system
 * call that the calling process is in. */
void kbi_sys_die_with(int parent);
/* Returns true if the n bytes at `at`, 8 to a page, can be read. Pointers that a program passes to
 * the kernel may be invalid, and the kernel answers EFAULT. Changes nothing. */
bool kbi_sys_can_read(const void *at, size_t n);
/* Polls without waiting. Returns the number of ready descriptors, or -errno, never -EINTR: the
 * kernel returns -EINTR if none is ready and a signal arrives meanwhile, even a signal of the
 * runtime. The caller must not fall back to a blocking call for that. */
long kbi_sys_poll_now(struct pollfd *fds, size_t n);
/* Returns true if the kernel reports that a call for these poll events would not wait, unless a
 * faster caller takes the data. */
bool kbi_sys_is_ready(int fd, short events);
/* Yields the processor as the kernel sees it. */
void kbi_sys_yield(void);
/* Yields to a kernel thread that must advance but has no word to sleep on (os/lock.h); it may have
 * been preempted. n counts the caller's tries from 0. A thread with a real-time priority lets no
 * thread of a lower priority run by yielding, so now and then this function sleeps for a moment. */
void kbi_sys_yield_to_holder(unsigned n);
/* Writes the whole text to a descriptor, ignoring errors: for last words. */
void kbi_sys_write(int fd, const char *text, size_t n);
/* Replaces control characters by '?' in a text for a terminal: names of threads may come from
 * anywhere. */
void kbi_sys_harmless(char *text, size_t n);
/* kbi_sys_is_open returns true if the user who started the program may see its memory, hence its
 * addresses: the program is dumpable. A program with more rights than its caller is not.
 * kbi_sys_shown returns an address for a message: NULL where addresses may not be seen. */
bool kbi_sys_is_open(void);
const void *kbi_sys_shown(const void *address);
/* Prints "kochab: ..." to standard error with one write; at most 511 bytes. Async-signal-safe
 * enough for handlers: vsnprintf formats %s %d %u %ld %lu %p %c %% and widths. */
void kbi_sys_message(const char *format, ...) KBI_PRINTF(1, 2);
/* Prints as kbi_sys_message does, then calls abort(). */
void kbi_sys_fatal(const char *format, ...) KBI_PRINTF(1, 2) KBI_NORETURN;
/* Returns anonymous private sparse memory, or NULL. The memory never counts against overcommit. */
void *kbi_sys_map(size_t bytes);
/* Returns memory as kbi_sys_map does, for a table reserved at its largest possible size. In a
 * program that locks all future memory (mlockall) other mappings are populated and locked at once;
 * this mapping stays sparse and unlocked. */
void *kbi_sys_map_table(size_t bytes);
/* Advises large pages from the second large page of the memory on: if that much is used, most of
 * the memory will be. */
void kbi_sys_map_large(void *at, size_t bytes);
void kbi_sys_unmap(void *p, size_t bytes);
/* Returns the size that a table reserved once may take: `wanted`, or less if the process's address
 * space is limited. */
size_t kbi_sys_reserve(size_t wanted);
/* mmap without a file. Returns the address, or NULL. `at` and flags as in mmap; MAP_PRIVATE |
 * MAP_ANONYMOUS are added. */
void *kbi_sys_mmap(void *at, size_t bytes, int protection, int flags);
/* Returns CLOCK_MONOTONIC in ns. */
uint64_t kbi_sys_now(void);
/* Returns the kernel's clock of that number in ns; 0: the kernel has no such clock. */
uint64_t kbi_sys_clock(int clock);
static inline struct timespec kbi_sys_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
}

#endif
