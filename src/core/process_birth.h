/* core/process_birth.h - children of the program where virtual processors are processes, made
 * elsewhere than in libc's own call: children whose caller waits until they have executed a
 * program; and all children if the calling process has a seccomp filter that no child may have
 * (kbi_intercept_stays). The supervisor makes the latter.
 * Callers: process. */
#ifndef KBI_PROCESS_BIRTH_H
#define KBI_PROCESS_BIRTH_H

#include "base/base.h"

/* Directs such calls here; before other processes run. sigchld NULL: the callers make the children;
 * else the supervisor makes them, and sigchld() returns the program's action for SIGCHLD in the
 * kernel's form. The supervisor calls it, because its own action is a different action. */
void kbi_process_birth_setup(const uint64_t *(*sigchld)(void));

#endif
