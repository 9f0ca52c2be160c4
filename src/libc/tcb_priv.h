/* libc/tcb_priv.h - shared by the parts of libc/tcb: where the parts of a block lie. All offsets
 * are found at setup by looking at blocks that libc has built, and are constant afterwards.
 * Order of the parts: tcb_donor, tcb_layout, tcb_template, tcb_reset, tcb. */
#ifndef KBI_TCB_PRIV_H
#define KBI_TCB_PRIV_H

#include "libc/tcb.h"

#include <limits.h>

#if defined(__GLIBC__)
#define KBI_TCB_GLIBC 1
#else
#define KBI_TCB_GLIBC 0
#endif
#if defined(__x86_64__)
#define KBI_TCB_TLS_BELOW 1 /* static TLS lies below the thread pointer */
#else
#define KBI_TCB_TLS_BELOW 0
#endif

/* The word that points to the dynamic thread vector, from the thread pointer (psABI; glibc). */
#if defined(__x86_64__)
#define KBI_TCB_DTV 8
#elif defined(__riscv)
#define KBI_TCB_DTV (-16)
#else
#define KBI_TCB_DTV 0
#endif

/* Marks bytes as written for Valgrind, which does not see that on a stack it takes for
 * abandoned. */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define KBI_TCB_WRITTEN(p, n) ((void)VALGRIND_MAKE_MEM_DEFINED(p, n))
#else
#define KBI_TCB_WRITTEN(p, n) ((void)0)
#endif

/* A range of bytes of a block, from the thread pointer. */
struct kbi_tcb_span {
	ptrdiff_t from;
	size_t size;
};

enum { KBI_TCB_SPANS = 96, KBI_TCB_WATCH_MAX = 512, KBI_TCB_NONE = -1 };

struct kbi_tcb_spans {
	unsigned n;
	struct kbi_tcb_span at[KBI_TCB_SPANS];
};

struct kbi_tcb_layout {
	ptrdiff_t self;          /* the variable that holds `self`, from the thread pointer */
	ptrdiff_t tid;           /* the word from which mutexes take the owner, from pthread_self() */
	/* a byte: the thread has used pthread keys; from pthread_self(), or NONE */
	ptrdiff_t keys_used;
	size_t align;            /* of the thread pointer */
	/* from the thread pointer: up to the slab's end; down to the saved frames */
	size_t above, below;
	ptrdiff_t tls_from, tls_to; /* static TLS, from the thread pointer; equal: not known */
	/* static TLS is as the spans below say, and the dynamic thread vector as tcb_reset.c expects */
	bool image;
	struct kbi_tcb_spans copy;    /* TLS of plain modules: set back at reset */
	struct kbi_tcb_spans compare; /* room for modules that dlopen may put there */
	/* bytes that the first module to get some of that room must reach; size 0: not known */
	struct kbi_tcb_span watch;
	struct kbi_tcb_spans keep;    /* TLS of libc, the loader, a sanitizer: never set back */
	/* the program's own TLS if a sanitizer is linked into the program: reset copies it from the
	 * file's image, because a sentinel's copy belongs to the sentinel. size 0: an ordinary program,
	 * in `copy` */
	struct kbi_tcb_span program;
	const char *program_image;
	size_t program_in_file;
	/* pthread keys with a value in a new thread: a sanitizer's */
	uint64_t born_keys[(PTHREAD_KEYS_MAX + 63) / 64];
};
extern KBI_HIDDEN struct kbi_tcb_layout kbi_tcb_layout;

/* A sentinel: a block on which no thread ever runs. Two are made, right after each other. The
 * younger, [1], is the image that resets and templates copy from: libc's loader keeps it up to date
 * as any thread's block. */
struct kbi_tcb_sentinel {
	struct kbi_tcb tcb;
	uint32_t tid; /* of the kernel thread that built it */
};
extern KBI_HIDDEN struct kbi_tcb_sentinel kbi_tcb_sentinel[2];

/* tcb_donor. Make: slab_low, slab_size and id are set in t; returns 0, EAGAIN, ENOMEM, EINVAL. End:
 * 0 or EAGAIN. The start routine's argument is t. */
int kbi_tcb_donor_make(struct kbi_tcb *t);
int kbi_tcb_donor_end(struct kbi_tcb *t);
/* Called on each new donor's own thread while not NULL; setup only. */
extern KBI_HIDDEN void (*kbi_tcb_donor_look)(struct kbi_tcb *t);

/* tcb_layout: finds the layout. Returns 0, or ENOTSUP with *why set, EAGAIN, ENOMEM. */
int kbi_tcb_layout_find(void *self_tls, const char **why);
/* Makes new sentinels: after a fork, or because another thread was created between them. Returns 0,
 * EAGAIN, ENOMEM. */
int kbi_tcb_layout_renew(void);
/* Returns true if AddressSanitizer's wrapper makes the kernel threads that we create. */
bool kbi_tcb_made_through_asan(void);
/* Returns true if this object's TLS belongs to libc, the loader, our allocator or that
 * sanitizer. */
struct dl_phdr_info;
bool kbi_tcb_layout_foreign(const struct dl_phdr_info *object);

/* tcb_template: returns true if copies of the sentinel can be trusted; else sets *why. Called again
 * after new sentinels. */
bool kbi_tcb_template_learn(const char **why);
int kbi_tcb_template_make(struct kbi_tcb *t);
bool kbi_tcb_template_can_end(void);
/* Counts the block as one more thread of libc's and takes it off our part of the list: libc itself
 * will end it. */
void kbi_tcb_template_part(struct kbi_tcb *t);
/* Undoes part. */
void kbi_tcb_template_rejoin(struct kbi_tcb *t);

/* tcb_reset: finds the functions of libc that a thread's end needs. Returns false if they are
 * missing, with *why. */
bool kbi_tcb_reset_find(const char **why);
/* Watch: at setup, after the template has been learnt. Look_always: after later sentinels, which
 * may contain late modules. */
void kbi_tcb_reset_watch(void);
void kbi_tcb_reset_look_always(void);
void kbi_tcb_reset_values(struct kbi_tcb *t);

static inline uint32_t *kbi_tcb_tid_word(const struct kbi_tcb *t)
{
	return (uint32_t *)(t->pthread + (uintptr_t)kbi_tcb_layout.tid);
}

static inline void **kbi_tcb_self_word(const struct kbi_tcb *t)
{
	return (void **)((char *)t->tp + kbi_tcb_layout.self);
}

#endif
