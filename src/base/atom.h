/* base/atom.h - shared words. Each word has a type of its own, so that a bare assignment does not
 * compile. The name of every operation carries its memory order:
 *   rlx relaxed, acq acquire, rel release, acqrel both; a_fence_* is the full (StoreLoad) fence.
 * Callers: all units. Each use that is not relaxed names its partner at the place of use. */
#ifndef KBI_ATOM_H
#define KBI_ATOM_H

#include "base/base.h"

typedef struct { uint8_t v_; } a8;
typedef struct { uint16_t v_; } a16;
typedef struct { uint32_t v_; } a32;
typedef struct { uint64_t v_; } a64;
typedef struct { void *v_; } aptr;

#define a_load_rlx(a) __atomic_load_n(&(a)->v_, __ATOMIC_RELAXED)
#define a_load_acq(a) __atomic_load_n(&(a)->v_, __ATOMIC_ACQUIRE)
#define a_store_rlx(a, v) __atomic_store_n(&(a)->v_, (v), __ATOMIC_RELAXED)
#define a_store_rel(a, v) __atomic_store_n(&(a)->v_, (v), __ATOMIC_RELEASE)
#define a_xchg_rlx(a, v) __atomic_exchange_n(&(a)->v_, (v), __ATOMIC_RELAXED)
#define a_xchg_acq(a, v) __atomic_exchange_n(&(a)->v_, (v), __ATOMIC_ACQUIRE)
#define a_xchg_rel(a, v) __atomic_exchange_n(&(a)->v_, (v), __ATOMIC_RELEASE)
#define a_xchg_acqrel(a, v) __atomic_exchange_n(&(a)->v_, (v), __ATOMIC_ACQ_REL)
/* Return true if *a was *old and is v now. Return false, and store the value of *a in *old, if it
 * was not. */
#define a_cas_rlx(a, old, v) \
	__atomic_compare_exchange_n(&(a)->v_, (old), (v), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define a_cas_acq(a, old, v) \
	__atomic_compare_exchange_n(&(a)->v_, (old), (v), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
#define a_cas_rel(a, old, v) \
	__atomic_compare_exchange_n(&(a)->v_, (old), (v), false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#define a_cas_acqrel(a, old, v) \
	__atomic_compare_exchange_n(&(a)->v_, (old), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
/* These operations return the value before the change. */
#define a_add_rlx(a, v) __atomic_fetch_add(&(a)->v_, (v), __ATOMIC_RELAXED)
#define a_add_acqrel(a, v) __atomic_fetch_add(&(a)->v_, (v), __ATOMIC_ACQ_REL)
#define a_sub_rlx(a, v) __atomic_fetch_sub(&(a)->v_, (v), __ATOMIC_RELAXED)
#define a_sub_acqrel(a, v) __atomic_fetch_sub(&(a)->v_, (v), __ATOMIC_ACQ_REL)
#define a_or_rlx(a, v) __atomic_fetch_or(&(a)->v_, (v), __ATOMIC_RELAXED)
#define a_or_acqrel(a, v) __atomic_fetch_or(&(a)->v_, (v), __ATOMIC_ACQ_REL)
#define a_and_rlx(a, v) __atomic_fetch_and(&(a)->v_, (v), __ATOMIC_RELAXED)
#define a_and_acqrel(a, v) __atomic_fetch_and(&(a)->v_, (v), __ATOMIC_ACQ_REL)

/* Increments a counter that a single thread writes, with plain instructions. Signal handlers of
 * that thread and further threads may read the counter. */
static inline void a_own_inc(a32 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("incl %0" : "+m"(a->v_)::"cc");
#else
	a_store_rlx(a, a_load_rlx(a) + 1);
#endif
}

/* Decrements a counter as a_own_inc increments it. Returns true if the counter is now 0. */
static inline bool a_own_dec(a32 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool zero;

	__asm__ volatile("decl %0" : "+m"(a->v_), "=@ccz"(zero));
	return zero;
#else
	uint32_t v = a_load_rlx(a) - 1;

	a_store_rlx(a, v);
	return v == 0;
#endif
}

/* Increments a count of 16 bits in this way. */
static inline void a_own_inc16(a16 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("incw %0" : "+m"(a->v_)::"cc");
#else
	a_store_rlx(a, (uint16_t)(a_load_rlx(a) + 1));
#endif
}

static inline void a_own_dec16(a16 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("decw %0" : "+m"(a->v_)::"cc");
#else
	a_store_rlx(a, (uint16_t)(a_load_rlx(a) - 1));
#endif
}

/* Returns a_load_rlx(a) == 0. Saves an instruction: compilers do not compare an atomic in
 * memory. */
static inline bool a_zero8_rlx(const a8 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool zero;

	__asm__ volatile("cmpb $0, %1" : "=@ccz"(zero) : "m"(a->v_));
	return zero;
#else
	return a_load_rlx(a) == 0;
#endif
}

/* Returns (a_load_rlx(a) & mask) != 0, in the same way. mask is a constant where this function is
 * in line. */
static inline bool a_any8_rlx(const a8 *a, uint8_t mask)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool any;

	__asm__ volatile("testb %2, %1" : "=@ccnz"(any) : "m"(a->v_), "qi"(mask));
	return any;
#else
	return a_load_rlx(a) & mask;
#endif
}

/* Returns (a_load_rlx(a) & mask) != 0 for 16 bits. */
static inline bool a_any16_rlx(const a16 *a, uint16_t mask)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool any;

	__asm__ volatile("testw %2, %1" : "=@ccnz"(any) : "m"(a->v_), "ri"(mask));
	return any;
#else
	return a_load_rlx(a) & mask;
#endif
}

static inline bool a_zero32_rlx(const a32 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool zero;

	__asm__ volatile("cmpl $0, %1" : "=@ccz"(zero) : "m"(a->v_));
	return zero;
#else
	return a_load_rlx(a) == 0;
#endif
}

/* Returns a_load_rlx(a) == p, in the same way. */
static inline bool a_is_rlx(const aptr *a, const void *p)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool same;

	__asm__ volatile("cmpq %2, %1" : "=@ccz"(same) : "m"(a->v_), "r"(p));
	return same;
#else
	return a_load_rlx(a) == p;
#endif
}

static inline bool a_zero64_rlx(const a64 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool zero;

	__asm__ volatile("cmpq $0, %1" : "=@ccz"(zero) : "m"(a->v_));
	return zero;
#else
	return a_load_rlx(a) == 0;
#endif
}

/* Returns a_load_acq(a) == 0. On x86-64 each load is an acquire; the clobber tells the compiler.
 * Each caller names the partner. */
static inline bool a_zero32_acq(const a32 *a)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool zero;

	__asm__ volatile("cmpl $0, %1" : "=@ccz"(zero) : "m"(a->v_) : "memory");
	return zero;
#else
	return a_load_acq(a) == 0;
#endif
}

/* Full fence: no later load passes an earlier store. On x86-64 a locked RMW on the own stack is the
 * cheapest full fence (half the cost of mfence). ThreadSanitizer knows only the RMW form. */
static inline void a_fence_sc(void)
{
#if defined(__SANITIZE_THREAD__)
	a32 own = { 0 };

	__atomic_fetch_add(&own.v_, 1, __ATOMIC_SEQ_CST);
#elif defined(__x86_64__)
	__asm__ volatile("lock; orl $0, -8(%%rsp)" ::: "memory", "cc");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Full fence right after a read-modify-write operation, which is already a full fence on x86-64. */
static inline void a_fence_after_rmw(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	kbi_compiler_barrier();
#else
	a_fence_sc();
#endif
}

#endif
