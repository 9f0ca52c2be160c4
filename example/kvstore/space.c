/* space.c - clients over a named space: at the door a thread takes the number of a line, and a thread for each line serves
 * it as client.c does a socket. Only here does the server know of Kochab.
 *
 * A client may die anywhere. The line's event tells (EOWNERDEAD), its lease is free for the next client; if that one comes
 * before the thread has noticed, the thread ends the old connection and begins the new one. */
#include "space.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "client.h"
#include "line.h"

/* A line as the server knows it. */
static struct seat {
	const struct wire *wire; /* first, for client_start_on */
	pthread_mutex_t lock;
	struct line line;
	bool known, serving; /* its objects are open; a thread serves it */
	atomic_bool again;   /* another client is at the door for it */
	atomic_int shut;     /* 1: no more is read; 2: nor written */
} seats[LINES];

static kb_space_t *space;
static kb_space_chan_t *door;
static kb_space_mutex_t *mine;
static pthread_t doorman;
static const char *space_name;

/* ---- as a socket ---- */

/* The other side has left, or must be taken to have. */
static bool is_over(struct seat *s)
{
	return s->again || s->shut & 1;
}

static ssize_t not_now(void)
{
	errno = EAGAIN;
	return -1;
}

static ssize_t line_recv(struct client *c, void *data, size_t n, int flags)
{
	struct seat *s = c->line;
	int gone = 0;

	for (;;) {
		size_t got = s->again ? 0 : flags & MSG_PEEK ? line_look(&s->line, data, n) : line_take(&s->line, data, n);

		if (got > 0)
			return (ssize_t)got;
		if (gone != 0 || is_over(s))
			return 0;
		gone = line_wait(&s->line, flags & MSG_DONTWAIT ? 0 : KB_FOREVER);
		if (gone == ETIMEDOUT)
			return not_now();
	}
}

static ssize_t line_send(struct client *c, const void *data, size_t n, int flags)
{
	struct seat *s = c->line;
	int gone = 0;

	for (;;) {
		size_t put = s->again || s->shut & 2 ? 0 : line_put(&s->line, data, n);

		if (put > 0)
			return (ssize_t)put;
		if (s->again || s->shut & 2 || (gone != 0 && gone != ETIMEDOUT)) {
			errno = EPIPE;
			return -1;
		}
		if (flags & MSG_DONTWAIT)
			return not_now();
		line_want_room(&s->line);
		if (line_room(&s->line) == 0)
			gone = line_wait(&s->line, KB_FOREVER);
	}
}

static int line_poll(struct client *c, int events)
{
	struct seat *s = c->line;
	int ready;

	do {
		line_want_room(&s->line);
		ready = (line_room(&s->line) > 0 ? POLLOUT : 0) | (line_has(&s->line) > 0 ? POLLIN : 0);
		if (ready & events)
			return ready;
		if (s->again || s->shut & 2)
			return POLLERR;
	} while (line_wait(&s->line, KB_FOREVER) == 0);
	return POLLERR;
}

static void line_shut(struct client *c, int how)
{
	struct seat *s = c->line;

	atomic_fetch_or(&s->shut, how == SHUT_RD ? 1 : 3);
	kb_space_event_notify(s->line.rings, 0); /* to itself: look again */
}

static bool begin(struct seat *s);

static void line_end(struct client *c)
{
	struct seat *s = c->line;
	bool more;

	line_close(&s->line, 1);
	pthread_mutex_lock(&s->lock);
	more = s->again;
	s->again = false;
	s->serving = more;
	pthread_mutex_unlock(&s->lock);
	if (more)
		begin(s);
}

static const struct wire wire = { line_recv, line_send, line_poll, line_shut, line_end };

/* ---- at the door ---- */

static void empty(struct line_stream *s)
{
	s->head = s->tail = 0;
	s->full = 0;
}

/* A new connection on a line that is `serving` and that no thread serves. */
static bool begin(struct seat *s)
{
	struct line_memory *m = s->line.memory;
	uint64_t number = m->wanted;
	int e = line_open(space, &s->line, 1);

	if (e != 0) {
		fprintf(stderr, "kvstore: line %u: error %d\n", s->line.number, e);
		pthread_mutex_lock(&s->lock);
		s->serving = false;
		pthread_mutex_unlock(&s->lock);
		return false;
	}
	s->shut = 0;
	empty(&m->up);
	empty(&m->down);
	m->served = number;
	kb_space_event_notify(s->line.bell, 0);
	return client_start_on(&s->wire);
}

static void let_in(uint32_t number)
{
	struct seat *s = &seats[number];
	bool free;

	if (!s->known && line_find(space, number, 1, &s->line) != 0)
		return;
	s->known = true;
	s->wire = &wire;
	pthread_mutex_lock(&s->lock);
	free = !s->serving;
	s->serving = true;
	if (!free) {
		s->again = true;
		kb_space_event_notify(s->line.rings, 0);
	}
	pthread_mutex_unlock(&s->lock);
	if (free)
		begin(s);
}

static void *door_thread(void *arg)
{
	uint32_t number;

	while (kb_space_chan_recv(door, &number, KB_FOREVER) == 0)
		if (number < LINES)
			let_in(number);
	return arg;
}

/* ---- the space ---- */

/* Nobody who lives serves it: its name is free for a new one. */
static bool remove_old(const char *name)
{
	int e;

	space = NULL;
	e = kb_space_attach(&space, name, 0);
	if (e == 0)
		e = kb_space_mutex_open(space, "kvstore.server", &mine);
	if (e == 0)
		e = kb_space_mutex_lock(mine, 0);
	if (e == 0 || e == EOWNERDEAD)
		kb_space_unlink(name);
	if (space != NULL)
		kb_space_detach(space);
	return e == 0 || e == EOWNERDEAD;
}

int space_listen(const char *name)
{
	int e;

	while ((e = kb_space_create(&space, name, NULL)) == EEXIST && remove_old(name))
		;
	if (e == 0)
		e = kb_space_mutex_open(space, "kvstore.server", &mine);
	if (e == 0)
		e = kb_space_mutex_lock(mine, 0);
	if (e == 0)
		e = line_door(space, KB_SPACE_SEND | KB_SPACE_RECV, &door);
	for (unsigned i = 0; i < LINES && e == 0; i++)
		e = pthread_mutex_init(&seats[i].lock, NULL);
	if (e == 0)
		e = pthread_create(&doorman, NULL, door_thread, NULL);
	space_name = name;
	return e;
}

void space_stop(void)
{
	kb_space_unlink(space_name);
	kb_space_chan_close(door, KB_SPACE_SEND | KB_SPACE_RECV);
	pthread_join(doorman, NULL);
}
