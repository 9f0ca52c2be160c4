/* core/body_birth.h - children of the program that the supervisor makes for the thread which asks, because the process that
 * this runs in has what they must not have (os/libway: one that stays). Callers: body_process. */
#ifndef KBI_BODY_BIRTH_H
#define KBI_BODY_BIRTH_H

#include "base/base.h"

/* Before other processes run. sigchld(): what the program wants done about SIGCHLD, as the kernel has actions; asked by the
 * supervisor, whose own action is another one. */
void kbi_body_birth_setup(const uint64_t *(*sigchld)(void));

#endif
