/* kochab/space.h - named spaces: memory that unrelated programs share, and in it objects by which
 * threads of one program wait for threads of another. Lightweight threads wait as they do inside a
 * program: the virtual processor polls, and a message costs no system call while the receiving side
 * polls; a sleeping virtual processor is woken by the kernel. Plain kernel threads may use
 * everything, too, and block.
 *
 * Conventions. Functions return 0 or a positive errno value. A deadline is absolute CLOCK_MONOTONIC
 * ns (kb_now() + delay), KB_FOREVER for none; 0 tries once; when it passes: ETIMEDOUT. Functions
 * that take a deadline may suspend; no function is a cancellation point.
 *
 * Objects have names (at most 39 bytes) and live as long as the space; `open` finds an object or
 * makes it. EEXIST: the name belongs to an object of another kind, or of other sizes. EMFILE: the
 * space has grown to its limit. ENOSPC: the file system is full. EBADMSG: the file has been
 * truncated. EPROTO, from any call: the content of the file is impossible, or a lock was not
 * released for seconds: a program has written there. Objects are at other addresses in other
 * processes: do not keep pointers to them in the space.
 *
 * When a process ends, in whatever way, the other processes are told at once. Its mutexes and
 * readers-writer locks go to the next waiter with EOWNERDEAD. A thread that waits for the other end
 * of a channel or an event gets EOWNERDEAD if that process was the last holder of the end, and so
 * does a thread that waits at a barrier which the process has used. A process that detaches, or
 * ends by exit, has closed its ends: waiters get EPIPE.
 *
 * After a fork the child is not attached: the space is not mapped in it. The child may attach. */
#ifndef KOCHAB_SPACE_H
#define KOCHAB_SPACE_H

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- life ------------------------------------------------------------------------------------ */

typedef struct kb_space kb_space_t;

enum kb_space_flag {
	/* at the address that its creator had, or not at all: pointers in it may be kept */
	KB_SPACE_FIXED = 1,
};

/* All zero: the defaults in brackets. */
typedef struct kb_space_config {
	size_t size;      /* bytes at the beginning [as little as possible] */
	size_t limit;     /* bytes to which it may grow [64 MiB] */
	unsigned mode;    /* access rights of the file [0600] */
	unsigned flags;   /* KB_SPACE_FIXED */
	uintptr_t address; /* where it should lie, 64 KiB aligned [chosen] */
} kb_space_config_t;

/* Creates a space and attaches to it. The name is one word, or a path if it contains a slash. A
 * word names a file in a folder of the user's own: kochab/NAME in $XDG_RUNTIME_DIR (not in a setuid
 * program) or /run/user/UID, if that folder belongs to the user alone and lies in memory; else
 * /dev/shm/kochab-UID/NAME. A mode that gives other users access makes it a shared name: the file
 * /dev/shm/kochab.NAME. Memory is reserved before it is used: a full file system causes ENOSPC,
 * never SIGBUS. config may be NULL. EEXIST: attach would find a space of this name. EPERM: the
 * user's folder belongs to another user, or is open to other users. EINVAL; EADDRINUSE (FIXED); or
 * an error of open(2). */
KB_API int kb_space_create(kb_space_t **space, const char *name, const kb_space_config_t *config);
/* Attaches to a space. A word is looked for in all folders of the user's own, then among the shared
 * names, where files of other users are passed over (ENOENT). The file must belong to the caller's
 * effective user or to root: EPERM. ENOENT, EACCES. ELOOP: a symbolic link. EBADMSG: the file is no
 * space, damaged or cut short. EPROTO: it was made by another version or machine, or is damaged.
 * EXDEV: it was made in another pid namespace. EADDRINUSE: FIXED is asked for, or the space was
 * made so, and its address is in use here. EALREADY: this process is attached. EUSERS: 64 processes
 * are attached. */
KB_API int kb_space_attach(kb_space_t **space, const char *name, unsigned flags);
/* As kb_space_attach, but the file must belong to the user `owner` (a uid), or EPERM. The name is a
 * shared name, a path, or, as far as the caller may enter them, a word in the folders of that user.
 * A user that may write to the file can make calls fail, and can change the space's content:
 * doc/security.md. */
KB_API int kb_space_attach_of(kb_space_t **space, const char *name, unsigned flags, uint32_t owner);
/* Closes the ends that this process has open in the space and unmaps it. EBUSY: a thread waits for
 * an object of the space. */
KB_API int kb_space_detach(kb_space_t *space);
/* Removes the name, where attach would find it; attached processes stay attached. Errors of
 * unlink(2). */
KB_API int kb_space_unlink(const char *name);

/* Returns the offset of an address in the space, which is the same in all processes. */
KB_API uint64_t kb_space_offset(const kb_space_t *space, const void *address);
/* Returns the address of an offset in this process; NULL: not in the space. */
KB_API void *kb_space_pointer(const kb_space_t *space, uint64_t offset);

typedef struct kb_space_info {
	size_t size, used, limit; /* in this process */
	uintptr_t address;        /* the address is the creator's */
	unsigned fixed;           /* it lies where its creator has it */
	unsigned processes;       /* attached */
	unsigned objects;
	unsigned crashes;         /* processes that were attached and died */
	unsigned owner;           /* uid of the file's owner at attach */
} kb_space_info_t;
KB_API void kb_space_info(const kb_space_t *space, kb_space_info_t *info);

/* Finds or makes plain memory, zero at first, 64-byte aligned. */
KB_API int kb_space_memory_open(kb_space_t *space, const char *name, size_t bytes, void **memory);

/* ---- event: a bell with an 8-byte message ----------------------------------------------------
 * One thread at a time waits, any thread notifies. A notification is kept until it is taken;
 * several that have not been taken may become a single one, with the message of one of them. */
typedef struct kb_space_event kb_space_event_t;
enum kb_space_end { KB_SPACE_RECV = 1, KB_SPACE_SEND = 2 };

/* ends: the ends that this process is going to use, KB_SPACE_RECV to wait, KB_SPACE_SEND to
 * notify. */
KB_API int kb_space_event_open(kb_space_t *space, const char *name, unsigned ends, kb_space_event_t **event);
/* Never suspends. EPIPE, EOWNERDEAD: no process is left that could wait (the notification is kept
 * for a process that comes later). */
KB_API int kb_space_event_notify(kb_space_event_t *event, uint64_t value);
/* EPIPE, EOWNERDEAD: all processes that could notify have left; the error tells whether the last of
 * them closed or died. */
KB_API int kb_space_event_wait(kb_space_event_t *event, uint64_t *value, uint64_t deadline);
/* Closes ends of this process, as a detach does. Opening the event again opens them. */
KB_API int kb_space_event_close(kb_space_event_t *event, unsigned ends);

/* ---- bounded channel, many to many ----------------------------------------------------------- */
typedef struct kb_space_chan kb_space_chan_t;

/* Elements of a fixed size, 1 byte to 64 KiB, are copied; n, at least 1, is the capacity. */
KB_API int kb_space_chan_open(kb_space_t *s, const char *name, size_t size, size_t n, unsigned ends, kb_space_chan_t **ch);
/* EPIPE: this process has not opened that end, or the other end was open and is now closed in all
 * processes. EOWNERDEAD: the last process that had the other end open died. A receiver first gets
 * the elements that are left. An end that no process has opened yet is waited for; so a server that
 * must outlive its clients opens both ends. */
KB_API int kb_space_chan_send(kb_space_chan_t *chan, const void *element, uint64_t deadline);
KB_API int kb_space_chan_recv(kb_space_chan_t *chan, void *element, uint64_t deadline);
/* Closes ends of this process. */
KB_API int kb_space_chan_close(kb_space_chan_t *chan, unsigned ends);
KB_API size_t kb_space_chan_length(kb_space_chan_t *chan);

/* ---- counting semaphore ---------------------------------------------------------------------- */
typedef struct kb_space_sem kb_space_sem_t;

KB_API int kb_space_sem_open(kb_space_t *space, const char *name, uint32_t value, kb_space_sem_t **sem);
KB_API int kb_space_sem_wait(kb_space_sem_t *sem, uint64_t deadline);
/* EOVERFLOW: the value would be too large. */
KB_API int kb_space_sem_post(kb_space_sem_t *sem);
KB_API uint32_t kb_space_sem_value(kb_space_sem_t *sem);

/* ---- mutex, robust --------------------------------------------------------------------------- */
typedef struct kb_space_mutex kb_space_mutex_t;

KB_API int kb_space_mutex_open(kb_space_t *space, const char *name, kb_space_mutex_t **mutex);
/* EOWNERDEAD: the caller holds the mutex, but the last holder died and the data may be half
 * changed: repair it, then call consistent. If the mutex is unlocked without that, all later
 * callers get ENOTRECOVERABLE. */
KB_API int kb_space_mutex_lock(kb_space_mutex_t *mutex, uint64_t deadline);
/* EPERM: this process does not hold the mutex. */
KB_API int kb_space_mutex_unlock(kb_space_mutex_t *mutex);
KB_API int kb_space_mutex_consistent(kb_space_mutex_t *mutex);

/* ---- condition variable ---------------------------------------------------------------------- */
typedef struct kb_space_cond kb_space_cond_t;

KB_API int kb_space_cond_open(kb_space_t *space, const char *name, kb_space_cond_t **cond);
/* At return the mutex is held again; EOWNERDEAD and ENOTRECOVERABLE as from kb_space_mutex_lock.
 * Spurious returns are possible. */
KB_API int kb_space_cond_wait(kb_space_cond_t *cond, kb_space_mutex_t *mutex, uint64_t deadline);
KB_API int kb_space_cond_signal(kb_space_cond_t *cond);
KB_API int kb_space_cond_broadcast(kb_space_cond_t *cond);

/* ---- readers-writer lock, robust; writers first ---------------------------------------------- */
typedef struct kb_space_rwlock kb_space_rwlock_t;

KB_API int kb_space_rwlock_open(kb_space_t *space, const char *name, kb_space_rwlock_t **lock);
/* EOWNERDEAD: the caller holds the lock, but a writer died. A caller that holds the lock for
 * writing may repair the data and call consistent; until then all callers get EOWNERDEAD. */
KB_API int kb_space_rwlock_rdlock(kb_space_rwlock_t *lock, uint64_t deadline);
KB_API int kb_space_rwlock_wrlock(kb_space_rwlock_t *lock, uint64_t deadline);
KB_API int kb_space_rwlock_unlock(kb_space_rwlock_t *lock);
KB_API int kb_space_rwlock_consistent(kb_space_rwlock_t *lock);

/* ---- barrier --------------------------------------------------------------------------------- */
typedef struct kb_space_barrier kb_space_barrier_t;

KB_API int kb_space_barrier_open(kb_space_t *space, const char *name, uint32_t count, kb_space_barrier_t **barrier);
/* Waits until `count` threads have arrived. Returns KB_BARRIER_SERIAL to one thread and 0 to the
 * rest. ETIMEDOUT: the caller has left the round. EOWNERDEAD: a process that has waited here died;
 * this stays until reset. */
KB_API int kb_space_barrier_wait(kb_space_barrier_t *barrier, uint64_t deadline);
/* Begins a new round of `count` threads. EBUSY: threads wait. */
KB_API int kb_space_barrier_reset(kb_space_barrier_t *barrier, uint32_t count);

/* ---- select ---------------------------------------------------------------------------------- */
typedef struct kb_space_case {
	enum kb_select_op op;
	int error;               /* out, of the chosen case: 0, EPIPE, EOWNERDEAD */
	kb_space_chan_t *chan;   /* RECV, SEND */
	kb_space_event_t *event; /* EVENT */
	void *element;           /* RECV: to here; SEND: from here; EVENT: uint64_t * or NULL */
} kb_space_case_t;

/* Waits until a case can go on, and performs it; among several ready cases the choice takes turns.
 * All cases must be of one space, at most 64: EINVAL. ETIMEDOUT. */
KB_API int kb_space_select(kb_space_case_t *cases, size_t count, uint64_t deadline, size_t *chosen);

#ifdef __cplusplus
}
#endif

#endif
