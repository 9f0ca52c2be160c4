/* base/san.h - tells sanitizers about our stack switches. It does nothing in a plain build, except
 * for valgrind, which runs any program unchanged and must know which memory is a stack.
 * AddressSanitizer wants the bounds of the next stack, ThreadSanitizer a fibre per context.
 * Callers: libc/tcb_donor, mem/stack_make, core, space/file. */
#ifndef KBI_SAN_H
#define KBI_SAN_H

#include "base/base.h"

/* KBI_NO_SAN: the test brings its own instrumentation (contain_points). */
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

/* 1 if the build has a sanitizer. */
#if defined(KBI_ASAN) || defined(KBI_TSAN)
#define KBI_SAN 1
#else
#define KBI_SAN 0
#endif

enum { KBI_SAN_LIVES = 50 };

/* A sanitizer's knowledge of a context: twelve bytes, all that a descriptor has room for. */
struct kbi_san {
#ifdef KBI_TSAN
	void *fibre;
	uint32_t lives : 31;  /* contexts that have used the fibre */
	uint32_t adopted : 1; /* the fibre is a kernel thread's */
#else
	const void *low;      /* lowest address of the stack */
	uint32_t size;        /* size of the stack in units of 16 bytes */
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

/* Where spaces are mapped at an address of our choice: the first address, and the end of the last.
 * ThreadSanitizer keeps most addresses for itself. */
#if defined(KBI_TSAN) && defined(__x86_64__)
#define KBI_SAN_MAP_FROM UINT64_C(0x1000000000)
#define KBI_SAN_MAP_TO UINT64_C(0x8000000000)
#else
#define KBI_SAN_MAP_FROM UINT64_C(0x200000000000)
#define KBI_SAN_MAP_TO UINT64_MAX
#endif

/* Returns true if `bytes` bytes may be mapped at `at`. */
static inline bool kbi_san_may_map(const void *at, size_t bytes)
{
	return (uintptr_t)at + bytes <= KBI_SAN_MAP_TO;
}

/* Returns true if valgrind runs the program and this build was made with valgrind's header. */
static inline bool kbi_san_is_valgrind(void)
{
#ifdef RUNNING_ON_VALGRIND
	return RUNNING_ON_VALGRIND;
#else
	return false;
#endif
}

/* Declares memory that is a stack from now on. */
static inline void kbi_san_stack(const void *low, const void *high)
{
	(void)low, (void)high; /* valgrind's macros do not use them on unknown machines */
#ifdef VALGRIND_STACK_REGISTER
	(void)VALGRIND_STACK_REGISTER(low, high);
#endif
}

/* Announces a switch to `to`; call right before the switch. *save keeps the state that
 * kbi_san_arrive needs. A NULL save: this context ends. Always in line: a function of its own would
 * begin on one fibre and end on the next. */
static inline __attribute__((always_inline)) void kbi_san_depart(void **save,
	const struct kbi_san *to)
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

/* Completes a switch. Call first in a context that runs (again). */
static inline void kbi_san_arrive(void *saved)
{
#if defined(KBI_ASAN)
	__sanitizer_finish_switch_fiber(saved, NULL, NULL);
#else
	(void)saved;
#endif
}

/* Notes the bounds of a stack. Without a sanitizer it writes nothing: a short thread does not touch
 * this line of its descriptor otherwise. */
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

/* Prepares a context that is to run for the first time. Making a fibre clears most of a megabyte,
 * so the fibre of the descriptor's last thread is used again, but not for ever: frames that never
 * return stay on its shadow stack. */
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

/* Declares memory that is in use although no pointer to it lies where LeakSanitizer searches. */
static inline void kbi_san_in_use(void *p)
{
#ifdef KBI_ASAN
	__lsan_ignore_object(p);
#else
	(void)p;
#endif
}

/* Registers the calling context, which runs on the stack of a kernel thread. */
static inline void kbi_san_adopt(struct kbi_san *s, const void *low, size_t size)
{
	kbi_san_note(s, low, size);
#ifdef KBI_TSAN
	s->fibre = __tsan_get_current_fiber();
	s->adopted = true;
#endif
}

/* Ends a context, which will not run again. */
static inline void kbi_san_end(struct kbi_san *s)
{
#if defined(KBI_ASAN)
	/* the last frames never returned: their marks must not outlive the context */
	__asan_unpoison_memory_region(s->low, (size_t)s->size * 16);
#else
	(void)s;
#endif
}

#endif
