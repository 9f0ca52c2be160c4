/* space/file.h - the file of a space: making, lock, growth, place in memory. No function here waits
 * for a thread. The lock is a word of the file, so that a process that may only read cannot hold
 * the lock. The word names the holder's process; the lock is taken from a dead process. It is taken
 * under a lock of this process, and held inside np brackets, across system calls.
 * Callers: queue, thing, recover, member, space; the command. */
#ifndef KBI_SPACE_FILE_H
#define KBI_SPACE_FILE_H

#include <kochab/space.h>

#include "space/layout.h"

/* The owner that a file must have: a uid, or */
#define KBI_SPACE_FILE_OURS (-1L)    /* the caller, or root */
#define KBI_SPACE_FILE_ANYBODYS (-2L) /* any user: to look at only */

/* Creates a file of that name with an empty space in it. Stores its descriptor in *fd. Returns 0 or
 * an errno value; EEXIST: kbi_space_file_open finds a file. */
int kbi_space_file_create(const char *name, const kb_space_config_t *config, int *fd);
/* Opens the first file of that name in the places of space/place, for reading and writing or for
 * reading only. EPERM: the file belongs to another user. With KBI_SPACE_FILE_OURS, a shared name of
 * another user counts as missing: ENOENT. */
int kbi_space_file_open(const char *name, bool write, long owner, int *fd);
/* Opens a name in an open folder, to look at only. */
int kbi_space_file_open_in(int folder, const char *name, int *fd);
/* Removes the name that kbi_space_file_open finds, also a shared name of any owner. */
int kbi_space_file_unlink(const char *name);
/* Reads the head without mapping the file, and checks it: EBADMSG, EPROTO, EXDEV (another pid
 * namespace). Does not read the table of processes. */
int kbi_space_file_head(int fd, struct kbi_space_head *head);
/* Maps the file with a gap below. Stores in *s the record in the gap, with the
 * fields of the file filled in. */
int kbi_space_file_map(int fd, const struct kbi_space_head *head, bool fixed, struct kb_space **s);
void kbi_space_file_unmap(struct kb_space *s);
/* Releases the file in a child of fork, which is not attached. */
void kbi_space_file_forked(struct kb_space *s);
/* Closes a descriptor that create or open has returned. */
void kbi_space_file_close(int fd);
/* Closes the descriptor of a mapped space, unless the program has closed
 * it and reused its number. */
void kbi_space_file_shut(struct kb_space *s);
/* Returns the inode of this process's pid namespace; 0: unknown. */
uint64_t kbi_space_file_pid_namespace(void);

/* Locks the file. Returns 0, or EPROTO: the holder lives and has not released
 * the lock for a long time. */
int kbi_space_file_lock(struct kb_space *s);
void kbi_space_file_unlock(struct kb_space *s);
/* Lock among the threads of this process only. */
void kbi_space_file_lock_here(void);
void kbi_space_file_unlock_here(void);
/* Frees that lock in a child of fork: a holder does not exist there. */
void kbi_space_file_let_here(void);

/* Returns whether the file still has that many bytes. Callable by any thread,
 * in a signal handler, too. */
bool kbi_space_file_is_whole(const struct kb_space *s, uint64_t size);
/* Allocates zeroed memory, 64-byte aligned. Under the lock. Returns 0; EMFILE: the limit; ENOSPC:
 * the file system is full; EBADMSG: the file was truncated; EPROTO: the head is damaged. */
int kbi_space_file_alloc(struct kb_space *s, uint64_t bytes, uint64_t *at);

/* Does kbi_space_at where the file seemed too short: it may have grown. */
void *kbi_space_file_at(struct kb_space *s, uint64_t at, uint64_t bytes);

/* Returns the address of a position read from the file; NULL if there is no such
 * memory behind the tables. */
static inline void *kbi_space_at(struct kb_space *s, uint64_t at, uint64_t bytes)
{
	uint64_t end = a_load_rlx(&s->least);

	if (kbi_unlikely(at < KBI_SPACE_FIRST || at % KBI_CACHE_LINE))
		return NULL;
	return kbi_likely(at <= end && bytes <= end - at) ? kbi_space_place(s, at) :
		kbi_space_file_at(s, at, bytes);
}

/* Returns the record of a reference, which is process + 1 << 16 | index. NULL: the reference is
 * empty, or the space is damaged. */
static inline struct kbi_space_record *kbi_space_record(struct kb_space *s, uint32_t ref)
{
	uint32_t p = (ref >> 16) - 1, i = ref & 0xffff;
	struct kbi_space_record *chunk;

	if (p >= KBI_SPACE_PROCS || i >= KBI_SPACE_CHUNKS * KBI_SPACE_RECORDS)
		return NULL;
	/* acquire: pairs with the release in add_chunk (queue.c); the reference came after the chunk,
	 * so the chunk exists */
	chunk = kbi_space_at(s, a_load_acq(&kbi_space_proc(s, p)->chunk[i / KBI_SPACE_RECORDS]),
			     KBI_SPACE_RECORDS * sizeof *chunk);
	return chunk ? chunk + i % KBI_SPACE_RECORDS : NULL;
}

#endif
