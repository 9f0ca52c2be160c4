/* client.h - a connection and the thread that serves it. */
#ifndef KVSTORE_CLIENT_H
#define KVSTORE_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "resp.h"

enum {
	CLIENT_IN = 736, /* bytes of requests and of answers that need no memory but the thread's stack: */
	CLIENT_OUT = 160, /* these, what else the thread needs while it waits, and little more fit into a page */
};

struct client;

/* How a connection's bytes come and go; as recv, send, poll of one descriptor without end, shutdown and close. */
struct wire {
	ssize_t (*recv)(struct client *c, void *data, size_t n, int flags);
	ssize_t (*send)(struct client *c, const void *data, size_t n, int flags);
	int (*poll)(struct client *c, int events); /* what is ready; POLLERR */
	void (*shut)(struct client *c, int how);
	void (*close)(struct client *c);
};

struct client {
	struct client *next, *prev; /* in the list of all */
	const struct wire *wire;
	int fd; /* of a socket; else -1 */
	void *line; /* what else the wire leads to */
	bool closing; /* no request is answered any more */
	bool ended; /* the other side sends nothing any more */
	uint64_t id;
	int64_t since; /* ms since 1970 */
	atomic_ullong requests; /* written by the client's thread, read by INFO */
	char *name; /* CLIENT SETNAME, or NULL */
	struct waiter *waiter; /* in a blocking command: see blocked.h */
	struct resp request;
	struct buf in, out;
	char in_small[CLIENT_IN], out_small[CLIENT_OUT];
};

/* A thread for the new connection; false: there can be none, and the client has been told why. Takes the descriptor. */
bool client_start(int fd);
/* The same for what is no socket, and begins with its wire. */
bool client_start_on(const struct wire **line);

/* Writes the answers that there are, from within a command. */
void client_flush(struct client *c);

/* It has none. */
void client_forget_name(struct client *c);

/* Is the connection broken, or has the other side closed it? Does not wait. */
bool client_gone(struct client *c);

struct client_totals {
	size_t now;
	uint64_t ever, refused, cut, requests; /* cut: off, because too much of theirs waited */
};
void client_totals(struct client_totals *t);
void client_each(void (*visit)(struct client *c, void *arg), void *arg);

/* From now on connections end after the requests that have already arrived; waits until all have, at most so many
 * seconds; then cuts those off that do not read their answers. */
void client_stop_all(unsigned seconds);

#endif
