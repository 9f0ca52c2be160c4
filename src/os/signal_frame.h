/* os/signal_frame.h - the frame of a signal handler, which the kernel has laid on one stack, is moved to another: the
 * handler goes on there as if the kernel had called it there, and returns from there. So the stack on which the kernel
 * takes signals is a kernel thread's, and is free again at once; the frame belongs to the thread that was interrupted.
 * Callers: posix/signal_stack, in handlers. x86-64 and aarch64; elsewhere nothing moves. */
#ifndef KBI_SIGNAL_FRAME_H
#define KBI_SIGNAL_FRAME_H

#include <signal.h>

#include "base/base.h"

typedef void kbi_signal_frame_handler(int sig, siginfo_t *info, void *context);

/* Bytes below the stack pointer that the interrupted code may use. */
enum { KBI_SIGNAL_FRAME_RED = 128 };

/* The kernel refuses smaller alternate stacks. */
#if defined(__aarch64__)
enum { KBI_SIGNAL_FRAME_LEAST = 5120 };
#else
enum { KBI_SIGNAL_FRAME_LEAST = 2048 };
#endif

/* Frames move on this machine. */
bool kbi_signal_frame_moves(void);
/* Where the frame begins; of a handler that the kernel has called with these. */
uintptr_t kbi_signal_frame_low(const siginfo_t *info, const void *context);
/* The stack pointer that was interrupted. */
uintptr_t kbi_signal_frame_interrupted(const void *context);
/* Goes on as fn on the stack below `top`, and returns only if the frame would reach below `low`. Signals are blocked. What
 * lies on the stack that is left counts no more. */
void kbi_signal_frame_move(siginfo_t *info, void *context, uintptr_t low, uintptr_t top, kbi_signal_frame_handler *fn);

#endif
