/* os/gate.h - two groups that keep each other out: any number of members of either are inside at a time. A word of
 * zero is an open gate. Any kernel thread; waits in a futex. Callers: fd, io/own. */
#ifndef KBI_GATE_H
#define KBI_GATE_H

#include "base/atom.h"
#include "base/base.h"

/* The groups; a word counts both. */
enum { KBI_GATE_MAKERS = 1, KBI_GATE_CLOSERS = 0x8000 };
enum { KBI_GATE_FOR_EVER = 0 };

/* Waits while members of the other group are inside, for so many milliseconds at most. False: they still are. */
bool kbi_gate_enter(a32 *gate, uint32_t group, unsigned ms);
void kbi_gate_leave(a32 *gate, uint32_t group);

#endif
