/* space/member.h - this process among the attached processes. Two kernel threads serve it for
 * each space, with all signals blocked. The listener sleeps in the futex that wakers ring
 * when a VP that watches words sleeps. The watchman sleeps until another process dies, and
 * cleans up after that process.
 * Callers: space. */
#ifndef KBI_SPACE_MEMBER_H
#define KBI_SPACE_MEMBER_H

#include "space/layout.h"

/* Takes an entry in the table and starts the two threads. Returns 0; EUSERS: all entries
 * are taken; EAGAIN, EMFILE. */
int kbi_space_member_join(struct kb_space *s);
/* Ends the threads, closes the open ends of this process, gives the entry back. */
void kbi_space_member_leave(struct kb_space *s);
/* Closes the descriptors in a child of fork. */
void kbi_space_member_forked(struct kb_space *s);
/* As kbi_space_member_leave without ending the threads, for the end of the process. */
void kbi_space_member_exit(struct kb_space *s);

#endif
