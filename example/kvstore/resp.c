/* resp.c - the Redis protocol, version 2, the server's side. One struct resp a connection, used by its thread only. */
#include "resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "text.h"

void resp_init(struct resp *r)
{
	r->args = r->few;
	r->room = RESP_FEW;
	resp_next(r);
}

void resp_release(struct resp *r)
{
	if (r->args != r->few) {
		free(r->args);
		buf_uncount(r->room * sizeof *r->args);
	}
	resp_init(r);
}

void resp_next(struct resp *r)
{
	r->count = 0;
	r->at = 0;
	r->bulks = 0;
	r->bulk = -1;
}

static enum resp_result wrong(struct resp *r, const char *what)
{
	snprintf(r->error, sizeof r->error, "Protocol error: %s", what);
	return RESP_ERROR;
}

static void add_arg(struct resp *r, size_t at, size_t size)
{
	if (r->count == r->room) {
		struct arg *old = r->args == r->few ? NULL : r->args;

		r->args = must_realloc(old, 2 * r->room * sizeof *r->args);
		buf_count((old == NULL ? 2 : 1) * r->room * sizeof *r->args);
		if (old == NULL)
			memcpy(r->args, r->few, sizeof r->few);
		r->room *= 2;
	}
	r->args[r->count].at = at;
	r->args[r->count++].size = size;
}

static enum resp_result complete(struct resp *r, const char *data)
{
	for (size_t i = 0; i < r->count; i++)
		r->args[i].data = data + r->args[i].at;
	return RESP_COMPLETE;
}

/* ---- lines typed by hand: words between blanks, "with \n escapes" or 'without' ---- */

static bool blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character that an escape at s, behind its backslash, stands for; *s is behind it. */
static char escaped(const char **s, const char *last)
{
	static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
	const char *p = *s, *found;

	if (last - p > 2 && *p == 'x' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0) {
		*s += 3;
		return (char)(hex_digit(p[1]) * 16 + hex_digit(p[2]));
	}
	*s += 1;
	found = memchr(from, *p, sizeof from - 1);
	return found == NULL ? *p : to[found - from];
}

/* One word at s, written at `to`, which is never ahead of s; behind the word, or NULL: unbalanced quotes. */
static const char *word(const char *s, const char *last, char **to)
{
	char quote = 0;

	while (s < last && (quote || !blank(*s))) {
		if (quote == 0 && (*s == '"' || *s == '\'')) {
			quote = *s++;
		} else if (*s == quote) {
			if (++s < last && !blank(*s))
				return NULL;
			return s;
		} else if (quote == '"' && *s == '\\' && last - s > 1) {
			s++;
			*(*to)++ = escaped(&s, last);
		} else {
			s += quote == '\'' && last - s > 1 && s[0] == '\\' && s[1] == '\'';
			*(*to)++ = *s++;
		}
	}
	return quote ? NULL : s;
}

static enum resp_result parse_line(struct resp *r, char *data, size_t size)
{
	const char *newline = memchr(data, '\n', size), *s = data, *last = newline;
	char *to = data;

	if (newline == NULL)
		return size > RESP_LINE_MAX ? wrong(r, "too big inline request") : RESP_MORE;
	if (last > s && last[-1] == '\r')
		last--;
	for (;;) {
		char *start = to;

		while (s < last && blank(*s))
			s++;
		if (s == last)
			break;
		s = word(s, last, &to);
		if (s == NULL)
			return wrong(r, "unbalanced quotes in request");
		add_arg(r, (size_t)(start - data), (size_t)(to - start));
	}
	r->at = (size_t)(newline + 1 - data);
	return complete(r, data);
}

/* ---- arrays of bulk strings ---- */

/* The number in the line that begins at r->at with a mark. Moves r->at behind the line. */
static enum resp_result parse_length(struct resp *r, const char *data, size_t size, int64_t *value, const char *what)
{
	const char *line = data + r->at;
	size_t rest = size - r->at;
	const char *end = rest ? memchr(line, '\r', rest) : NULL;

	if (end == NULL) {
		if (rest <= RESP_LINE_MAX)
			return RESP_MORE;
		snprintf(r->error, sizeof r->error, "Protocol error: too big %s count string", what);
		return RESP_ERROR;
	}
	if ((size_t)(end - line) + 2 > rest)
		return RESP_MORE;
	if (!text_to_int(line + 1, (size_t)(end - line) - 1, value))
		*value = INT64_MAX;
	r->at += (size_t)(end - line) + 2;
	return RESP_COMPLETE;
}

static enum resp_result parse_head(struct resp *r, const char *data, size_t size)
{
	enum resp_result result = parse_length(r, data, size, &r->bulks, "mbulk");

	if (result == RESP_COMPLETE && r->bulks > RESP_ARGS_MAX)
		return wrong(r, "invalid multibulk length");
	return result;
}

static enum resp_result parse_bulk_head(struct resp *r, const char *data, size_t size)
{
	char mark = data[r->at];
	enum resp_result result = parse_length(r, data, size, &r->bulk, "bulk");

	if (result != RESP_COMPLETE)
		return result;
	if (mark != '$') {
		snprintf(r->error, sizeof r->error, "Protocol error: expected '$', got '%c'", mark);
		return RESP_ERROR;
	}
	if (r->bulk < 0 || r->bulk > RESP_BULK_MAX)
		return wrong(r, "invalid bulk length");
	return RESP_COMPLETE;
}

enum resp_result resp_parse(struct resp *r, char *data, size_t size)
{
	enum resp_result result;

	if (r->at == 0) {
		if (size == 0)
			return RESP_MORE;
		if (data[0] != '*')
			return parse_line(r, data, size);
		result = parse_head(r, data, size);
		if (result != RESP_COMPLETE)
			return result;
	}
	for (; r->bulks > 0; r->bulks--) {
		if (r->bulk < 0) {
			result = size > r->at ? parse_bulk_head(r, data, size) : RESP_MORE;
			if (result != RESP_COMPLETE)
				return result;
		}
		if (size - r->at < (size_t)r->bulk + 2)
			return RESP_MORE;
		add_arg(r, r->at, (size_t)r->bulk);
		r->at += (size_t)r->bulk + 2;
		r->bulk = -1;
	}
	return complete(r, data);
}
