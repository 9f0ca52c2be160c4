/* libc/context_priv.h - the registers of an interrupted context, on each machine.
 * Included by libc/context and libc/context_*. */
#ifndef KBI_CONTEXT_PRIV_H
#define KBI_CONTEXT_PRIV_H

#include <ucontext.h>

/* The kernel's result, the call's number, its first argument; the length of the call instruction;
 * whether the result overwrites the first argument. */
#if defined(__x86_64__)
enum { CALL_SIZE = 2, ANSWER_HIDES_FIRST = 0 };
#define ANSWER(uc) (uc)->uc_mcontext.gregs[REG_RAX]
#define NUMBER(uc) (uc)->uc_mcontext.gregs[REG_RAX]
#define FIRST(uc) (uc)->uc_mcontext.gregs[REG_RDI]
#define STACK(uc) (uc)->uc_mcontext.gregs[REG_RSP]
#define PLACE(uc) (uc)->uc_mcontext.gregs[REG_RIP]
/* general registers only */
#define REGISTERS(uc) (uc)->uc_mcontext.gregs
#define N_REGISTERS 16
#elif defined(__aarch64__)
enum { CALL_SIZE = 4, ANSWER_HIDES_FIRST = 1 };
#define ANSWER(uc) (uc)->uc_mcontext.regs[0]
#define NUMBER(uc) (uc)->uc_mcontext.regs[8]
#define FIRST(uc) (uc)->uc_mcontext.regs[0]
#define STACK(uc) (uc)->uc_mcontext.sp
#define PLACE(uc) (uc)->uc_mcontext.pc
#define REGISTERS(uc) (uc)->uc_mcontext.regs
#define N_REGISTERS 31
#elif defined(__riscv)
enum { CALL_SIZE = 4, ANSWER_HIDES_FIRST = 1 };
#define ANSWER(uc) (uc)->uc_mcontext.__gregs[REG_A0]
#define NUMBER(uc) (uc)->uc_mcontext.__gregs[REG_A0 + 7]
#define FIRST(uc) (uc)->uc_mcontext.__gregs[REG_A0]
#define STACK(uc) (uc)->uc_mcontext.__gregs[REG_SP]
#define PLACE(uc) (uc)->uc_mcontext.__gregs[REG_PC]
/* the first entry is the PC */
#define REGISTERS(uc) ((uc)->uc_mcontext.__gregs + 1)
#define N_REGISTERS 31
#endif

#endif
