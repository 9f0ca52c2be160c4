/* os/gate.h - a lock for two groups that exclude each other: any number of members of a single
 * group are inside at a time. A word of zero is an open gate. Any kernel thread may call; waits in
 * a futex.
 * Callers: os/fd, io/own. */
#ifndef KBI_GATE_H
#define KBI_GATE_H

#include "base/atom.h"
#include "base/base.h"

/* The groups; the word counts the members of both. */
enum { KBI_GATE_MAKERS = 1, KBI_GATE_CLOSERS = 0x8000 };
enum { KBI_GATE_FOR_EVER = 0 };

/* Waits while members of the other group are inside, for `ms` milliseconds at most. False: they
 * still are. With a limit the caller also waits behind a waiting member of the other group, so
 * that neither group keeps the other out by entering in turns; without (KBI_GATE_FOR_EVER) it
 * does not, and a member may enter once more. */
bool kbi_gate_enter(a32 *gate, uint32_t group, unsigned ms);
void kbi_gate_leave(a32 *gate, uint32_t group);

#endif
