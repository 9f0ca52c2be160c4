/* kochab/sync.h - synchronisation between lightweight threads (and foreign kernel threads).
 * All objects may be statically initialised with their _INIT or by zeroing; none allocates memory
 * except channels. Wait queues are first in, first out. Included by kochab/kochab.h. */
#ifndef KOCHAB_SYNC_H
#define KOCHAB_SYNC_H

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- event: the notification area -------------------------------------------------------------
 * Belongs to one thread, which alone waits on it; any thread notifies. A notification carries an 8-byte
 * message and is kept until it is taken. It is a bell, not a queue: notifications that have not been taken
 * may become one, which carries the message of one of them (the last, if all come from the owner's virtual
 * processor; otherwise they may overtake each other). So messages are exact while one is under way at a
 * time; for more use a channel. After a notification the owner's next wait returns and sees what the
 * notifier did.
 * Memory: a notification may still be under way when kb_event_notify has returned, and is delivered to this
 * address. So the memory must stay an event until each notification has been taken by itself, or, where several
 * may have become one, for the owner's life. It may be initialised again meanwhile; the new event may then get the
 * old one's notification. */
typedef struct kb_event {
	void *owner;
	uint64_t value;
	uint32_t unused;
	uint32_t far;
	uint64_t far_value;
} __attribute__((aligned(64))) kb_event_t;

/* owner: the thread that will wait; NULL: the caller. */
KB_API int kb_event_init(kb_event_t *ev, kb_thread_t owner);
/* Never suspends; async-signal-unsafe. */
KB_API void kb_event_notify(kb_event_t *ev, uint64_t value);
/* Waits for a notification, takes it and its message (value may be NULL). May suspend.
 * EPERM: the caller is not the owner. timed: ETIMEDOUT. try: EAGAIN. */
KB_API int kb_event_wait(kb_event_t *ev, uint64_t *value);
KB_API int kb_event_timedwait(kb_event_t *ev, uint64_t *value, uint64_t deadline);
KB_API int kb_event_try(kb_event_t *ev, uint64_t *value);

/* ---- mutex ----------------------------------------------------------------------------------- */
/* ROBUST, or-ed to one of the others: when its holder is lost (kb_on_crash) who locks it next gets EOWNERDEAD, and holds
 * it. Unless he says kb_mutex_consistent before he unlocks it, all others get ENOTRECOVERABLE. NORMAL is as ERRORCHECK
 * then. A wait for a condition may say the two, too. */
enum kb_mutex_kind { KB_MUTEX_NORMAL = 0, KB_MUTEX_RECURSIVE = 1, KB_MUTEX_ERRORCHECK = 2, KB_MUTEX_ROBUST = 16 };

/* The layout fits glibc's pthread_mutex_t (kind at byte 16 on 64-bit machines). */
typedef struct kb_mutex {
	uint32_t word;
	uint32_t count;
	uint32_t owner;
	uint32_t waits; /* threads that wait for a condition and have it given up for that; under the mutex */
	int32_t kind;
	uint32_t left; /* ROBUST: its holder was lost; under the mutex */
	void *head;
	void *tail;
} kb_mutex_t;
#define KB_MUTEX_INIT { 0, 0, 0, 0, KB_MUTEX_NORMAL, 0, 0, 0 }

KB_API int kb_mutex_init(kb_mutex_t *m, enum kb_mutex_kind kind);
/* EBUSY: it is locked, or threads wait for a condition with it. */
KB_API int kb_mutex_destroy(kb_mutex_t *m);
/* May suspend. ERRORCHECK: EDEADLK if the caller holds it. RECURSIVE: EAGAIN if the count overflows.
 * Fairness: a running thread may take a free mutex before those that sleep for it, but not without end: one
 * that has been woken and has lost the race 16 times, or for 1 ms, is handed the mutex by the next unlock. */
KB_API int kb_mutex_lock(kb_mutex_t *m);
/* EBUSY. Never suspends. */
KB_API int kb_mutex_trylock(kb_mutex_t *m);
/* May suspend. ETIMEDOUT. */
KB_API int kb_mutex_timedlock(kb_mutex_t *m, uint64_t deadline);
/* EPERM: ERRORCHECK or RECURSIVE and not the owner; NORMAL and not locked. Never suspends. Touches nothing of
 * the mutex once another thread may have it: that thread may free it. */
KB_API int kb_mutex_unlock(kb_mutex_t *m);

/* What it protects is whole again. EINVAL: the caller has not got EOWNERDEAD for it. */
KB_API int kb_mutex_consistent(kb_mutex_t *m);

/* ---- condition variable (spurious returns are possible, as in POSIX) ---------------------------- */
typedef struct kb_cond {
	uint32_t word;
	uint32_t clock;
	void *head;
	void *tail;
	uint32_t reserved[2];
} kb_cond_t;
#define KB_COND_INIT { 0, 0, 0, 0, { 0, 0 } }

KB_API int kb_cond_init(kb_cond_t *c);
/* EBUSY: threads wait on it. Allowed right after the broadcast (or signals) that let the last ones go. */
KB_API int kb_cond_destroy(kb_cond_t *c);
/* May suspend. The mutex is held again at return, a recursive one as often as before. timed: ETIMEDOUT.
 * EPERM: the mutex is not held (NORMAL: by anybody), nothing was done. */
KB_API int kb_cond_wait(kb_cond_t *c, kb_mutex_t *m);
KB_API int kb_cond_timedwait(kb_cond_t *c, kb_mutex_t *m, uint64_t deadline);
/* Wakes the one that has waited longest, with or without the mutex held; who begins to wait later cannot take
 * the signal. broadcast: all; they get the mutex one after the other. Never suspend. */
KB_API int kb_cond_signal(kb_cond_t *c);
KB_API int kb_cond_broadcast(kb_cond_t *c);

/* ---- counting semaphore ------------------------------------------------------------------------ */
typedef struct kb_sem {
	uint32_t value;
	uint32_t word;
	uint32_t shared;
	uint32_t reserved;
	void *head;
	void *tail;
} kb_sem_t;
#define KB_SEM_INIT(n) { (n), 0, 0, 0, 0, 0 }
enum { KB_SEM_VALUE_MAX = 0x7fffffff };

KB_API int kb_sem_init(kb_sem_t *s, uint32_t value);
KB_API int kb_sem_destroy(kb_sem_t *s);
/* May suspend. timed: ETIMEDOUT. */
KB_API int kb_sem_wait(kb_sem_t *s);
/* EAGAIN. Never suspends. */
KB_API int kb_sem_trywait(kb_sem_t *s);
KB_API int kb_sem_timedwait(kb_sem_t *s, uint64_t deadline);
/* EOVERFLOW. Never suspends. Async-signal-safe, whatever the handler has interrupted. A waiter that it lets go may
 * destroy the semaphore at once. */
KB_API int kb_sem_post(kb_sem_t *s);
KB_API uint32_t kb_sem_value(const kb_sem_t *s);

/* ---- barrier ------------------------------------------------------------------------------------ */
typedef struct kb_barrier {
	uint32_t word;
	uint32_t need;
	uint32_t left;
	uint32_t shared; /* 0; the drop-in: libc marks process-shared ones here */
	void *head;
	void *tail;
} kb_barrier_t;
enum { KB_BARRIER_SERIAL = -1 };

/* EINVAL: count is 0. */
KB_API int kb_barrier_init(kb_barrier_t *b, uint32_t count);
KB_API int kb_barrier_destroy(kb_barrier_t *b);
/* May suspend. KB_BARRIER_SERIAL for a single thread of the round, 0 for the rest. timed: ETIMEDOUT, the caller has left
 * the round. */
KB_API int kb_barrier_wait(kb_barrier_t *b);
KB_API int kb_barrier_timedwait(kb_barrier_t *b, uint64_t deadline);

/* ---- readers-writer lock ------------------------------------------------------------------------- */
enum kb_rwlock_kind { KB_RWLOCK_PREFER_WRITER = 0, KB_RWLOCK_PREFER_READER = 1 };
typedef struct kb_rwlock {
	uint32_t word;
	uint32_t readers;
	uint32_t writer;
	uint32_t kind;
	uint32_t reserved[3];
	uint32_t shared; /* 0; the drop-in: libc marks process-shared ones here */
	void *head;
	void *tail;
} kb_rwlock_t;
#define KB_RWLOCK_INIT { 0, 0, 0, KB_RWLOCK_PREFER_WRITER, { 0, 0, 0 }, 0, 0, 0 }

/* PREFER_WRITER: first come, first served; a reader waits if anybody does (so a thread must not take a second
 * read lock). PREFER_READER: readers enter whenever no writer is inside; they can starve writers. */
KB_API int kb_rwlock_init(kb_rwlock_t *l, enum kb_rwlock_kind kind);
/* EBUSY: it is held. */
KB_API int kb_rwlock_destroy(kb_rwlock_t *l);
/* May suspend. EDEADLK: the caller holds the write lock. EAGAIN: too many readers. try: EBUSY, timed:
 * ETIMEDOUT. unlock: EPERM if nobody holds it; never suspends. */
KB_API int kb_rwlock_rdlock(kb_rwlock_t *l);
KB_API int kb_rwlock_wrlock(kb_rwlock_t *l);
KB_API int kb_rwlock_tryrdlock(kb_rwlock_t *l);
KB_API int kb_rwlock_trywrlock(kb_rwlock_t *l);
KB_API int kb_rwlock_timedrdlock(kb_rwlock_t *l, uint64_t deadline);
KB_API int kb_rwlock_timedwrlock(kb_rwlock_t *l, uint64_t deadline);
KB_API int kb_rwlock_unlock(kb_rwlock_t *l);

/* ---- once ------------------------------------------------------------------------------------------ */
typedef struct kb_once {
	uint32_t word;
} kb_once_t;
#define KB_ONCE_INIT { 0 }
/* fn may suspend; others wait for its end. May suspend. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function of the same name */
#endif
KB_API int kb_once(kb_once_t *o, void (*fn)(void));
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- bounded typed channel -------------------------------------------------------------------------
 * Many to many; elements of a fixed size are copied. Capacity 0 is a rendezvous. */
typedef struct kb_chan kb_chan_t;

/* EINVAL: element_size is 0 or above 64 KiB; ENOMEM. */
KB_API int kb_chan_create(kb_chan_t **ch, size_t element_size, size_t capacity);
/* Nobody may use it any more. */
KB_API void kb_chan_destroy(kb_chan_t *ch);
/* After it sends fail with EPIPE; receives drain what is there, then EPIPE. EPIPE: closed already. */
KB_API int kb_chan_close(kb_chan_t *ch);
/* May suspend. Senders and receivers are served first come, first served. */
KB_API int kb_chan_send(kb_chan_t *ch, const void *element);
KB_API int kb_chan_recv(kb_chan_t *ch, void *element);
/* EAGAIN. Never suspend. */
KB_API int kb_chan_trysend(kb_chan_t *ch, const void *element);
KB_API int kb_chan_tryrecv(kb_chan_t *ch, void *element);
/* May suspend. ETIMEDOUT. */
KB_API int kb_chan_timedsend(kb_chan_t *ch, const void *element, uint64_t deadline);
KB_API int kb_chan_timedrecv(kb_chan_t *ch, void *element, uint64_t deadline);
KB_API size_t kb_chan_length(kb_chan_t *ch);

enum kb_select_op { KB_SELECT_RECV = 0, KB_SELECT_SEND = 1, KB_SELECT_EVENT = 2 };
typedef struct kb_select_case {
	enum kb_select_op op;
	int error;        /* out, of the chosen case: 0 or EPIPE */
	kb_chan_t *chan;  /* RECV, SEND */
	kb_event_t *event; /* EVENT: the caller is its owner */
	void *element;    /* RECV: to here; SEND: from here; EVENT: uint64_t * or NULL */
} kb_select_case_t;

/* Waits until one case can go on and does it, exactly one; among several ready ones chosen in turn, not
 * always the first. *chosen is its index. 0, ETIMEDOUT (deadline 0: does not wait), EINVAL; with more
 * than 8 cases ENOMEM is possible. */
KB_API int kb_select(kb_select_case_t *cases, size_t count, uint64_t deadline, size_t *chosen);

#ifdef __cplusplus
}
#endif

#endif
