/* base/base.h - words that every unit uses: attributes, sizes, checks.
 * Callers: all units. Calls no unit. No state. */
#ifndef KBI_BASE_H
#define KBI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KBI_HIDDEN __attribute__((visibility("hidden")))
#define KBI_NOINLINE __attribute__((noinline))
/* Marks a function that contains a context switch which is in line on some machines. Its callers in
 * the same file must not rely on the compiler's analysis of its body: other threads run during the
 * switch and change variables that only this file names. */
#if __has_attribute(noipa)
#define KBI_SWITCHER __attribute__((noipa))
#else
#define KBI_SWITCHER KBI_NOINLINE
#endif
#define KBI_NORETURN __attribute__((noreturn))
/* inline all calls; GCC thinks code that never returns is cold */
#define KBI_FLATTEN __attribute__((flatten))
#define KBI_ALIGNED(n) __attribute__((aligned(n)))
#define KBI_PRINTF(f, a) __attribute__((format(printf, f, a)))
/* Marks a function that may give up the processor: its caller may continue on another VP and
 * another kernel thread. Only functions with this mark call functions with this mark. */
#define KBI_SWITCHES

#define kbi_likely(x) __builtin_expect(!!(x), 1)
#define kbi_unlikely(x) __builtin_expect(!!(x), 0)
#define kbi_container(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define kbi_countof(a) (sizeof(a) / sizeof((a)[0]))

enum { KBI_CACHE_LINE = 64, KBI_PAGE = 4096, KBI_MAX_VPS = 1024 };

/* No register survives a switch, so a value used on both sides of a switch lies in memory. This
 * macro loads a value once for several uses after the switch. */
#define KBI_LOAD_ONCE(x) __asm__("" : "+r"(x))

/* Compiler barrier: the compiler keeps no memory value in a register across it. */
static inline void kbi_compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

#endif
