/* core/spare.h - the life of a body: it is a VP until a thread that blocks has it give the VP away; then, when that
 * thread has gone on elsewhere, it waits as a spare until it is to be a VP again. Spares that wait for long end.
 * Callers: boot, body_thread, handoff. Calls agent. */
#ifndef KBI_SPARE_H
#define KBI_SPARE_H

#include "core/body.h"
#include "core/vp.h"

/* Room for the bodies of n VPs and the spares that the options allow. ENOMEM. Once, at start. */
int kbi_spare_setup(unsigned n);
/* A record for a new kernel thread, `fresh`: which is to be a spare; NULL: as many run as may. */
struct kbi_body *kbi_spare_record(bool fresh);
/* Its kernel thread could not be started, or ends. */
void kbi_spare_drop(struct kbi_body *b);
/* A waiting spare, now the caller's; NULL: there is none. */
struct kbi_body *kbi_spare_take(void);
/* By the thread on it: it will be another for good, serves no other thread afterwards, and is not of those that may run;
 * or, false: it is as it was. */
void kbi_spare_keep(struct kbi_body *b, bool kept);
/* Back where it was taken from. */
void kbi_spare_put(struct kbi_body *spare);
/* vp is the caller's, and the spare's from now on. */
void kbi_spare_give(struct kbi_body *spare, struct kbi_vp *vp);
/* On the body's own stack with its own TLS; returns when it may end. */
void kbi_spare_life(struct kbi_body *me);

/* Some are kept ready. Fewer wait or are on their way, and more may run. */
bool kbi_spare_is_low(void);
/* More may run than do. */
bool kbi_spare_may_be_made(void);
/* Those that wait, are on their way, or may still be made are not more than there are VPs. */
bool kbi_spare_is_scarce(void);
/* Then this is 1, and who sleeps at it (core/nursery) is woken. */
extern KBI_HIDDEN a32 kbi_spare_low;
void kbi_spare_tell(void);
/* In the child of fork: they are not there. */
void kbi_spare_after_fork(void);

struct kbi_spare_counts {
	unsigned bodies;      /* kernel threads that run */
	unsigned idle;        /* of them wait as spares */
	unsigned most;        /* bodies, at most at once */
	uint64_t given;       /* how often a spare became a VP */
};
struct kbi_spare_counts kbi_spare_counts(void);
/* A kernel thread that waits as a spare, for who wants to see one asleep; 0: there is none. */
int kbi_spare_idle_tid(void);

/* Called on a body that has just become vp's, NULL: nothing. The drop-in sets its signal mask. */
extern void (*kbi_spare_adopted)(struct kbi_vp *vp);

#endif
