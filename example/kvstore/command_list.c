/* command_list.c - commands on lists. A list without elements is no key. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocked.h"
#include "command.h"
#include "reply.h"
#include "text.h"

static void push(struct client *c, bool left, bool only_there)
{
	struct entry *e;

	if (!command_find(c, 1, STORE_LIST, &e))
		return;
	if (e == NULL && only_there) {
		reply_int(&c->out, 0);
		return;
	}
	if (e == NULL)
		e = store_add(command_arg(c, 1), STORE_LIST);
	for (size_t i = 2; i < c->request.count; i++)
		list_push(&e->list, left, bytes_new(command_arg(c, i)->data, command_arg(c, i)->size));
	reply_int(&c->out, (int64_t)e->list.count);
	blocked_serve(e);
}

void do_lpush(struct client *c)
{
	push(c, true, false);
}

void do_rpush(struct client *c)
{
	push(c, false, false);
}

void do_lpushx(struct client *c)
{
	push(c, true, true);
}

void do_rpushx(struct client *c)
{
	push(c, false, true);
}

static void pop_one(struct client *c, struct entry *e, bool left)
{
	struct bytes *value = list_pop(&e->list, left);

	reply_bulk(&c->out, value->data, value->size);
	free(value);
	if (e->list.count == 0)
		store_remove(e);
}

static void pop(struct client *c, bool left)
{
	bool many = c->request.count == 3;
	int64_t n = 1;
	struct entry *e;

	if (c->request.count > 3) {
		command_wrong_arity(c);
		return;
	}
	if (many && (!text_to_int(command_arg(c, 2)->data, command_arg(c, 2)->size, &n) || n < 0)) {
		reply_error(&c->out, "ERR value is out of range, must be positive");
		return;
	}
	if (!command_find(c, 1, STORE_LIST, &e))
		return;
	if (e == NULL) {
		many ? reply_null_array(&c->out) : reply_null(&c->out);
		return;
	}
	if ((uint64_t)n > e->list.count)
		n = (int64_t)e->list.count;
	if (many)
		reply_array(&c->out, (size_t)n);
	for (; n > 0; n--)
		pop_one(c, e, left);
}

void do_lpop(struct client *c)
{
	pop(c, true);
}

void do_rpop(struct client *c)
{
	pop(c, false);
}

void do_llen(struct client *c)
{
	struct entry *e;

	if (command_find(c, 1, STORE_LIST, &e))
		reply_int(&c->out, e == NULL ? 0 : (int64_t)e->list.count);
}

void do_lindex(struct client *c)
{
	struct entry *e;
	int64_t i, count;

	if (!command_find(c, 1, STORE_LIST, &e))
		return;
	if (e == NULL) {
		reply_null(&c->out);
		return;
	}
	if (!command_int(c, 2, &i))
		return;
	count = (int64_t)e->list.count;
	if (i < 0)
		i += count;
	if (i < 0 || i >= count)
		reply_null(&c->out);
	else
		reply_bulk(&c->out, list_at(&e->list, (size_t)i)->data, list_at(&e->list, (size_t)i)->size);
}

void do_lrange(struct client *c)
{
	int64_t from, to, count;
	struct entry *e;

	if (!command_int(c, 2, &from) || !command_int(c, 3, &to) || !command_find(c, 1, STORE_LIST, &e))
		return;
	count = e == NULL ? 0 : (int64_t)e->list.count;
	if (from < 0)
		from = from + count < 0 ? 0 : from + count;
	if (to < 0)
		to += count;
	if (to >= count)
		to = count - 1;
	reply_array(&c->out, from > to ? 0 : (size_t)(to - from + 1));
	for (; from <= to; from++) {
		struct bytes *value = list_at(&e->list, (size_t)from);

		reply_bulk(&c->out, value->data, value->size);
	}
}

/* ---- waiting for an element ---- */

/* The last argument: seconds, 0 for ever. */
static bool timeout(struct client *c, int64_t *deadline)
{
	const struct arg *a = command_arg(c, c->request.count - 1);
	char text[64], *end;
	double seconds = 0;
	bool bad = a->size == 0 || a->size >= sizeof text;

	if (!bad) {
		memcpy(text, a->data, a->size);
		text[a->size] = '\0';
		seconds = strtod(text, &end);
		bad = *end != '\0' || text[0] == ' ' || isnan(seconds);
	}
	if (bad)
		reply_error(&c->out, "ERR timeout is not a float or out of range");
	else if (seconds < 0)
		reply_error(&c->out, "ERR timeout is negative");
	else if (seconds > (double)(INT64_MAX / 2000))
		reply_error(&c->out, "ERR timeout is out of range");
	else
		*deadline = seconds == 0 ? 0 : store_now() + (int64_t)ceil(seconds * 1000);
	return !bad && seconds >= 0 && seconds <= (double)(INT64_MAX / 2000);
}

static void pop_or_wait(struct client *c, bool left)
{
	int64_t deadline = 0;

	if (!timeout(c, &deadline))
		return;
	for (size_t i = 1; i < c->request.count - 1; i++) {
		struct entry *e;

		if (!command_find(c, i, STORE_LIST, &e))
			return;
		if (e != NULL) {
			reply_array(&c->out, 2);
			reply_bulk(&c->out, command_arg(c, i)->data, command_arg(c, i)->size);
			pop_one(c, e, left);
			return;
		}
	}
	blocked_enter(c, command_arg(c, 1), c->request.count - 2, left, deadline);
}

void do_blpop(struct client *c)
{
	pop_or_wait(c, true);
}

void do_brpop(struct client *c)
{
	pop_or_wait(c, false);
}
