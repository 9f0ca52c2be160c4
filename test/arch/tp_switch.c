/* The thread pointer can be set and read back, by an instruction and through the kernel. A block of
 * ours is the compiler's thread pointer, too, and TLS is found relative to it. */
#include <string.h>

#include "arch_test.h"

/* Around the thread pointer the test copies so much of libc's block that a canary, errno and the
 * TLS variable below are found with either pointer. */
enum { BELOW = 4096, ABOVE = 1024 };

struct answers {
	void *by_us, *by_compiler;
	int tls_there, tls_here;
};

/* relative to the thread pointer */
static __thread __attribute__((tls_model("initial-exec"))) int tls_value = 1;

/* gcc 10 claims the builtin but lacks it */
#if defined(__has_builtin) && (defined(__clang__) || __GNUC__ > 10)
#if __has_builtin(__builtin_thread_pointer)
#define COMPILERS_TP() __builtin_thread_pointer()
#endif
#endif
#ifndef COMPILERS_TP
#define COMPILERS_TP() kbi_tp_get()
#endif

KBI_NOINLINE static int tls_read(void)
{
	__asm__ volatile("" ::: "memory");
	return tls_value;
}

KBI_NOINLINE static void tls_write(int v)
{
	tls_value = v;
	__asm__ volatile("" ::: "memory");
}

KBI_NOINLINE static void visit(void *tp, struct answers *a)
{
	void *home = kbi_tp_get();

	kbi_tp_set(tp);
	a->by_us = kbi_tp_get();
	a->by_compiler = COMPILERS_TP();
	a->tls_there = tls_read();
	tls_write(2);
	kbi_tp_set(home);
	a->tls_here = tls_read();
}

static size_t bytes_below(char *tp)
{
	uintptr_t var = (uintptr_t)&tls_value;

	return var < (uintptr_t)tp ? ((uintptr_t)tp - var + 64 + 63) & ~(size_t)63 : 64;
}

static void check_mode(bool allow_fast)
{
	static _Alignas(64) char block[BELOW + ABOVE];
	char *home = kbi_tp_get(), *tp = block + BELOW;
	struct answers a;

	kbi_tp_init(allow_fast);
	CHECK(bytes_below(home) <= BELOW);
	memcpy(tp - bytes_below(home), home - bytes_below(home), bytes_below(home) + ABOVE);
#ifdef __x86_64__
	CHECK(allow_fast || !kbi_tp_fast);
	*(void **)tp = tp; /* the self pointer of the ABI */
#endif
	visit(tp, &a);
	CHECK(a.by_us == tp && a.by_compiler == tp);
	CHECK_EQ(a.tls_there, 1); /* the value in the copy */
	CHECK_EQ(a.tls_here, 1);  /* the write went to the copy */
	CHECK(kbi_tp_get() == home && COMPILERS_TP() == home);
}

int main(void)
{
	if (!KBI_HAVE_TP)
		SKIP("the generic port has no thread pointer");
#if ADDRESS_SANITIZER || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer's own TLS is not copied");
#endif
	for (int i = 0; i < 100; i++) {
		check_mode(true);
		check_mode(false);
	}
	return 0;
}
