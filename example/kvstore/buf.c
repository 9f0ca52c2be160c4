/* buf.c - bytes that grow. */
#include "buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

atomic_size_t buf_held;
size_t buf_most = (size_t)1 << 30;

void buf_count(size_t n)
{
	atomic_fetch_add_explicit(&buf_held, n, memory_order_relaxed);
}

void buf_uncount(size_t n)
{
	atomic_fetch_sub_explicit(&buf_held, n, memory_order_relaxed);
}

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
	b->bounded = b->over = false;
}

/* Doubles. It grows with what arrives, never with what somebody announces. */
static bool grow(struct buf *b, size_t need)
{
	size_t room = b->room, more;

	while (room < need)
		room *= 2;
	more = room - (buf_is_small(b) ? 0 : b->room);
	if (b->bounded && (b->over || more > buf_most || atomic_load(&buf_held) > buf_most - more)) {
		buf_release(b);
		b->over = true;
		return false;
	}
	buf_count(more);
	if (buf_is_small(b)) {
		b->data = must_alloc(room);
		memcpy(b->data, b->small, b->used);
	} else {
		b->data = must_realloc(b->data, room);
	}
	b->room = room;
	return true;
}

char *buf_reserve(struct buf *b, size_t n)
{
	if (b->room - b->used < n && !grow(b, b->used + n))
		return NULL;
	return b->data + b->used;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	char *p = buf_reserve(b, n);

	if (p == NULL)
		return;
	memcpy(p, bytes, n);
	b->used += n;
}

void buf_drop(struct buf *b, size_t n)
{
	b->used -= n;
	memmove(b->data, b->data + n, b->used);
}

void buf_release(struct buf *b)
{
	if (!buf_is_small(b)) {
		free(b->data);
		buf_uncount(b->room);
	}
	b->data = b->small;
	b->used = 0;
	b->room = b->small_room;
}
