/* reply.c - answers in the Redis protocol, version 2. */
#include "reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

/* A mark, the text, the line's end. */
static void line(struct buf *out, char mark, const char *text, size_t size)
{
	char *p = buf_reserve(out, size + 3);

	if (p == NULL)
		return;
	p[0] = mark;
	memcpy(p + 1, text, size);
	p[size + 1] = '\r';
	p[size + 2] = '\n';
	out->used += size + 3;
}

static void number(struct buf *out, char mark, int64_t value)
{
	char digits[TEXT_INT];

	line(out, mark, digits, text_from_int(digits, value));
}

void reply_status(struct buf *out, const char *status)
{
	line(out, '+', status, strlen(status));
}

void reply_error(struct buf *out, const char *error)
{
	line(out, '-', error, strlen(error));
}

void reply_errorf(struct buf *out, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (char *p = text; *p; p++)
		if (*p == '\r' || *p == '\n')
			*p = ' ';
	reply_error(out, text);
}

void reply_int(struct buf *out, int64_t value)
{
	number(out, ':', value);
}

void reply_array(struct buf *out, size_t count)
{
	number(out, '*', (int64_t)count);
}

void reply_bulk(struct buf *out, const char *data, size_t size)
{
	char *p;

	number(out, '$', (int64_t)size);
	p = buf_reserve(out, size + 2);
	if (p == NULL)
		return;
	memcpy(p, data, size);
	p[size] = '\r';
	p[size + 1] = '\n';
	out->used += size + 2;
}

void reply_text(struct buf *out, const char *text)
{
	reply_bulk(out, text, strlen(text));
}

void reply_null(struct buf *out)
{
	buf_add(out, "$-1\r\n", 5);
}

void reply_null_array(struct buf *out)
{
	buf_add(out, "*-1\r\n", 5);
}
