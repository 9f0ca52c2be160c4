/* os/signal_frame.h - moves the frame of a signal handler from the stack where the kernel has put
 * it to another stack. The handler continues as if the kernel had called it there, and returns from
 * there. So the stack on which the kernel takes signals belongs to a kernel thread and is free
 * again at once; the frame belongs to the interrupted thread.
 * Callers: posix/signal_stack and posix/signal_action, core/preempt; in handlers. x86-64 and
 * aarch64; on other machines frames do not move. */
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

/* Returns true if frames can be moved on this machine. */
bool kbi_signal_frame_moves(void);
/* Returns where the frame begins, for a handler that the kernel has called with these arguments. */
uintptr_t kbi_signal_frame_low(const siginfo_t *info, const void *context);
/* Returns the interrupted stack pointer. */
uintptr_t kbi_signal_frame_interrupted(const void *context);
/* Continues as fn on the stack below `top`. Returns only if the frame would reach below `low`.
 * Signals are blocked. The contents of the old stack are dead afterwards. */
void kbi_signal_frame_move(siginfo_t *info, void *context, uintptr_t low, uintptr_t top,
	kbi_signal_frame_handler *fn);

#endif
