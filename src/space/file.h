/* space/file.h - the file of a space: its name, its lock, its growth, its place in memory. No waiting for threads in here.
 * The lock is the kernel's on the file, released when its holder dies, under one lock of this process. It is held inside
 * np brackets, across system calls. Callers: queue, thing, recover, member, space; the command. */
#ifndef KBI_SPACE_FILE_H
#define KBI_SPACE_FILE_H

#include <kochab/space.h>

#include "space/layout.h"

#define KBI_SPACE_FILE_DIR "/dev/shm"
#define KBI_SPACE_FILE_PREFIX "kochab."

/* Where the name leads. EINVAL, ENAMETOOLONG. */
int kbi_space_file_path(const char *name, char *path, size_t size);
/* A new file with an empty space in it, of that name. Its descriptor in *fd. */
int kbi_space_file_create(const char *name, const kb_space_config_t *config, int *fd);
/* An existing one for reading and writing, or reading only. */
int kbi_space_file_open(const char *name, bool write, int *fd);
/* Its head, read without mapping it, and looked at: EBADMSG, EPROTO, EXDEV. The table of processes is not read. */
int kbi_space_file_head(int fd, struct kbi_space_head *head);
/* Mapped with a gap below; *s is in the gap, what concerns the file filled in. */
int kbi_space_file_map(int fd, const struct kbi_space_head *head, bool fixed, struct kb_space **s);
void kbi_space_file_unmap(struct kb_space *s);
/* In a child of fork, which is not attached. */
void kbi_space_file_forked(struct kb_space *s);
/* A descriptor of a space's file. Not under the file's lock: closing one ends the locks that this process has on it. */
void kbi_space_file_close(int fd);
/* The inode of this process's pid namespace; 0: unknown. */
uint64_t kbi_space_file_pid_namespace(void);

void kbi_space_file_lock(struct kb_space *s);
void kbi_space_file_unlock(struct kb_space *s);
/* Among the threads of this process only. */
void kbi_space_file_lock_here(void);
void kbi_space_file_unlock_here(void);

/* Has the file so many bytes still? Any thread, in a signal handler, too. */
bool kbi_space_file_is_whole(const struct kb_space *s, uint64_t size);
/* Under the lock. Zeroed memory, 64-byte aligned; EMFILE: the limit; ENOSPC: the file system is full; EBADMSG: the file was
 * truncated. */
int kbi_space_file_alloc(struct kb_space *s, uint64_t bytes, uint64_t *at);

#endif
