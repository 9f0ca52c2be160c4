/* buf.h - bytes that grow. The first BUF_SMALL of them lie in the struct, so that a connection between two requests owns
 * no other memory; more come from malloc and go back with buf_release. A struct buf does not move. */
#ifndef KVSTORE_BUF_H
#define KVSTORE_BUF_H

#include <stddef.h>

enum { BUF_SMALL = 1024 };

struct buf {
	char *data;
	size_t used, room;
	char small[BUF_SMALL];
};

void buf_init(struct buf *b);

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
