/* os/tcb_priv.h - what the parts of os/tcb share: where things are in a block. All of it is found at setup
 * by looking at blocks that libc built; constant afterwards.
 * Order: tcb_donor, tcb_layout, tcb_template, tcb_reset, tcb. */
#ifndef KBI_TCB_PRIV_H
#define KBI_TCB_PRIV_H

#include "os/tcb.h"

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

/* Valgrind does not see that these bytes were written, on a stack it took for left. */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define KBI_TCB_WRITTEN(p, n) ((void)VALGRIND_MAKE_MEM_DEFINED(p, n))
#else
#define KBI_TCB_WRITTEN(p, n) ((void)0)
#endif

/* Bytes of a block, from the thread pointer. */
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
	ptrdiff_t tid;           /* the word mutexes take the owner from, from pthread_self() */
	ptrdiff_t keys_used;     /* byte: the thread has used pthread keys, from pthread_self(), or NONE */
	size_t align;            /* of the thread pointer */
	size_t above, below;     /* from the thread pointer to the slab's end; down to the saved frames */
	ptrdiff_t tls_from, tls_to; /* static TLS, from the thread pointer; equal: unknown */
	bool image;              /* static TLS is as the spans below say, and the dynamic thread vector as
				    tcb_reset.c takes it to be */
	struct kbi_tcb_spans copy;    /* plain modules' TLS: set back at reset */
	struct kbi_tcb_spans compare; /* room for modules that dlopen may put there */
	struct kbi_tcb_span watch; /* where a module's TLS must reach that is the first to get some of that room;
				      size 0: cannot tell */
	struct kbi_tcb_spans keep;    /* libc's, the loader's, a sanitizer's: never set back */
	/* the program's own TLS where a sanitizer is linked into it: it starts anew from the file's image, while
	 * a sentinel's copy of it is the sentinel's. size 0: an ordinary program, in `copy` */
	struct kbi_tcb_span program;
	const char *program_image;
	size_t program_in_file;
	uint64_t born_keys[(PTHREAD_KEYS_MAX + 63) / 64]; /* pthread keys that a new thread has: a sanitizer's */
};
extern KBI_HIDDEN struct kbi_tcb_layout kbi_tcb_layout;

/* Two blocks that no thread ever runs on, made one right after the other. [1], the younger, is the image
 * that resets and templates copy from: libc's loader keeps it up to date as it does with any thread. */
struct kbi_tcb_sentinel {
	struct kbi_tcb tcb;
	uint32_t tid; /* of the kernel thread that built it */
};
extern KBI_HIDDEN struct kbi_tcb_sentinel kbi_tcb_sentinel[2];

/* tcb_donor: slab_low, slab_size and id are set in t. The start routine's argument is t. */
int kbi_tcb_donor_make(struct kbi_tcb *t);
int kbi_tcb_donor_end(struct kbi_tcb *t);
/* Called on each new donor's own thread while it is set; setup only. */
extern KBI_HIDDEN void (*kbi_tcb_donor_look)(struct kbi_tcb *t);

/* tcb_layout: 0, or ENOTSUP with *why set, EAGAIN, ENOMEM. */
int kbi_tcb_layout_find(void *self_tls, const char **why);
/* New sentinels: after a fork, or because another thread came between. 0, EAGAIN, ENOMEM. */
int kbi_tcb_layout_renew(void);
/* Are the kernel threads that we make made by AddressSanitizer's wrapper? */
bool kbi_tcb_made_through_asan(void);
/* Is this object's TLS libc's, the loader's or that sanitizer's? */
struct dl_phdr_info;
bool kbi_tcb_layout_foreign(const struct dl_phdr_info *object);

/* tcb_template: true if copies of the sentinel can be trusted; else *why. Again after new sentinels. */
bool kbi_tcb_template_learn(const char **why);
int kbi_tcb_template_make(struct kbi_tcb *t);
bool kbi_tcb_template_can_end(void);
/* The block will leave libc's list by libc's own hand: counts it as one of libc's threads. */
void kbi_tcb_template_part(struct kbi_tcb *t);
/* Undoes part. */
void kbi_tcb_template_rejoin(struct kbi_tcb *t);

/* tcb_reset: finds the functions of libc that a thread's end needs. False: they are not there, *why. */
bool kbi_tcb_reset_find(const char **why);
/* At setup, after the template has been learnt; and with later sentinels, which may have modules there. */
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
