/* resp.h - requests out of a stream of bytes: arrays of bulk strings, or lines typed by hand. It reads what is there,
 * remembers how far it came and copies nothing: arguments lie in the caller's buffer. */
#ifndef KVSTORE_RESP_H
#define KVSTORE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RESP_LINE_MAX = 64 << 10, /* a line: one typed by hand, or the length of what follows */
	RESP_BULK_MAX = 512 << 20, /* one argument */
	RESP_ARGS_MAX = 1 << 20, /* arguments of a request */
	RESP_FEW = 6, /* so many need no memory of their own */
};

struct arg {
	size_t at, size; /* from the request's beginning */
	const char *data; /* valid when the request is complete */
	uint64_t hash; /* of a key: the store's */
};

struct resp {
	struct arg *args;
	size_t count, room;
	size_t at; /* bytes of this request that are understood */
	int64_t bulks; /* arguments that are to come */
	int64_t bulk; /* size of the one that comes now; -1: its length comes first */
	char error[48]; /* RESP_ERROR: what to tell the client */
	struct arg few[RESP_FEW];
};

enum resp_result {
	RESP_COMPLETE, /* args and count are valid until the buffer changes; at bytes make up the request */
	RESP_MORE, /* the buffer ends within the request */
	RESP_ERROR, /* and nothing that follows can be understood */
};

void resp_init(struct resp *r);

/* Goes on with the request that begins at data. A request without arguments is an empty line: no answer. */
enum resp_result resp_parse(struct resp *r, char *data, size_t size);

/* Makes ready for the next request. */
void resp_next(struct resp *r);
void resp_release(struct resp *r);

#endif
