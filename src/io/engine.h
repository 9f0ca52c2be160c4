/* io/engine.h - the single epoll instance that the agents ask. It is made when a thread
 * waits for the first time. Its descriptors have high numbers; if the program closes
 * them, they are made anew.
 * Callers: ready, own, hold, talk, async, completion. Calls slot, core. Never switches. */
#ifndef KBI_ENGINE_H
#define KBI_ENGINE_H

#include <sys/epoll.h>

#include "io/slot.h"

struct kbi_vp;

/* Called for each event, inside np brackets, on VP me: wakes the threads
 * that the event concerns. */
typedef void kbi_engine_found(struct kbi_vp *me, int fd, uint32_t events);
/* Called at times to check that fd is still armed while threads wait for it. lost: it is not. */
typedef void kbi_engine_again(struct kbi_vp *me, int fd, bool lost);

/* Starts the engine. Idempotent, any thread. Returns 0, or why there is none: ENOSYS, EPERM,
 * EMFILE, ENFILE, ENOMEM. */
int kbi_engine_start(kbi_engine_found *found, kbi_engine_again *again);
/* Arms the number for one event of the mask, which is reported at once if there already is one.
 * Under the slot's lock. Returns 0, EPERM (not a kind of file that can be waited for), EBADF,
 * ELOOP, ENOMEM or ENOSPC. */
int kbi_engine_arm(struct kbi_slot *s, int fd, uint32_t mask);
/* Arms the number for all input from now on, until it is armed by kbi_engine_arm. EPOLLPRI is
 * reported, too. Errors as above. */
int kbi_engine_arm_to_stay(struct kbi_slot *s, int fd);
/* Returns 0 if an armed number is still armed. Under the slot's lock. */
int kbi_engine_check(const struct kbi_slot *s, int fd, uint32_t mask);
/* Ends the staying of a number. Under the slot's lock. */
void kbi_engine_disarm(struct kbi_slot *s, int fd);
/* Counts an event of a number that the engine does not know any more. */
void kbi_engine_stray(void);
/* Joins a descriptor that is readable when `look` has work: look is called then, and at each poll
 * of any VP. The process has a single such descriptor, for ever. Returns an errno value. */
int kbi_engine_join(int fd, void (*look)(struct kbi_vp *me));
/* Sets a function that is called at each poll of any VP: kbi_source.polled
 * threads wait for its events. */
void kbi_engine_poll_also(void (*look)(struct kbi_vp *me));
/* Returns whether fd is the engine's own descriptor. Code that closes descriptors for
 * the program leaves it open. */
bool kbi_engine_owns(int fd);
/* Returns the highest of the engine's descriptors, -1: none. */
int kbi_engine_highest(void);
/* 1: the process is the child of a fork, which has no VPs. */
extern KBI_HIDDEN a32 kbi_engine_is_forked;
static inline bool kbi_engine_forked(void)
{
	return kbi_unlikely(a_load_rlx(&kbi_engine_is_forked));
}

#endif
