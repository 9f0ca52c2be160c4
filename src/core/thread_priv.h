/* core/thread_priv.h - what `join` of a thread holds beside a joiner: thread.c says what it means. */
#ifndef KBI_THREAD_PRIV_H
#define KBI_THREAD_PRIV_H

/* odd: it has ended by itself */
#define KBI_JOIN_ENDED ((void *)1)
#define KBI_JOIN_DETACHED ((void *)2)
#define KBI_JOIN_GIVEN ((void *)3)
#define KBI_JOIN_LOST ((void *)4) /* by a crash */

#endif
