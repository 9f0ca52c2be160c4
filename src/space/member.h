/* space/member.h - this process among those that are attached. Two kernel threads serve it per space, all signals
 * blocked: the listener sleeps in the futex that wakers ring when a VP sleeps that watches words; the watchman sleeps
 * until another process dies, and cleans up after it. Callers: space. */
#ifndef KBI_SPACE_MEMBER_H
#define KBI_SPACE_MEMBER_H

#include "space/layout.h"

/* An entry in the table, and the two threads. EUSERS: all entries are taken; EAGAIN, EMFILE. */
int kbi_space_member_join(struct kb_space *s);
/* Ends the threads, closes what this process has open, gives the entry back. */
void kbi_space_member_leave(struct kb_space *s);
/* In a child of fork: its descriptors are closed. */
void kbi_space_member_forked(struct kb_space *s);
/* The same without ending the threads, for the end of the process. */
void kbi_space_member_exit(struct kb_space *s);

#endif
