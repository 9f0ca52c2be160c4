/* base/base.h - words every unit uses: attributes, sizes, checks.
 * Callers: everybody. Calls nobody. No state. */
#ifndef KBI_BASE_H
#define KBI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KBI_HIDDEN __attribute__((visibility("hidden")))
#define KBI_NOINLINE __attribute__((noinline))
/* A function with a switch in it, which is in line on some machines: its callers in the same file must not go by what
 * the compiler sees in it, for other threads run meanwhile and change what only this file names. */
#if __has_attribute(noipa)
#define KBI_SWITCHER __attribute__((noipa))
#else
#define KBI_SWITCHER KBI_NOINLINE
#endif
#define KBI_NORETURN __attribute__((noreturn))
#define KBI_FLATTEN __attribute__((flatten)) /* all calls in line that can be: GCC thinks what ends without return cold */
#define KBI_ALIGNED(n) __attribute__((aligned(n)))
#define KBI_PRINTF(f, a) __attribute__((format(printf, f, a)))
/* A function that may give up the processor: the caller can come back on another VP and another
 * kernel thread. Only such functions call such functions. */
#define KBI_SWITCHES

#define kbi_likely(x) __builtin_expect(!!(x), 1)
#define kbi_unlikely(x) __builtin_expect(!!(x), 0)
#define kbi_container(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define kbi_countof(a) (sizeof(a) / sizeof((a)[0]))

enum { KBI_CACHE_LINE = 64, KBI_PAGE = 4096, KBI_MAX_VPS = 1024 };

/* No register outlives a switch, so what is used on both sides lies in memory; what is used more than once behind it is
 * loaded once. */
#define KBI_LOAD_ONCE(x) __asm__("" : "+r"(x))

/* Compiler barrier: nothing is kept in registers across it. */
static inline void kbi_compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

#endif
