/* space/file.h - the file of a space: making, lock, growth, place in memory. No waiting for threads in here.
 * The lock is a word of the file, so that a process that may only read cannot hold it. It names its holder's process; from
 * a dead process it is taken. It is taken under a lock of this process, and held inside np brackets, across system calls.
 * Callers: queue, thing, recover, member, space; the command. */
#ifndef KBI_SPACE_FILE_H
#define KBI_SPACE_FILE_H

#include <kochab/space.h>

#include "space/layout.h"

/* Whose file is it to be? Of this user (a uid), or */
#define KBI_SPACE_FILE_OURS (-1L)    /* of the caller, or of root */
#define KBI_SPACE_FILE_ANYBODYS (-2L) /* to look at only */

/* A new file with an empty space in it, of that name. Its descriptor in *fd. EEXIST: open finds a file. */
int kbi_space_file_create(const char *name, const kb_space_config_t *config, int *fd);
/* The first that there is in the places of space/place, for reading and writing, or reading only. EPERM: it belongs to
 * another; where a shared name is another's, and KBI_SPACE_FILE_OURS is wanted, it is as if it were not there: ENOENT. */
int kbi_space_file_open(const char *name, bool write, long owner, int *fd);
/* A name in a folder that is open, to look at only. */
int kbi_space_file_open_in(int folder, const char *name, int *fd);
/* Removes the name that open finds; a shared name of any owner. */
int kbi_space_file_unlink(const char *name);
/* Its head, read without mapping it, and looked at: EBADMSG, EPROTO, EXDEV. The table of processes is not read. */
int kbi_space_file_head(int fd, struct kbi_space_head *head);
/* Mapped with a gap below; *s is in the gap, what concerns the file filled in. */
int kbi_space_file_map(int fd, const struct kbi_space_head *head, bool fixed, struct kb_space **s);
void kbi_space_file_unmap(struct kb_space *s);
/* In a child of fork, which is not attached. */
void kbi_space_file_forked(struct kb_space *s);
/* A descriptor that create or open has given. */
void kbi_space_file_close(int fd);
/* That of a mapped space, unless the program has closed it and has something else under its number. */
void kbi_space_file_shut(struct kb_space *s);
/* The inode of this process's pid namespace; 0: unknown. */
uint64_t kbi_space_file_pid_namespace(void);

/* Errno value: EPROTO: its holder lives and has not given it back for a long time. */
int kbi_space_file_lock(struct kb_space *s);
void kbi_space_file_unlock(struct kb_space *s);
/* Among the threads of this process only. */
void kbi_space_file_lock_here(void);
void kbi_space_file_unlock_here(void);
/* In a child of fork: whoever had it is not there. */
void kbi_space_file_let_here(void);

/* Has the file so many bytes still? Any thread, in a signal handler, too. */
bool kbi_space_file_is_whole(const struct kb_space *s, uint64_t size);
/* Under the lock. Zeroed memory, 64-byte aligned; EMFILE: the limit; ENOSPC: the file system is full; EBADMSG: the file was
 * truncated; EPROTO: the head is damaged. */
int kbi_space_file_alloc(struct kb_space *s, uint64_t bytes, uint64_t *at);

/* kbi_space_at where the file seemed to be too short: it may have grown. */
void *kbi_space_file_at(struct kb_space *s, uint64_t at, uint64_t bytes);

/* A position that stands in the file: NULL, if there is no such memory behind the tables. */
static inline void *kbi_space_at(struct kb_space *s, uint64_t at, uint64_t bytes)
{
	uint64_t end = a_load_rlx(&s->least);

	if (kbi_unlikely(at < KBI_SPACE_FIRST || at % KBI_CACHE_LINE))
		return NULL;
	return kbi_likely(at <= end && bytes <= end - at) ? kbi_space_place(s, at) : kbi_space_file_at(s, at, bytes);
}

/* A reference to a record is process + 1 << 16 | index; NULL: to none, or of a damaged space. */
static inline struct kbi_space_record *kbi_space_record(struct kb_space *s, uint32_t ref)
{
	uint32_t p = (ref >> 16) - 1, i = ref & 0xffff;
	struct kbi_space_record *chunk;

	if (p >= KBI_SPACE_PROCS || i >= KBI_SPACE_CHUNKS * KBI_SPACE_RECORDS)
		return NULL;
	/* acquire: partner is the release at the adding of the chunk; it came with the reference, so it is there */
	chunk = kbi_space_at(s, a_load_acq(&kbi_space_proc(s, p)->chunk[i / KBI_SPACE_RECORDS]),
			     KBI_SPACE_RECORDS * sizeof *chunk);
	return chunk ? chunk + i % KBI_SPACE_RECORDS : NULL;
}

#endif
