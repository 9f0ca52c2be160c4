/* line.c - see line.h. Who puts bytes in says so by an event of the space, so the other side's virtual processor finds them
 * while it polls, and is woken if it sleeps; when the other side's program dies, the event says that, too. */
#include "line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PATIENCE_MS = 5000 };

static uint64_t in_ms(uint64_t ms)
{
	return kb_now() + ms * 1000000;
}

int line_door(kb_space_t *space, unsigned ends, kb_space_chan_t **door)
{
	return kb_space_chan_open(space, "kvstore.door", sizeof(uint32_t), DOOR_ROOM, ends, door);
}

static const char *name_of(char *name, size_t size, const char *what, unsigned number)
{
	snprintf(name, size, "kvstore.%s.%u", what, number);
	return name;
}

int line_find(kb_space_t *space, unsigned number, int server, struct line *l)
{
	char name[40];
	void *memory;
	int e = kb_space_memory_open(space, name_of(name, sizeof name, "line", number), sizeof *l->memory, &memory);

	if (e == 0)
		e = kb_space_mutex_open(space, name_of(name, sizeof name, "lease", number), &l->lease);
	l->number = number;
	l->memory = memory;
	if (e == 0) {
		l->in = server ? &l->memory->up : &l->memory->down;
		l->out = server ? &l->memory->down : &l->memory->up;
	}
	return e;
}

int line_open(kb_space_t *space, struct line *l, int server)
{
	char name[40];
	int e = kb_space_event_open(space, name_of(name, sizeof name, "up", l->number), server ? KB_SPACE_RECV : KB_SPACE_SEND,
				    &l->up);

	if (e == 0)
		e = kb_space_event_open(space, name_of(name, sizeof name, "down", l->number),
					server ? KB_SPACE_SEND : KB_SPACE_RECV, &l->down);
	l->rings = server ? l->up : l->down;
	l->bell = server ? l->down : l->up;
	return e;
}

void line_close(struct line *l, int server)
{
	kb_space_event_close(l->up, server ? KB_SPACE_RECV : KB_SPACE_SEND);
	kb_space_event_close(l->down, server ? KB_SPACE_SEND : KB_SPACE_RECV);
}

/* ---- connecting ---- */

/* A line that no living process has. EAGAIN: there is none. */
static int lease(kb_space_t *space, struct line *l)
{
	int e = 0;

	for (unsigned i = 0; i < LINES && e == 0; i++) {
		e = line_find(space, i, 0, l);
		if (e != 0)
			break;
		switch (e = kb_space_mutex_lock(l->lease, 0)) {
		case EOWNERDEAD: /* what its last owner left behind goes when the server begins anew */
			kb_space_mutex_consistent(l->lease);
			return 0;
		case 0: return 0;
		case ETIMEDOUT: e = 0; break;
		default: break;
		}
	}
	return e != 0 ? e : EAGAIN;
}

static int ask_to_be_served(kb_space_t *space, struct line *l)
{
	uint64_t wanted = l->memory->wanted + 1, until = in_ms(PATIENCE_MS);
	uint32_t number = l->number;
	kb_space_chan_t *door;
	int e = line_door(space, KB_SPACE_SEND, &door);

	l->memory->wanted = wanted;
	if (e == 0)
		e = kb_space_chan_send(door, &number, until);
	/* the server may have left an older connection on this line just now, so its leaving says nothing */
	while (e == 0 && l->memory->served != wanted) {
		e = line_wait(l, until);
		if ((e == EPIPE || e == EOWNERDEAD) && kb_now() < until) {
			kb_sleep(1000000);
			e = 0;
		}
	}
	return e;
}

int line_connect(kb_space_t *space, struct line *l)
{
	int e = lease(space, l);

	if (e != 0)
		return e;
	e = line_open(space, l, 0);
	if (e == 0)
		e = ask_to_be_served(space, l);
	if (e != 0)
		line_hang_up(l);
	return e;
}

void line_hang_up(struct line *l)
{
	line_close(l, 0);
	kb_space_mutex_unlock(l->lease);
}

/* ---- bytes ---- */

/* Nonsense from the other side is a stream that has nothing and takes nothing. */
size_t line_has(const struct line *l)
{
	uint64_t n = atomic_load_explicit(&l->in->tail, memory_order_acquire) - l->in->head;

	return n > LINE_ROOM ? 0 : n;
}

size_t line_room(const struct line *l)
{
	/* in one order with line_want_room's store before it */
	uint64_t n = l->out->tail - atomic_load(&l->out->head);

	return n > LINE_ROOM ? 0 : LINE_ROOM - n;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t line_look(struct line *l, void *data, size_t n)
{
	size_t at = atomic_load_explicit(&l->in->head, memory_order_relaxed) % LINE_ROOM, first;

	n = least(n, line_has(l));
	first = least(n, LINE_ROOM - at);
	memcpy(data, l->in->bytes + at, first);
	memcpy((char *)data + first, l->in->bytes, n - first);
	return n;
}

size_t line_take(struct line *l, void *data, size_t n)
{
	n = line_look(l, data, n);
	if (n == 0)
		return 0;
	/* before `full` is read, both in one order: line_want_room writes that, then reads this */
	atomic_fetch_add(&l->in->head, n);
	if (atomic_load(&l->in->full))
		kb_space_event_notify(l->bell, 0);
	return n;
}

size_t line_put(struct line *l, const void *data, size_t n)
{
	uint64_t tail = atomic_load_explicit(&l->out->tail, memory_order_relaxed);
	size_t at = tail % LINE_ROOM, first;

	n = least(n, line_room(l));
	if (n == 0)
		return 0;
	first = least(n, LINE_ROOM - at);
	memcpy(l->out->bytes + at, data, first);
	memcpy(l->out->bytes, (const char *)data + first, n - first);
	atomic_store_explicit(&l->out->tail, tail + n, memory_order_release);
	if (atomic_load_explicit(&l->out->full, memory_order_relaxed))
		atomic_store(&l->out->full, 0);
	kb_space_event_notify(l->bell, 0);
	return n;
}

void line_want_room(struct line *l)
{
	atomic_store(&l->out->full, 1);
}

int line_wait(struct line *l, uint64_t deadline)
{
	return kb_space_event_wait(l->rings, NULL, deadline);
}
