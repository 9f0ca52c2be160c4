/* kochab/sync.h - synchronisation between lightweight threads (and foreign kernel threads).
 * Included by kochab/kochab.h.
 *
 * All objects may be initialised statically, with their _INIT or by zeroing. Only channels allocate
 * memory. Wait queues are first in, first out. Conventions as in kochab/kochab.h: 0 or a positive
 * errno value; deadlines are absolute ns; no call is a cancellation point. */
#ifndef KOCHAB_SYNC_H
#define KOCHAB_SYNC_H

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- event: the notification area ------------------------------------------------------------
 * An event belongs to one thread, the owner. Only the owner waits for it; any thread notifies it. A
 * notification carries an 8-byte message and is kept until it is taken. An event is a bell, not a
 * queue: notifications that have not been taken may become a single notification. Its message is
 * the message of one of them: the last, if all come from the owner's virtual processor; otherwise
 * notifications may overtake each other. So a message is exact only while a single notification is
 * under way; for more use a channel. After a notification the owner's next wait returns and sees
 * everything that the notifier has written before.
 *
 * Memory: a notification may still be under way when kb_event_notify has returned, and is delivered
 * to the address of the event. So the memory must stay an event until each notification has been
 * taken by a wait of its own, or, if several notifications may have become one, as long as the
 * owner lives. It may be initialised again meanwhile; the new event may then get a notification
 * that was sent to the old event. */
typedef struct kb_event {
	void *owner;
	uint64_t value;
	uint32_t unused;
	uint32_t far;
	uint64_t far_value;
} __attribute__((aligned(64))) kb_event_t;

/* Initialises an event. owner: the thread that will wait; NULL: the caller. */
KB_API int kb_event_init(kb_event_t *ev, kb_thread_t owner);
/* Notifies the owner. Never suspends. Not async-signal-safe. */
KB_API void kb_event_notify(kb_event_t *ev, uint64_t value);
/* Wait for a notification and take it with its message (value may be NULL). May suspend, except
 * try. EPERM: the caller is not the owner. timed: ETIMEDOUT. try: EAGAIN. */
KB_API int kb_event_wait(kb_event_t *ev, uint64_t *value);
KB_API int kb_event_timedwait(kb_event_t *ev, uint64_t *value, uint64_t deadline);
KB_API int kb_event_try(kb_event_t *ev, uint64_t *value);

/* ---- mutex ----------------------------------------------------------------------------------- */
/* ROBUST is or-ed to another kind. When the holder of a robust mutex is lost (kb_on_crash), the
 * next thread that locks it gets EOWNERDEAD and holds it. Unless that thread calls
 * kb_mutex_consistent before it unlocks the mutex, all later callers get ENOTRECOVERABLE.
 * kb_cond_wait may return these two errors, too. NORMAL with ROBUST checks for errors like
 * ERRORCHECK. */
enum kb_mutex_kind {
	KB_MUTEX_NORMAL = 0,
	KB_MUTEX_RECURSIVE = 1,
	KB_MUTEX_ERRORCHECK = 2,
	KB_MUTEX_ROBUST = 16
};

/* The layout fits glibc's pthread_mutex_t (kind at byte 16 on 64-bit machines). */
typedef struct kb_mutex {
	uint32_t word;
	uint32_t count;
	uint32_t owner;
	/* under the mutex: threads that wait for a condition and have released the mutex for that */
	uint32_t waits;
	int32_t kind;
	uint32_t left; /* under the mutex; ROBUST: the holder was lost */
	void *head;
	void *tail;
} kb_mutex_t;
#define KB_MUTEX_INIT { 0, 0, 0, 0, KB_MUTEX_NORMAL, 0, 0, 0 }

KB_API int kb_mutex_init(kb_mutex_t *m, enum kb_mutex_kind kind);
/* EBUSY: the mutex is locked, or threads wait for a condition with it. */
KB_API int kb_mutex_destroy(kb_mutex_t *m);
/* Locks the mutex. May suspend. ERRORCHECK: EDEADLK if the caller holds it. RECURSIVE: EAGAIN if
 * the count overflows. POSIX pthread_mutex_lock.
 *
 * Fairness: a running thread may take a free mutex before threads that sleep for it, but not for
 * ever: a woken thread that has lost the race for the mutex 16 times, or for 1 ms, is handed the
 * mutex by the next unlock. */
KB_API int kb_mutex_lock(kb_mutex_t *m);
/* EBUSY: the mutex is locked. Never suspends. */
KB_API int kb_mutex_trylock(kb_mutex_t *m);
/* As kb_mutex_lock, until the deadline: ETIMEDOUT. May suspend. */
KB_API int kb_mutex_timedlock(kb_mutex_t *m, uint64_t deadline);
/* Unlocks the mutex. EPERM: RECURSIVE or ERRORCHECK, and the caller is not the owner; NORMAL, and
 * the mutex is not locked. Never suspends. Once another thread can lock the mutex, unlock touches
 * nothing of it: that thread may free its memory. */
KB_API int kb_mutex_unlock(kb_mutex_t *m);

/* Declares that the data which a ROBUST mutex protects is whole again. EINVAL: the caller has not
 * got EOWNERDEAD for it. POSIX pthread_mutex_consistent. */
KB_API int kb_mutex_consistent(kb_mutex_t *m);

/* ---- condition variable (spurious returns are possible, as in POSIX) ------------------------- */
typedef struct kb_cond {
	uint32_t word;
	uint32_t clock;
	void *head;
	void *tail;
	uint32_t reserved[2];
} kb_cond_t;
#define KB_COND_INIT { 0, 0, 0, 0, { 0, 0 } }

KB_API int kb_cond_init(kb_cond_t *c);
/* EBUSY: threads wait on it. It may be destroyed right after the broadcast (or the signals) that
 * wakes the last waiters. */
KB_API int kb_cond_destroy(kb_cond_t *c);
/* Wait for a signal. May suspend. At return the mutex is held again, a recursive mutex as often as
 * before. timed: ETIMEDOUT. EPERM: the mutex is not held (NORMAL: by any thread), and nothing was
 * done. POSIX pthread_cond_wait, but no cancellation point. */
KB_API int kb_cond_wait(kb_cond_t *c, kb_mutex_t *m);
KB_API int kb_cond_timedwait(kb_cond_t *c, kb_mutex_t *m, uint64_t deadline);
/* signal wakes the thread that has waited longest, whether or not the caller holds the mutex; a
 * thread that begins to wait later cannot take the signal. broadcast wakes all threads; they get
 * the mutex one after the other. Never suspend. */
KB_API int kb_cond_signal(kb_cond_t *c);
KB_API int kb_cond_broadcast(kb_cond_t *c);

/* ---- counting semaphore ---------------------------------------------------------------------- */
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
/* May suspend. timed: ETIMEDOUT. POSIX sem_wait, but no cancellation point. */
KB_API int kb_sem_wait(kb_sem_t *s);
/* EAGAIN: the value is 0. Never suspends. */
KB_API int kb_sem_trywait(kb_sem_t *s);
KB_API int kb_sem_timedwait(kb_sem_t *s, uint64_t deadline);
/* EOVERFLOW: above KB_SEM_VALUE_MAX. Never suspends. Async-signal-safe, whatever the handler has
 * interrupted. A waiter that this post wakes may destroy the semaphore at once. */
KB_API int kb_sem_post(kb_sem_t *s);
KB_API uint32_t kb_sem_value(const kb_sem_t *s);

/* ---- barrier --------------------------------------------------------------------------------- */
typedef struct kb_barrier {
	uint32_t word;
	uint32_t need;
	uint32_t left;
	uint32_t shared; /* 0; the drop-in: libc marks process-shared barriers here */
	void *head;
	void *tail;
} kb_barrier_t;
enum { KB_BARRIER_SERIAL = -1 };

/* EINVAL: count is 0. */
KB_API int kb_barrier_init(kb_barrier_t *b, uint32_t count);
KB_API int kb_barrier_destroy(kb_barrier_t *b);
/* Wait until `count` threads have arrived. May suspend. Return KB_BARRIER_SERIAL to a single thread
 * of the round and 0 to the rest. timed: ETIMEDOUT; the caller has left the round. POSIX
 * pthread_barrier_wait. */
KB_API int kb_barrier_wait(kb_barrier_t *b);
KB_API int kb_barrier_timedwait(kb_barrier_t *b, uint64_t deadline);

/* ---- readers-writer lock --------------------------------------------------------------------- */
enum kb_rwlock_kind { KB_RWLOCK_PREFER_WRITER = 0, KB_RWLOCK_PREFER_READER = 1 };
typedef struct kb_rwlock {
	uint32_t word;
	uint32_t readers;
	uint32_t writer;
	uint32_t kind;
	uint32_t reserved[3];
	uint32_t shared; /* 0; the drop-in: libc marks process-shared locks here */
	void *head;
	void *tail;
} kb_rwlock_t;
#define KB_RWLOCK_INIT { 0, 0, 0, KB_RWLOCK_PREFER_WRITER, { 0, 0, 0 }, 0, 0, 0 }

/* PREFER_WRITER: first come, first served; a reader waits if any thread waits (so a thread must not
 * take a second read lock). PREFER_READER: readers enter whenever no writer holds the lock; they
 * can starve writers. */
KB_API int kb_rwlock_init(kb_rwlock_t *l, enum kb_rwlock_kind kind);
/* EBUSY: the lock is held. */
KB_API int kb_rwlock_destroy(kb_rwlock_t *l);
/* May suspend. EDEADLK: the caller holds the write lock. EAGAIN: too many readers. try: EBUSY.
 * timed: ETIMEDOUT. unlock: EPERM if no thread holds the lock; never suspends. POSIX
 * pthread_rwlock_rdlock, pthread_rwlock_wrlock. */
KB_API int kb_rwlock_rdlock(kb_rwlock_t *l);
KB_API int kb_rwlock_wrlock(kb_rwlock_t *l);
KB_API int kb_rwlock_tryrdlock(kb_rwlock_t *l);
KB_API int kb_rwlock_trywrlock(kb_rwlock_t *l);
KB_API int kb_rwlock_timedrdlock(kb_rwlock_t *l, uint64_t deadline);
KB_API int kb_rwlock_timedwrlock(kb_rwlock_t *l, uint64_t deadline);
KB_API int kb_rwlock_unlock(kb_rwlock_t *l);

/* ---- once ------------------------------------------------------------------------------------ */
typedef struct kb_once {
	uint32_t word;
} kb_once_t;
#define KB_ONCE_INIT { 0 }
/* Calls fn unless it has been called for this object; threads that come meanwhile wait for its end.
 * fn may suspend. May suspend. POSIX pthread_once. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function of the same name */
#endif
KB_API int kb_once(kb_once_t *o, void (*fn)(void));
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- bounded typed channel -------------------------------------------------------------------
 * Many senders, many receivers; elements of a fixed size are copied. Capacity 0: sender and
 * receiver meet (rendezvous). */
typedef struct kb_chan kb_chan_t;

/* EINVAL: element_size is 0 or above 64 KiB; ENOMEM. */
KB_API int kb_chan_create(kb_chan_t **ch, size_t element_size, size_t capacity);
/* No thread may use the channel any more. */
KB_API void kb_chan_destroy(kb_chan_t *ch);
/* Closes the channel: from now on sends fail with EPIPE; receives take the elements that are left,
 * then fail with EPIPE. EPIPE: the channel is closed already. */
KB_API int kb_chan_close(kb_chan_t *ch);
/* May suspend. Senders and receivers are served first come, first served. EPIPE: closed. */
KB_API int kb_chan_send(kb_chan_t *ch, const void *element);
KB_API int kb_chan_recv(kb_chan_t *ch, void *element);
/* EAGAIN: full (trysend), empty (tryrecv). Never suspend. */
KB_API int kb_chan_trysend(kb_chan_t *ch, const void *element);
KB_API int kb_chan_tryrecv(kb_chan_t *ch, void *element);
/* As kb_chan_send and kb_chan_recv, until the deadline: ETIMEDOUT. May suspend. */
KB_API int kb_chan_timedsend(kb_chan_t *ch, const void *element, uint64_t deadline);
KB_API int kb_chan_timedrecv(kb_chan_t *ch, void *element, uint64_t deadline);
KB_API size_t kb_chan_length(kb_chan_t *ch);

enum kb_select_op { KB_SELECT_RECV = 0, KB_SELECT_SEND = 1, KB_SELECT_EVENT = 2 };
typedef struct kb_select_case {
	enum kb_select_op op;
	int error;        /* out, of the chosen case: 0 or EPIPE */
	kb_chan_t *chan;  /* RECV, SEND */
	kb_event_t *event; /* EVENT: the caller is the event's owner */
	void *element;    /* RECV: to here; SEND: from here; EVENT: uint64_t * or NULL */
} kb_select_case_t;

/* Waits until a case can go on, and performs exactly one case; among several ready cases the choice
 * takes turns and is not always the first. *chosen is the index of that case. Returns 0, ETIMEDOUT
 * (deadline 0: does not wait) or EINVAL; with more than 8 cases ENOMEM is possible. May suspend. */
KB_API int kb_select(kb_select_case_t *cases, size_t count, uint64_t deadline, size_t *chosen);

#ifdef __cplusplus
}
#endif

#endif
