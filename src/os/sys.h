/* os/sys.h - raw system calls: no errno, no cancellation point, nothing that a program or the drop-in could
 * have interposed. Results as the kernel gives them: -errno on failure. All system calls of the runtime are
 * made here or in a neighbour in this room.
 * Callers: everybody above. Runs on any stack, with any thread pointer loaded. */
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

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
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

	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
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

	__asm__ volatile("svc 0" : "+d"(r2) : "d"(r1), "d"(r3), "d"(r4), "d"(r5), "d"(r6), "d"(r7) : "memory", "cc");
	return r2;
}
#else
/* Portable: libc's syscall() with its errno undone. */
#define KBI_SYS_DIRECT 0
long kbi_sys6(long n, long a, long b, long c, long d, long e, long f);
#endif

/* Not by way of a function of libc's that the drop-in defines. */
#ifndef KBI_SYS_DIRECT
#define KBI_SYS_DIRECT 1
#endif

#define KBI_SYS_ARGS(n, a, b, c, d, e, f, ...) \
	kbi_sys6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define kbi_sys(...) KBI_SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* The kernel's struct sched_attr in its first version, which not every header has. */
struct kbi_sys_schedule {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* What virtual processors as processes change. Constant once they run. */
struct kbi_sys_from {
	void *(*take)(size_t bytes); /* where memory comes from; NULL: anonymous maps */
	void (*give)(void *p, size_t bytes);
	int futex;                   /* flag of each futex call */
	bool processes;              /* kernel threads of ours are in processes of their own */
};
extern KBI_HIDDEN struct kbi_sys_from kbi_sys_from;

/* Sleeps while *word == expected. timeout: relative, NULL none. 0, -EAGAIN, -EINTR, -ETIMEDOUT. */
long kbi_sys_futex_wait(const void *word, uint32_t expected, const struct timespec *timeout);
/* Wakes up to n sleepers; how many. */
long kbi_sys_futex_wake(const void *word, int n);
/* The same for words that processes share. */
long kbi_sys_futex_wait_shared(const void *word, uint32_t expected, const struct timespec *timeout);
long kbi_sys_futex_wake_shared(const void *word, int n);
int kbi_sys_gettid(void);
/* Sends a signal to a kernel thread of ours. 0, -ESRCH. */
long kbi_sys_signal(int tid, int sig);
/* The same, with what its handler is to be told: a siginfo_t. */
long kbi_sys_signal_info(int tid, int sig, const void *info);
/* The process that calls ends when its parent ends; other children of that one may read in which system call it is. */
void kbi_sys_die_with(int parent);
/* The n bytes there, 8 to a page, can be read: what a program gives to the kernel may lead anywhere, and the kernel says
 * EFAULT. Nothing is changed. */
bool kbi_sys_can_read(const void *at, size_t n);
/* poll that does not wait: how many are ready, or -errno, never -EINTR. The kernel says that where nothing is ready and a
 * signal comes meanwhile, also one of the runtime's own, and a call that may block is no answer to it. */
long kbi_sys_poll_now(struct pollfd *fds, size_t n);
/* The kernel has told that a call for these events of poll does not wait, but for who is faster. */
bool kbi_sys_is_ready(int fd, short events);
/* Kernel's idea of yielding the processor. */
void kbi_sys_yield(void);
/* By who finds for the n-th time, from 0, that another kernel thread is not as far as it must be, where it has no word
 * to sleep on (os/lock.h): that one may have been preempted. A thread with a real-time priority lets none of a lower
 * one run by yielding, so now and then it sleeps for a moment. */
void kbi_sys_yield_to_holder(unsigned n);
/* Writes all of it to a descriptor, ignoring errors: for last words. */
void kbi_sys_write(int fd, const char *text, size_t n);
/* Control characters in a text that goes to a terminal become '?': names of threads may come from anywhere. */
void kbi_sys_harmless(char *text, size_t n);
/* Whoever has started the program may see its memory, and so its addresses: it is dumpable, which a program with more
 * rights than its caller is not. And an address, for a message: NULL where it may not be seen. */
bool kbi_sys_is_open(void);
const void *kbi_sys_shown(const void *address);
/* Prints "kochab: ..." to standard error with one write; at most 511 bytes. Async-signal-safe enough for
 * handlers: %s %d %u %ld %lu %p %c %% and widths by vsnprintf. */
void kbi_sys_message(const char *format, ...) KBI_PRINTF(1, 2);
/* The same, then abort(). */
void kbi_sys_fatal(const char *format, ...) KBI_PRINTF(1, 2) KBI_NORETURN;
/* Anonymous private sparse memory; NULL on failure. Never counts against overcommit. */
void *kbi_sys_map(size_t bytes);
/* The same for a table that is reserved for the most there may ever be: in a program that has all its future memory locked
 * (mlockall) the others are made and locked at once, this is used as ever and not locked. */
void *kbi_sys_map_table(size_t bytes);
/* Most of such memory will be used if so much is: large pages from its second one on. A hint. */
void kbi_sys_map_large(void *at, size_t bytes);
void kbi_sys_unmap(void *p, size_t bytes);
/* How much of what is wanted a table that is reserved once may take: less where the process's address space is limited. */
size_t kbi_sys_reserve(size_t wanted);
/* mmap without a file: the address, or NULL. `at` and flags as there; MAP_PRIVATE | MAP_ANONYMOUS are added. */
void *kbi_sys_mmap(void *at, size_t bytes, int protection, int flags);
/* CLOCK_MONOTONIC, ns. */
uint64_t kbi_sys_now(void);
/* The kernel's clock of that number, ns; 0: it has none. */
uint64_t kbi_sys_clock(int clock);
static inline struct timespec kbi_sys_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
}

#endif
