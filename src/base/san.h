/* base/san.h - tells sanitizers about our stack switches; nothing in a plain build, but for valgrind, which takes a
 * program as it is and must know which memory is a stack.
 * AddressSanitizer wants the bounds of the stack to come, ThreadSanitizer a fibre per context.
 * Callers: core/run (switch), core/thread (end), core/boot, mem/stack. */
#ifndef KBI_SAN_H
#define KBI_SAN_H

#include "base/base.h"

/* KBI_NO_SAN: the instrumentation is the test's own (contain_points). */
#ifndef KBI_NO_SAN
#if defined(__SANITIZE_ADDRESS__)
#define KBI_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KBI_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define KBI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KBI_TSAN 1
#endif
#endif
#endif

/* Someone wants to know. */
#if defined(KBI_ASAN) || defined(KBI_TSAN)
#define KBI_SAN 1
#else
#define KBI_SAN 0
#endif

enum { KBI_SAN_LIVES = 50 };

/* What a sanitizer knows of a context. Twelve bytes, for a descriptor has no more to give. */
struct kbi_san {
#ifdef KBI_TSAN
	void *fibre;
	uint32_t lives : 31;  /* contexts that the fibre has been */
	uint32_t adopted : 1; /* a kernel thread's */
#else
	const void *low;      /* of its stack */
	uint32_t size;        /* of its stack, in sixteens of bytes */
#endif
} __attribute__((packed, aligned(4)));

#ifdef KBI_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef KBI_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

/* Where a space is mapped at an address of our choice: the first one, and what lies behind the last. ThreadSanitizer keeps
 * most addresses for itself. */
#if defined(KBI_TSAN) && defined(__x86_64__)
#define KBI_SAN_MAP_FROM UINT64_C(0x1000000000)
#define KBI_SAN_MAP_TO UINT64_C(0x8000000000)
#else
#define KBI_SAN_MAP_FROM UINT64_C(0x200000000000)
#define KBI_SAN_MAP_TO UINT64_MAX
#endif

/* May it be mapped there? */
static inline bool kbi_san_may_map(const void *at, size_t bytes)
{
	return (uintptr_t)at + bytes <= KBI_SAN_MAP_TO;
}

/* Is the program run by valgrind? As far as this build knows. */
static inline bool kbi_san_is_valgrind(void)
{
#ifdef RUNNING_ON_VALGRIND
	return RUNNING_ON_VALGRIND;
#else
	return false;
#endif
}

/* Memory that is a stack from now on. */
static inline void kbi_san_stack(const void *low, const void *high)
{
	(void)low, (void)high; /* valgrind's macros do not use them on machines it does not know */
#ifdef VALGRIND_STACK_REGISTER
	(void)VALGRIND_STACK_REGISTER(low, high);
#endif
}

/* Right before a switch to `to`; *save keeps what arrive needs. NULL save: this context ends. In line for certain: a
 * function of its own would begin on one fibre and end on the other. */
static inline __attribute__((always_inline)) void kbi_san_depart(void **save, const struct kbi_san *to)
{
#if defined(KBI_ASAN)
	__sanitizer_start_switch_fiber(save, to->low, (size_t)to->size * 16);
#elif defined(KBI_TSAN)
	(void)save;
	__tsan_switch_to_fiber(to->fibre, 0);
#else
	(void)save;
	(void)to;
#endif
}

/* First thing in a context that runs (again). */
static inline void kbi_san_arrive(void *saved)
{
#if defined(KBI_ASAN)
	__sanitizer_finish_switch_fiber(saved, NULL, NULL);
#else
	(void)saved;
#endif
}

/* Nobody wants to know: then a line of the descriptor that a short thread does not touch otherwise is not written. */
static inline void kbi_san_note(struct kbi_san *s, const void *low, size_t size)
{
#ifdef KBI_ASAN
	s->low = low;
	s->size = (uint32_t)(size / 16);
#else
	(void)s;
	(void)low;
	(void)size;
#endif
}

/* A context that is to run for the first time. Making a fibre clears most of a megabyte, so the one of the
 * descriptor's last thread goes on, but not for ever: frames that never return stay on its shadow stack. */
static inline void kbi_san_make(struct kbi_san *s, const void *low, size_t size)
{
	kbi_san_note(s, low, size);
#ifdef KBI_TSAN
	if (s->fibre && !s->adopted) {
		if (++s->lives <= KBI_SAN_LIVES)
			return;
		__tsan_destroy_fiber(s->fibre);
	}
	s->fibre = __tsan_create_fiber(0);
	s->lives = 1;
	s->adopted = false;
#endif
}

/* Memory that is in use although no pointer to it lies where LeakSanitizer looks. */
static inline void kbi_san_in_use(void *p)
{
#ifdef KBI_ASAN
	__lsan_ignore_object(p);
#else
	(void)p;
#endif
}

/* The calling context, whose stack is a kernel thread's. */
static inline void kbi_san_adopt(struct kbi_san *s, const void *low, size_t size)
{
	kbi_san_note(s, low, size);
#ifdef KBI_TSAN
	s->fibre = __tsan_get_current_fiber();
	s->adopted = true;
#endif
}

/* It will not run again. */
static inline void kbi_san_end(struct kbi_san *s)
{
#if defined(KBI_ASAN)
	/* its last frames never returned: their marks must not outlive it */
	__asan_unpoison_memory_region(s->low, (size_t)s->size * 16);
#else
	(void)s;
#endif
}

#endif
