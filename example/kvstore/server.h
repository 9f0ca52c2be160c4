/* server.h - what the whole server knows. */
#ifndef KVSTORE_SERVER_H
#define KVSTORE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVSTORE_VERSION "7.0.0" /* of the server whose commands these are */

struct server {
	/* constant after start */
	const char *bind, *unixsocket, *space;
	int port;
	size_t maxclients, stack;
	int64_t since; /* ms since 1970 */
};

extern struct server server;

/* Asks the server to end, as SIGTERM does. */
void server_stop(void);

#endif
