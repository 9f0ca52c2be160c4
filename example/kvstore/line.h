/* line.h - a connection in memory: two streams of bytes between two programs that are attached to one named space, as a
 * socket pair would be. Lines are numbered; a client takes one that is free and says so at the door. Needs Kochab. */
#ifndef KVSTORE_LINE_H
#define KVSTORE_LINE_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include <kochab/space.h>

enum {
	LINES = 256, /* at once */
	LINE_ROOM = 16 << 10, /* bytes on the way, in each direction */
	DOOR_ROOM = 64,
};

struct line_stream {
	_Alignas(64) _Atomic uint64_t tail; /* bytes that have been put in */
	_Atomic uint32_t full;              /* who puts in waits for room */
	_Alignas(64) _Atomic uint64_t head; /* bytes that have been taken out */
	_Alignas(64) char bytes[LINE_ROOM];
};

struct line_memory {
	_Atomic uint64_t wanted; /* number of the connection that the client wants */
	_Atomic uint64_t served; /* and of the one that the server has begun */
	struct line_stream up, down; /* to the server; to the client */
};

/* What one of the two sides knows of it. */
struct line {
	struct line_memory *memory;
	struct line_stream *in, *out;
	kb_space_event_t *rings, *bell; /* rings for this side; this side rings the bell */
	kb_space_event_t *up, *down;
	kb_space_mutex_t *lease; /* the client's as long as it lives */
	unsigned number;
};

/* Functions that return int: 0 or an errno value. */
int line_door(kb_space_t *space, unsigned ends, kb_space_chan_t **door);
/* The line of that number, without its ends. */
int line_find(kb_space_t *space, unsigned number, int server, struct line *l);
/* This side takes part from now on; and no more. */
int line_open(kb_space_t *space, struct line *l, int server);
void line_close(struct line *l, int server);

/* A client's connection to whoever serves the space. EAGAIN: no line is free; ETIMEDOUT: nobody serves. */
int line_connect(kb_space_t *space, struct line *l);
void line_hang_up(struct line *l);

/* As much as there is, or fits; they do not wait. */
size_t line_take(struct line *l, void *data, size_t n);
size_t line_look(struct line *l, void *data, size_t n);
size_t line_put(struct line *l, const void *data, size_t n);
size_t line_has(const struct line *l);
size_t line_room(const struct line *l);
/* Waits until the other side has done something, perhaps long ago. EPIPE, EOWNERDEAD: it has left; ETIMEDOUT. */
int line_wait(struct line *l, uint64_t deadline);
/* The next line_take of the other side rings if room is wanted. */
void line_want_room(struct line *l);

#endif
