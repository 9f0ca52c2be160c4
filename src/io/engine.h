/* io/engine.h - the one epoll instance that the agents ask. It is made when a thread waits for the first time. Its
 * descriptors have high numbers; if the program closes them they are made anew. Callers: ready. Calls slot, core. */
#ifndef KBI_ENGINE_H
#define KBI_ENGINE_H

#include <sys/epoll.h>

#include "io/slot.h"

struct kbi_vp;

/* Called for each event, inside np brackets, on VP me: whom it concerns. */
typedef void kbi_engine_found(struct kbi_vp *me, int fd, uint32_t events);
/* Called now and then: is what waits for fd still armed? lost: it is not. */
typedef void kbi_engine_again(struct kbi_vp *me, int fd, bool lost);

/* Idempotent, any thread. 0, or why there is none: ENOSYS, EPERM, EMFILE, ENFILE, ENOMEM. */
int kbi_engine_start(kbi_engine_found *found, kbi_engine_again *again);
/* Under the slot's lock: one event of the mask will be found, at once if there is one already. 0, EPERM (not a kind of
 * file that can be waited for), EBADF, ELOOP, ENOMEM, ENOSPC. */
int kbi_engine_arm(struct kbi_slot *s, int fd, uint32_t mask);
/* The same for input, and from then on: each time that something comes in, until it is armed in the other way. EPOLLPRI
 * is told, too. */
int kbi_engine_arm_to_stay(struct kbi_slot *s, int fd);
/* Under the slot's lock, for what is armed: 0 if it is still. */
int kbi_engine_check(const struct kbi_slot *s, int fd, uint32_t mask);
/* Under the slot's lock: what stays there does not any more. */
void kbi_engine_disarm(struct kbi_slot *s, int fd);
/* It told of a number that it knows nothing of. */
void kbi_engine_stray(void);
/* A descriptor that tells when `look` has something to do: it is asked then, and at each look of anybody. One for the
 * process, for ever. Errno value. */
int kbi_engine_join(int fd, void (*look)(struct kbi_vp *me));
/* Is asked at each look of anybody: kbi_source.polled threads wait for what it knows. */
void kbi_engine_poll_also(void (*look)(struct kbi_vp *me));
/* The engine's own descriptor? Who closes descriptors for the program leaves it open. */
bool kbi_engine_owns(int fd);
/* Of those the highest; -1: there is none. */
int kbi_engine_highest(void);
/* The process is the child of a fork, which has no VPs. */
extern KBI_HIDDEN a32 kbi_engine_is_forked;
static inline bool kbi_engine_forked(void)
{
	return kbi_unlikely(a_load_rlx(&kbi_engine_is_forked));
}

#endif
