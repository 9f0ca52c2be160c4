/* kochab/space.h - named spaces: memory that unrelated programs share, and in it objects by which the threads of one
 * wait for threads of another. Lightweight threads wait as they do inside a program: the virtual processor polls, and
 * a message costs no system call while anybody polls; one that sleeps is woken by the kernel. Plain kernel threads
 * may use everything, too, and block.
 *
 * Conventions. 0 or a positive errno value. A deadline is absolute CLOCK_MONOTONIC ns (kb_now() + delay), KB_FOREVER
 * for none; 0 tries once; then ETIMEDOUT. What takes a deadline may suspend; nothing is a cancellation point.
 *
 * Objects have names (at most 39 bytes) and are there as long as the space is; `open` finds one, or makes it. EEXIST: the
 * name is something else, or has other measures. EMFILE: the space has grown to its limit; ENOSPC: the file system is full;
 * EBADMSG: somebody has truncated the file. EPROTO, from any call: the file's content is impossible, or a lock was not
 * given back in seconds: somebody has written there.
 * Objects are at other addresses in other processes: do not keep pointers to them in the space.
 *
 * When a process ends, by whatever means, the others are told at once: its mutexes and readers-writer locks go to the next
 * one with EOWNERDEAD; whoever waits for the other end of a channel or an event whose last holder it was gets
 * EOWNERDEAD, as those who wait at a barrier that it has used. A process that detaches, or ends by exit, has closed
 * its ends: EPIPE.
 * After a fork the child is not attached: the space is not in its memory. It may attach. */
#ifndef KOCHAB_SPACE_H
#define KOCHAB_SPACE_H

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- life -------------------------------------------------------------------------------------------- */

typedef struct kb_space kb_space_t;

enum kb_space_flag {
	KB_SPACE_FIXED = 1, /* at the address that its creator had or not at all: pointers in it may be kept */
};

/* All zero: what the comments say in brackets. */
typedef struct kb_space_config {
	size_t size;      /* bytes at the beginning [as little as possible] */
	size_t limit;     /* bytes to which it may grow [64 MiB] */
	unsigned mode;    /* access rights of the file [0600] */
	unsigned flags;   /* KB_SPACE_FIXED */
	uintptr_t address; /* where it should lie, 64 KiB aligned [chosen] */
} kb_space_config_t;

/* Makes a space and attaches to it. The name is one word, or with a slash a path. One word is a file in a folder of the
 * user's own: kochab/NAME in $XDG_RUNTIME_DIR (not in a setuid program) or /run/user/UID, if that is the user's alone and
 * lies in memory; else /dev/shm/kochab-UID/NAME. A mode that lets others in makes it a shared name: the file
 * /dev/shm/kochab.NAME. Memory is reserved before it is used: on a full file system there is ENOSPC, never SIGBUS. config
 * may be NULL. EEXIST: attach would find one; EPERM: the user's folder is another's, or open to others; EINVAL;
 * EADDRINUSE (FIXED); or as open(2). */
KB_API int kb_space_create(kb_space_t **space, const char *name, const kb_space_config_t *config);
/* One word is looked for in all folders of the user's own, then among the shared names; there what another user has put is
 * passed over (ENOENT). The file must belong to the caller (its effective user) or to root: EPERM. ENOENT, EACCES; ELOOP:
 * a symbolic link; EBADMSG: it is no space, damaged or cut short; EPROTO: it was made by another version or machine, or is
 * damaged; EXDEV: by another pid namespace; EADDRINUSE: FIXED, or it was made so, and that address is in use here;
 * EALREADY: this process is attached; EUSERS: 64 processes are. */
KB_API int kb_space_attach(kb_space_t **space, const char *name, unsigned flags);
/* The same where the file must be that of this user (a uid), or EPERM: a shared name, a path, or, as far as the caller may
 * enter them, in the folders of that user. Whoever may write to the file can make calls fail, and can change the space's
 * content: doc/security.md. */
KB_API int kb_space_attach_of(kb_space_t **space, const char *name, unsigned flags, uint32_t owner);
/* Closes what this process has open there; its memory is gone. EBUSY: a thread waits for something in it. */
KB_API int kb_space_detach(kb_space_t *space);
/* The name, where attach would find it, is free again; those who are attached stay so. Errors of unlink(2). */
KB_API int kb_space_unlink(const char *name);

/* Position of an address in it, the same in all processes, and back. */
KB_API uint64_t kb_space_offset(const kb_space_t *space, const void *address);
/* NULL: not in it. */
KB_API void *kb_space_pointer(const kb_space_t *space, uint64_t offset);

typedef struct kb_space_info {
	size_t size, used, limit; /* bytes: reserved, in use, at most */
	uintptr_t address;        /* here */
	unsigned fixed;           /* it lies where its creator has it */
	unsigned processes;       /* attached */
	unsigned objects;
	unsigned crashes;         /* processes that were attached and died */
	unsigned owner;           /* uid of the file's owner at attach */
} kb_space_info_t;
KB_API void kb_space_info(const kb_space_t *space, kb_space_info_t *info);

/* Plain memory, zero at first, 64-byte aligned. */
KB_API int kb_space_memory_open(kb_space_t *space, const char *name, size_t bytes, void **memory);

/* ---- event: a bell with an 8-byte message --------------------------------------------------------------
 * One thread at a time waits, any thread notifies. A notification is kept until it is taken; several that have not been
 * taken may become one, with the message of one of them. */
typedef struct kb_space_event kb_space_event_t;
enum kb_space_end { KB_SPACE_RECV = 1, KB_SPACE_SEND = 2 };

/* ends: what this process is going to do. */
KB_API int kb_space_event_open(kb_space_t *space, const char *name, unsigned ends, kb_space_event_t **event);
/* Never suspends. EPIPE, EOWNERDEAD: nobody is left to wait (it is kept for one who comes). */
KB_API int kb_space_event_notify(kb_space_event_t *event, uint64_t value);
/* EPIPE, EOWNERDEAD: all who could notify have left, the last one so. */
KB_API int kb_space_event_wait(kb_space_event_t *event, uint64_t *value, uint64_t deadline);
/* This process's ends, as if it had detached. Opening it again opens them. */
KB_API int kb_space_event_close(kb_space_event_t *event, unsigned ends);

/* ---- bounded channel, many to many ---------------------------------------------------------------------- */
typedef struct kb_space_chan kb_space_chan_t;

/* Elements of a fixed size, 1 byte to 64 KiB, are copied; room for n of them, at least 1. */
KB_API int kb_space_chan_open(kb_space_t *s, const char *name, size_t size, size_t n, unsigned ends, kb_space_chan_t **ch);
/* EPIPE: this process has not opened that end, or the other end, once open, is closed everywhere; EOWNERDEAD: the last
 * process to have it died. A receiver gets what is in the channel first. An end that nobody has opened yet is
 * waited for; so a server that must outlive its clients opens both ends. */
KB_API int kb_space_chan_send(kb_space_chan_t *chan, const void *element, uint64_t deadline);
KB_API int kb_space_chan_recv(kb_space_chan_t *chan, void *element, uint64_t deadline);
/* This process's ends. */
KB_API int kb_space_chan_close(kb_space_chan_t *chan, unsigned ends);
KB_API size_t kb_space_chan_length(kb_space_chan_t *chan);

/* ---- counting semaphore --------------------------------------------------------------------------------- */
typedef struct kb_space_sem kb_space_sem_t;

KB_API int kb_space_sem_open(kb_space_t *space, const char *name, uint32_t value, kb_space_sem_t **sem);
KB_API int kb_space_sem_wait(kb_space_sem_t *sem, uint64_t deadline);
/* EOVERFLOW */
KB_API int kb_space_sem_post(kb_space_sem_t *sem);
KB_API uint32_t kb_space_sem_value(kb_space_sem_t *sem);

/* ---- mutex, robust ---------------------------------------------------------------------------------------- */
typedef struct kb_space_mutex kb_space_mutex_t;

KB_API int kb_space_mutex_open(kb_space_t *space, const char *name, kb_space_mutex_t **mutex);
/* EOWNERDEAD: it is held, but what it protects may be half-changed: repair that and say so (consistent). If it is
 * unlocked before, everybody gets ENOTRECOVERABLE. */
KB_API int kb_space_mutex_lock(kb_space_mutex_t *mutex, uint64_t deadline);
/* EPERM: this process does not hold it. */
KB_API int kb_space_mutex_unlock(kb_space_mutex_t *mutex);
KB_API int kb_space_mutex_consistent(kb_space_mutex_t *mutex);

/* ---- condition variable ------------------------------------------------------------------------------------ */
typedef struct kb_space_cond kb_space_cond_t;

KB_API int kb_space_cond_open(kb_space_t *space, const char *name, kb_space_cond_t **cond);
/* Spurious returns are possible. The mutex is held again; EOWNERDEAD and ENOTRECOVERABLE as from its lock. */
KB_API int kb_space_cond_wait(kb_space_cond_t *cond, kb_space_mutex_t *mutex, uint64_t deadline);
KB_API int kb_space_cond_signal(kb_space_cond_t *cond);
KB_API int kb_space_cond_broadcast(kb_space_cond_t *cond);

/* ---- readers-writer lock, robust; writers first -------------------------------------------------------------- */
typedef struct kb_space_rwlock kb_space_rwlock_t;

KB_API int kb_space_rwlock_open(kb_space_t *space, const char *name, kb_space_rwlock_t **lock);
/* EOWNERDEAD: it is held; a writer died. Who gets it to write may repair and say consistent; until then all get this. */
KB_API int kb_space_rwlock_rdlock(kb_space_rwlock_t *lock, uint64_t deadline);
KB_API int kb_space_rwlock_wrlock(kb_space_rwlock_t *lock, uint64_t deadline);
KB_API int kb_space_rwlock_unlock(kb_space_rwlock_t *lock);
KB_API int kb_space_rwlock_consistent(kb_space_rwlock_t *lock);

/* ---- barrier ---------------------------------------------------------------------------------------------------- */
typedef struct kb_space_barrier kb_space_barrier_t;

KB_API int kb_space_barrier_open(kb_space_t *space, const char *name, uint32_t count, kb_space_barrier_t **barrier);
/* KB_BARRIER_SERIAL for one of them, 0 for the rest; ETIMEDOUT: the caller has left the round. EOWNERDEAD: a process that
 * has waited here died; so it stays until reset. */
KB_API int kb_space_barrier_wait(kb_space_barrier_t *barrier, uint64_t deadline);
/* A new round of `count` begins. EBUSY: threads wait. */
KB_API int kb_space_barrier_reset(kb_space_barrier_t *barrier, uint32_t count);

/* ---- select -------------------------------------------------------------------------------------------------------- */
typedef struct kb_space_case {
	enum kb_select_op op;
	int error;               /* out, of the chosen case: 0, EPIPE, EOWNERDEAD */
	kb_space_chan_t *chan;   /* RECV, SEND */
	kb_space_event_t *event; /* EVENT */
	void *element;           /* RECV: to here; SEND: from here; EVENT: uint64_t * or NULL */
} kb_space_case_t;

/* Waits until one case can go on and does it; among several ready ones chosen in turn. All of one space, at most 64:
 * EINVAL. ETIMEDOUT. */
KB_API int kb_space_select(kb_space_case_t *cases, size_t count, uint64_t deadline, size_t *chosen);

#ifdef __cplusplus
}
#endif

#endif
