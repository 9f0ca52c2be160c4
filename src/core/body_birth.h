/* core/body_birth.h - children of the program where virtual processors are processes: those whose caller waits until they
 * have executed something, and, where the calling process has what no child must have (os/libway: one that stays), all of
 * them, made by the supervisor. Callers: body_process. */
#ifndef KBI_BODY_BIRTH_H
#define KBI_BODY_BIRTH_H

#include "base/base.h"

/* Before other processes run. sigchld NULL: callers make them; or the supervisor does, and sigchld() is what the program
 * wants done about SIGCHLD, as the kernel has actions; asked by the supervisor, whose own action is another one. */
void kbi_body_birth_setup(const uint64_t *(*sigchld)(void));

#endif
