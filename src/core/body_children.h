/* core/body_children.h - the program's children where virtual processors are processes: all are the supervisor's, so
 * that any thread may wait for them wherever it runs. Callers: body_process. */
#ifndef KBI_BODY_CHILDREN_H
#define KBI_BODY_CHILDREN_H

#include "base/base.h"

/* Before other processes run: libc's wait calls come here from now on. ours: is it a process of the runtime's? */
void kbi_children_setup(int supervisor, bool (*ours)(int pid));
/* The supervisor: answers who asks, and has told who waits that a child has changed. */
void kbi_children_answer(void);
void kbi_children_changed(void);

#endif
