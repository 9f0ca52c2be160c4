/* arch_test.h - stacks for the tests of the arch room: from malloc, large enough for sanitizers,
 * for printf and for the generic port's signal frame. */
#ifndef KB_ARCH_TEST_H
#define KB_ARCH_TEST_H

#include "arch/arch.h"
#include "test.h"

enum { STACK_SIZE = 128 * 1024 };

static inline void *new_stack(void)
{
	void *low = NULL;

	CHECK(posix_memalign(&low, 64, STACK_SIZE) == 0);
	return low;
}

static inline bool on_stack(const void *p, const void *low)
{
	return (uintptr_t)p - (uintptr_t)low < STACK_SIZE;
}

/* Returns the address of a local variable, hidden from the compiler, which warns about returning
 * it. */
static inline uintptr_t here(void)
{
	char local;
	char *p = &local;

	__asm__ volatile("" : "+r"(p));
	return (uintptr_t)p;
}

/* Removes AddressSanitizer's marks from the stack of a context that has left, before the memory is
 * used again. */
#ifdef __has_feature
#define ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#else
#define ADDRESS_SANITIZER 0
#endif

#if ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define forget_stack(low, size) __asan_unpoison_memory_region(low, size)
#else
#define forget_stack(low, size) ((void)(low), (void)(size))
#endif

#endif
