/* buf.h - bytes that grow. The first of them lie where the owner says, so that a connection between two requests owns no
 * other memory; more come from malloc and go back with buf_release. */
#ifndef KVSTORE_BUF_H
#define KVSTORE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t used, room;
	char *small; /* the owner's */
	size_t small_room;
};

/* small: at least one byte, which stays where it is. */
void buf_init(struct buf *b, char *small, size_t room);

static inline bool buf_is_small(const struct buf *b)
{
	return b->data == b->small;
}

/* Room for n bytes more; where they go. */
char *buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *bytes, size_t n);

/* Takes the first n bytes away. */
void buf_drop(struct buf *b, size_t n);

/* Empties it and gives back what malloc gave. */
void buf_release(struct buf *b);

/* As malloc and realloc; without memory the server ends, and says so. */
void *must_alloc(size_t n);
void *must_realloc(void *p, size_t n);

#endif
