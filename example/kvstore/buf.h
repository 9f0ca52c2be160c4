/* buf.h - bytes that grow. The first of them lie where the owner says, so that a connection between two requests owns no
 * other memory; more come from malloc and go back with buf_release. */
#ifndef KVSTORE_BUF_H
#define KVSTORE_BUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t used, room;
	char *small; /* the owner's */
	size_t small_room;
	bool bounded; /* the owner may be told that there is no room */
	bool over;    /* and was: its content is gone */
};

/* Bytes that clients have made the server allocate for requests and answers, and how many there may be. */
extern atomic_size_t buf_held;
extern size_t buf_most;

/* small: at least one byte, which stays where it is. */
void buf_init(struct buf *b, char *small, size_t room);

static inline bool buf_is_small(const struct buf *b)
{
	return b->data == b->small;
}

/* Room for n bytes more; where they go. NULL: it is bounded, and with them there would be more than buf_most. */
char *buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *bytes, size_t n);

/* Takes the first n bytes away. */
void buf_drop(struct buf *b, size_t n);

/* Empties it and gives back what malloc gave. */
void buf_release(struct buf *b);

/* Counts bytes that belong to a client, and lie elsewhere. */
void buf_count(size_t n);
void buf_uncount(size_t n);

/* As malloc and realloc; without memory the server ends, and says so. */
void *must_alloc(size_t n);
void *must_realloc(void *p, size_t n);

#endif
