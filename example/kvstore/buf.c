/* buf.c - bytes that grow. */
#include "buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *must_realloc(void *old, size_t n)
{
	void *p = realloc(old, n);

	if (p == NULL) {
		fprintf(stderr, "kvstore: out of memory (%zu bytes wanted)\n", n);
		exit(1);
	}
	return p;
}

void *must_alloc(size_t n)
{
	return must_realloc(NULL, n);
}

void buf_init(struct buf *b, char *small, size_t room)
{
	b->data = b->small = small;
	b->used = 0;
	b->room = b->small_room = room;
}

/* Doubles. It grows with what arrives, never with what somebody announces. */
static void grow(struct buf *b, size_t need)
{
	size_t room = b->room;

	while (room < need)
		room *= 2;
	if (buf_is_small(b)) {
		b->data = must_alloc(room);
		memcpy(b->data, b->small, b->used);
	} else {
		b->data = must_realloc(b->data, room);
	}
	b->room = room;
}

char *buf_reserve(struct buf *b, size_t n)
{
	if (b->room - b->used < n)
		grow(b, b->used + n);
	return b->data + b->used;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	memcpy(buf_reserve(b, n), bytes, n);
	b->used += n;
}

void buf_drop(struct buf *b, size_t n)
{
	b->used -= n;
	memmove(b->data, b->data + n, b->used);
}

void buf_release(struct buf *b)
{
	if (!buf_is_small(b))
		free(b->data);
	buf_init(b, b->small, b->small_room);
}
