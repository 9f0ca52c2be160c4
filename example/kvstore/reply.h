/* reply.h - answers, written behind each other into a connection's buffer. No stdio: a connection's stack stays small. */
#ifndef KVSTORE_REPLY_H
#define KVSTORE_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

void reply_status(struct buf *out, const char *status); /* "OK" */
void reply_error(struct buf *out, const char *error); /* "ERR syntax error" */
void reply_int(struct buf *out, int64_t value);
void reply_bulk(struct buf *out, const char *data, size_t size);
void reply_text(struct buf *out, const char *text); /* a bulk */
void reply_array(struct buf *out, size_t count); /* its elements follow */
void reply_null(struct buf *out);
void reply_null_array(struct buf *out);

/* The error made of a format; what a client sent and is quoted here must not break the line: it does not. */
void reply_errorf(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
