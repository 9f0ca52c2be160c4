/* posix/uring_owner.h - rings of io_uring that only the kernel thread may use which has made them,
 * and ring numbers that only that kernel thread knows: a lightweight thread that asks for either
 * keeps its kernel thread (posix/bind).
 * Callers: posix/identity, for system calls by syscall(); programs, by liburing's names. */
#ifndef KBI_URING_OWNER_H
#define KBI_URING_OWNER_H

#include "base/base.h"

/* Call before io_uring_setup with these flags. */
void kbi_uring_owner_sets_up(uint32_t flags);
/* Call before io_uring_register with that operation. */
void kbi_uring_owner_registers(uint32_t operation);

#endif
