/* points.h - a process that is a virtual processor kills itself in front of any store of the
 * library's. The library is compiled as for ThreadSanitizer, so that the compiler names each access
 * to memory; the functions that it calls are here and make the access, and the writing functions
 * are points. No store has to be marked in the source, none can be forgotten. For a single program,
 * linked with libkochab-points.a: include it in a single file. It is in the library's own section,
 * so that an interrupted instruction is the library's. Uses no TLS, no libc; may be called
 * anywhere. */
#ifndef KB_TEST_POINTS_H
#define KB_TEST_POINTS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#define POINTS_CODE __attribute__((section("kbi_text"), used, noinline))

/* In memory that all processes share. */
static struct {
	int armed;            /* points are counted, in this process: */
	long pid;
	unsigned count;       /* points that it came to */
	unsigned at, again;   /* it is killed at point `at`, and its successor `again` points later; 0:
	                       * not */
	unsigned fired;
} points;

static inline long points_call(long nr, long a, long b)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "0"(nr), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return r;
}

/* Made by the library's code: from elsewhere it may be the program's number (option libcalls). */
static POINTS_CODE long points_pid(void)
{
	return points_call(SYS_getpid, 0, 0);
}

static POINTS_CODE void points_come(void)
{
	if (!__atomic_load_n(&points.armed, __ATOMIC_RELAXED) || points_pid() != points.pid)
		return;
	if (++points.count != points.at)
		return;
	points.at = points.again;
	points.again = 0;
	points.fired++;
	points_call(SYS_kill, points.pid, SIGKILL);
	/* the successor */
	points.count = 0;
	points.pid = points_pid();
}

/* Called by the thread that is about to call the library. */
static inline void points_arm(void)
{
	points.count = 0;
	points.pid = points_pid();
	__atomic_store_n(&points.armed, 1, __ATOMIC_SEQ_CST);
}

static inline void points_disarm(void)
{
	__atomic_store_n(&points.armed, 0, __ATOMIC_SEQ_CST);
}

/* ---- functions that the compiler calls ------------------------------------------------------ */

#define READS(name) POINTS_CODE void __tsan_##name(void *at) { (void)at; }
#define WRITES(name) POINTS_CODE void __tsan_##name(void *at) { (void)at; points_come(); }
READS(read1) READS(read2) READS(read4) READS(read8) READS(read16)
READS(unaligned_read2) READS(unaligned_read4) READS(unaligned_read8) READS(unaligned_read16)
READS(volatile_read1) READS(volatile_read2) READS(volatile_read4) READS(volatile_read8)
READS(func_entry)
WRITES(write1) WRITES(write2) WRITES(write4) WRITES(write8) WRITES(write16)
WRITES(unaligned_write2) WRITES(unaligned_write4) WRITES(unaligned_write8) WRITES(unaligned_write16)
WRITES(volatile_write1) WRITES(volatile_write2) WRITES(volatile_write4) WRITES(volatile_write8)
/* as the build calls it: the library asks for that name to know the sanitizer */
POINTS_CODE void points_init(void) { }
POINTS_CODE void __tsan_func_exit(void) { }
POINTS_CODE void __tsan_read_range(void *at, size_t n) { (void)at, (void)n; }
POINTS_CODE void __tsan_write_range(void *at, size_t n) { (void)at, (void)n; points_come(); }
POINTS_CODE void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
POINTS_CODE void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* A point in front of it and a point behind: the next step may be a system call. */
#define CHANGES(bits, name, builtin) \
	POINTS_CODE uint##bits##_t __tsan_atomic##bits##_##name( \
		volatile uint##bits##_t *a, uint##bits##_t v, int order) \
	{ \
		uint##bits##_t r; \
		(void)order; \
		points_come(); \
		r = builtin(a, v, __ATOMIC_SEQ_CST); \
		points_come(); \
		return r; \
	}
#define COMPARES(bits, name) \
	POINTS_CODE int __tsan_atomic##bits##_compare_exchange_##name( \
		volatile uint##bits##_t *a, uint##bits##_t *old, uint##bits##_t v, int order, int other) \
	{ \
		int r; \
		(void)order, (void)other; \
		points_come(); \
		r = __atomic_compare_exchange_n(a, old, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		points_come(); \
		return r; \
	}
#define ATOMIC(bits) \
	POINTS_CODE uint##bits##_t __tsan_atomic##bits##_load( \
		const volatile uint##bits##_t *a, int order) \
	{ \
		(void)order; \
		return __atomic_load_n(a, __ATOMIC_SEQ_CST); \
	} \
	POINTS_CODE void __tsan_atomic##bits##_store( \
		volatile uint##bits##_t *a, uint##bits##_t v, int order) \
	{ \
		(void)order; \
		points_come(); \
		__atomic_store_n(a, v, __ATOMIC_SEQ_CST); \
		points_come(); \
	} \
	CHANGES(bits, exchange, __atomic_exchange_n) CHANGES(bits, fetch_add, __atomic_fetch_add) \
	CHANGES(bits, fetch_sub, __atomic_fetch_sub) CHANGES(bits, fetch_and, __atomic_fetch_and) \
	CHANGES(bits, fetch_or, __atomic_fetch_or) CHANGES(bits, fetch_xor, __atomic_fetch_xor) \
	COMPARES(bits, strong) COMPARES(bits, weak)
ATOMIC(8) ATOMIC(16) ATOMIC(32) ATOMIC(64)

#endif
