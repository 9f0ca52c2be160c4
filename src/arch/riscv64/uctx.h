/* arch/riscv64/uctx.h - libc's getcontext family is used unchanged.
 * Callers: posix/ucontext. */
#ifndef KBI_ARCH_UCTX_H
#define KBI_ARCH_UCTX_H

#define KBI_HAVE_UCONTEXT 0

#endif
