/* crashers.h - threads that crash, each in its way. */
#ifndef KB_TEST_CRASHERS_H
#define KB_TEST_CRASHERS_H

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* For tests where the option contain does nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NOT_CONTAINED "not with sanitizers"
#elif !defined(__GLIBC__) || (!defined(__x86_64__) && !defined(__aarch64__))
#define NOT_CONTAINED "not with this libc or on this machine"
#endif

static inline void skip_unless_contained(void)
{
#ifdef NOT_CONTAINED
	SKIP(NOT_CONTAINED);
#endif
}

static volatile int zero;
static volatile long here;
static void *volatile bad_address = (void *)24;

static inline void *writes(void *arg)
{
	(void)arg;
	*(volatile int *)bad_address = 1;
	return NULL;
}

static inline void *jumps(void *arg)
{
	(void)arg;
	((void (*)(void))bad_address)();
	return NULL;
}

__attribute__((no_sanitize("undefined"))) static inline void *divides(void *arg)
{
	(void)arg;
	here = 100 / zero;
	return NULL;
}

static inline void *illegal(void *arg)
{
	(void)arg;
#if defined(__aarch64__)
	__asm__ volatile(".inst 0"); /* the compiler's trap is another signal there */
#endif
	__builtin_trap();
}

static inline void *raises(void *arg)
{
	(void)arg;
	raise(SIGBUS);
	return NULL;
}

static inline void *aborts(void *arg)
{
	(void)arg;
	abort();
}

static inline void *asserts(void *arg)
{
	(void)arg;
	assert(zero && "as it should");
	return NULL;
}

static __attribute__((noinline)) int deep(int n)
{
	volatile char room[512];

	room[0] = (char)n;
	return n ? deep(n + 1) + room[0] : 0;
}

static inline void *overflows(void *arg)
{
	(void)arg;
	here = deep(1);
	return NULL;
}

static inline void *measures(void *arg)
{
	(void)arg;
	here = (long)strlen((const char *)bad_address);
	return NULL;
}

/* It holds stdout's lock. */
static inline void *prints(void *arg)
{
	(void)arg;
	/* more than a line, which the compiler would give to puts */
	printf("%s %d\n", (char *)bad_address, 1);
	return NULL;
}

static inline int crashing_order(const void *a, const void *b)
{
	(void)a;
	(void)b;
	return *(volatile int *)bad_address;
}

static inline void *sorts(void *arg)
{
	int two[2] = { 2, 1 };

	(void)arg;
	qsort(two, 2, sizeof *two, crashing_order);
	return NULL;
}

static const struct fault {
	void *(*fn)(void *);
	int signal;
} faults[] = {
	{ writes, SIGSEGV }, { jumps, SIGSEGV }, { illegal, SIGILL }, { raises, SIGBUS },
	{ aborts, SIGABRT }, { asserts, SIGABRT }, { overflows, SIGSEGV }, { measures, SIGSEGV },
	{ prints, SIGSEGV }, { sorts, SIGSEGV },
#if defined(__x86_64__)
	{ divides, SIGFPE },
#else
	{ divides, 0 },
#endif
};
enum { FAULTS = sizeof faults / sizeof *faults };

#endif
