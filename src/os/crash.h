/* os/crash.h - where a thread crashed, and what it may hold of libc's there.
 * Callers: core/contain. Runs in signal handlers, but for learn. */
#ifndef KBI_CRASH_H
#define KBI_CRASH_H

#include "base/base.h"

/* Once, before handlers run: where libc's functions lie. */
void kbi_crash_learn(void);
/* Return addresses from the interrupted instruction on, innermost first; how many. *guard is set meanwhile: a fault in
 * here, for the stack may be destroyed, is ended by kbi_crash_give_up(*guard). */
unsigned kbi_crash_frames(const void *context, void **frame, unsigned most, void **guard);
KBI_NORETURN void kbi_crash_give_up(void *guard);
/* A thread with these frames can be left for ever: it is not in libc or the loader; or, if `fault` (it stands there because
 * it faulted, or called abort), in a function of libc's that holds no lock there but a stream's. */
bool kbi_crash_may_leave(void *const *frame, unsigned n, bool fault);
/* The locks of libc's streams that the owner of this TLS block holds are free again. Not in a handler. */
void kbi_crash_free_streams(void *tp);

#endif
