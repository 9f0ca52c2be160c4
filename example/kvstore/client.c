/* client.c - a thread for each connection: read what there is, answer every request in it, write the answers, again. Plain
 * blocking calls; between requests a connection owns its thread's stack and its descriptor, nothing else. */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "blocked.h"
#include "command.h"
#include "reply.h"
#include "server.h"
#include "store.h"

enum {
	READ_MIN = 256, /* room that a read is worth */
	READ_BIG = 16 << 10, /* when more comes than fits into the small buffer */
	FLUSH_AT = 64 << 10, /* answers are not collected beyond this */
	INPUT_MAX = 1 << 30, /* a request and what follows it */
	LATE_MAX = 64 << 20, /* of a client that does not read its answers */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t none; /* the last client has left */
	struct client *first;
	size_t count;
	uint64_t next_id, refused, cut, requests; /* requests: of clients that have left */
	bool stopping;
} clients = { .lock = PTHREAD_MUTEX_INITIALIZER, .none = PTHREAD_COND_INITIALIZER, .next_id = 1 };

/* ---- a socket ---- */

static ssize_t socket_recv(struct client *c, void *data, size_t n, int flags)
{
	return recv(c->fd, data, n, flags);
}

static ssize_t socket_send(struct client *c, const void *data, size_t n, int flags)
{
	return send(c->fd, data, n, flags);
}

static int socket_poll(struct client *c, int events)
{
	struct pollfd p = { .fd = c->fd, .events = (short)events };

	return poll(&p, 1, -1) < 0 ? -1 : p.revents;
}

static void socket_shut(struct client *c, int how)
{
	shutdown(c->fd, how);
}

static void socket_close(struct client *c)
{
	close(c->fd);
}

static const struct wire socket_wire = { socket_recv, socket_send, socket_poll, socket_shut, socket_close };

/* ---- how much may wait ---- */

/* A client that sends, and lets the answers lie, or asks for the same many times in one request, would take all memory in
 * the end. */
static void cut_off(struct client *c)
{
	uint64_t before;

	pthread_mutex_lock(&clients.lock);
	before = clients.cut++;
	pthread_mutex_unlock(&clients.lock);
	if (before == 0)
		fprintf(stderr, "kvstore: a client is cut off: %zu bytes of its requests wait%s; all clients have %zu bytes "
			"(--client-memory)\n", c->in.used, c->out.over ? ", and there is no room for the answer" : "",
			atomic_load(&buf_held));
	c->closing = true;
}

/* ---- reading and writing ---- */

/* Reads behind what is there; false: there will be no more. Without `flags` it waits. */
static bool read_more(struct client *c, int flags)
{
	ssize_t n;

	if (c->in.room - c->in.used < READ_MIN)
		buf_reserve(&c->in, READ_BIG);
	do {
		n = c->wire->recv(c, c->in.data + c->in.used, c->in.room - c->in.used, flags);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		c->in.used += (size_t)n;
	if (!buf_is_small(&c->in) && n > 0 && atomic_load(&buf_held) > buf_most) {
		cut_off(c);
		return false;
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

/* The socket is full: the other side does not read. Perhaps because it still writes: then take that in. */
static bool wait_writable(struct client *c)
{
	int events = POLLOUT, ready;

	if (c->in.used >= LATE_MAX) {
		cut_off(c);
		return false;
	}
	if (!c->ended)
		events |= POLLIN;
	ready = c->wire->poll(c, events);
	if (ready < 0)
		return errno == EINTR;
	if (ready & POLLERR)
		return false;
	if (ready & events & POLLIN)
		c->ended = !read_more(c, MSG_DONTWAIT);
	return true;
}

/* Writes the answers. True: meanwhile more has been read, so no request may point into the input buffer. */
static bool flush(struct client *c)
{
	size_t done = 0, before = c->in.used;

	while (done < c->out.used) {
		ssize_t n = c->wire->send(c, c->out.data + done, c->out.used - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0) {
			done += (size_t)n;
		} else if (errno != EINTR && ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait_writable(c))) {
			c->closing = true;
			break;
		}
	}
	buf_release(&c->out);
	return c->in.used > before;
}

void client_flush(struct client *c)
{
	size_t done = 0;

	while (done < c->out.used && !c->closing) {
		ssize_t n = c->wire->send(c, c->out.data + done, c->out.used - done, MSG_NOSIGNAL);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			c->closing = true;
	}
	buf_release(&c->out);
}

void client_forget_name(struct client *c)
{
	if (c->name == NULL)
		return;
	buf_uncount(strlen(c->name));
	free(c->name);
	c->name = NULL;
}

bool client_gone(struct client *c)
{
	char byte;
	ssize_t n = c->wire->recv(c, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Waits for bytes. A buffer that has grown is given back before the thread waits with nothing in it: only then, and not
 * between two batches that follow each other. */
static bool fill(struct client *c)
{
	if (c->ended)
		return false;
	if (c->in.used == 0 && !buf_is_small(&c->in)) {
		if (!read_more(c, MSG_DONTWAIT))
			return false;
		if (c->in.used > 0)
			return true;
		buf_release(&c->in);
	}
	if (c->in.used == 0)
		resp_release(&c->request);
	if (!read_more(c, 0))
		return false;
	if (c->in.used == c->in.room && buf_is_small(&c->in))
		buf_reserve(&c->in, READ_BIG); /* more is to come */
	return c->in.used <= INPUT_MAX;
}

/* Answers every request that is complete in the buffer. */
static void answer_all(struct client *c)
{
	size_t taken = 0;
	enum resp_result result = RESP_MORE;

	while (!c->closing && taken < c->in.used) {
		result = resp_parse(&c->request, c->in.data + taken, c->in.used - taken);
		if (result != RESP_COMPLETE)
			break;
		if (c->request.count > 0)
			command_run(c);
		if (c->out.over) {
			cut_off(c);
			return;
		}
		taken += c->request.at;
		resp_next(&c->request);
		if (c->out.used >= FLUSH_AT)
			flush(c);
	}
	if (result == RESP_ERROR) {
		reply_errorf(&c->out, "ERR %s", c->request.error);
		c->closing = true;
	}
	buf_drop(&c->in, taken);
}

static void serve(struct client *c)
{
	while (!c->closing && fill(c)) {
		do
			answer_all(c);
		while (flush(c));
	}
}

/* ---- coming and going ---- */

static bool enter(struct client *c)
{
	bool may;

	pthread_mutex_lock(&clients.lock);
	may = !clients.stopping;
	if (may) {
		c->id = clients.next_id++;
		c->next = clients.first;
		if (c->next != NULL)
			c->next->prev = c;
		clients.first = c;
	}
	pthread_mutex_unlock(&clients.lock);
	return may;
}

static void leave(struct client *c)
{
	pthread_mutex_lock(&clients.lock);
	if (c->next != NULL)
		c->next->prev = c->prev;
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		clients.first = c->next;
	clients.requests += c->requests;
	pthread_mutex_unlock(&clients.lock);
	c->wire->close(c); /* nobody finds it in the list any more */
}

static void live(const struct wire *wire, int fd, void *line)
{
	struct client c;

	memset(&c, 0, offsetof(struct client, in)); /* and no page of the stack that is not needed */
	c.wire = wire;
	c.fd = fd;
	c.line = line;
	c.since = store_now();
	buf_init(&c.in, c.in_small, sizeof c.in_small);
	buf_init(&c.out, c.out_small, sizeof c.out_small);
	c.out.bounded = true;
	resp_init(&c.request);
	if (enter(&c)) {
		serve(&c);
		leave(&c);
	} else {
		wire->close(&c);
	}
	buf_release(&c.in);
	buf_release(&c.out);
	resp_release(&c.request);
	client_forget_name(&c);
	pthread_mutex_lock(&clients.lock);
	if (--clients.count == 0)
		pthread_cond_signal(&clients.none);
	pthread_mutex_unlock(&clients.lock);
}

static void *client_thread(void *fd)
{
	live(&socket_wire, (int)(intptr_t)fd, NULL);
	return NULL;
}

/* What it leads to begins with this. */
static void *line_thread(void *line)
{
	live(*(const struct wire **)line, -1, line);
	return NULL;
}

/* One more, if there may be. */
static bool count_one(void)
{
	bool may;

	pthread_mutex_lock(&clients.lock);
	may = clients.count < server.maxclients;
	if (may)
		clients.count++;
	else
		clients.refused++;
	pthread_mutex_unlock(&clients.lock);
	return may;
}

static const char too_many[] = "-ERR max number of clients reached\r\n";

static void refuse(int fd)
{
	send(fd, too_many, sizeof too_many - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static bool start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	if (!count_one())
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, server.stack);
	error = pthread_create(&thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	if (error == 0)
		return true;
	pthread_mutex_lock(&clients.lock);
	clients.count--;
	clients.refused++;
	pthread_mutex_unlock(&clients.lock);
	return false;
}

bool client_start(int fd)
{
	if (start(client_thread, (void *)(intptr_t)fd))
		return true;
	refuse(fd);
	return false;
}

bool client_start_on(const struct wire **line)
{
	struct client c = { .wire = *line, .fd = -1, .line = line };

	if (start(line_thread, line))
		return true;
	(*line)->send(&c, too_many, sizeof too_many - 1, MSG_DONTWAIT);
	(*line)->close(&c);
	return false;
}

static void shut_all(int how)
{
	pthread_mutex_lock(&clients.lock);
	clients.stopping = true;
	for (struct client *c = clients.first; c != NULL; c = c->next)
		c->wire->shut(c, how);
	pthread_mutex_unlock(&clients.lock);
}

static bool wait_none(unsigned seconds)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&clients.lock);
	while (clients.count > 0 && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&clients.none, &clients.lock, &until);
	pthread_mutex_unlock(&clients.lock);
	return error != ETIMEDOUT;
}

void client_stop_all(unsigned seconds)
{
	shut_all(SHUT_RD); /* a read gives what has arrived, then the end */
	blocked_stop();
	if (!wait_none(seconds)) {
		shut_all(SHUT_RDWR);
		wait_none(seconds);
	}
}

void client_each(void (*visit)(struct client *c, void *arg), void *arg)
{
	pthread_mutex_lock(&clients.lock);
	for (struct client *c = clients.first; c != NULL; c = c->next)
		visit(c, arg);
	pthread_mutex_unlock(&clients.lock);
}

void client_totals(struct client_totals *t)
{
	pthread_mutex_lock(&clients.lock);
	*t = (struct client_totals){ .now = clients.count, .ever = clients.next_id - 1, .refused = clients.refused,
		.cut = clients.cut, .requests = clients.requests };
	for (struct client *c = clients.first; c != NULL; c = c->next)
		t->requests += c->requests;
	pthread_mutex_unlock(&clients.lock);
}
