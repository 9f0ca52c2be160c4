/* command_key.c - commands on keys of any type. */
#include "command.h"
#include "reply.h"
#include "text.h"

void do_del(struct client *c)
{
	int64_t n = 0;

	for (size_t i = 1; i < c->request.count; i++) {
		struct entry *e = store_find(command_arg(c, i));

		if (e != NULL) {
			store_remove(e);
			n++;
		}
	}
	reply_int(&c->out, n);
}

void do_exists(struct client *c)
{
	int64_t n = 0;

	for (size_t i = 1; i < c->request.count; i++)
		n += store_find(command_arg(c, i)) != NULL;
	reply_int(&c->out, n);
}

static const char *const type_name[] = { [STORE_STRING] = "string", [STORE_LIST] = "list" };

void do_type(struct client *c)
{
	struct entry *e = store_find(command_arg(c, 1));

	reply_status(&c->out, e == NULL ? "none" : type_name[e->type]);
}

/* ---- time ---- */

struct expire_options {
	bool nx, xx, gt, lt;
};

static bool expire_options(struct client *c, struct expire_options *o)
{
	for (size_t i = 3; i < c->request.count; i++) {
		if (command_is(c, i, "NX")) {
			o->nx = true;
		} else if (command_is(c, i, "XX")) {
			o->xx = true;
		} else if (command_is(c, i, "GT")) {
			o->gt = true;
		} else if (command_is(c, i, "LT")) {
			o->lt = true;
		} else {
			const struct arg *a = command_arg(c, i);

			reply_errorf(&c->out, "ERR Unsupported option %.*s", (int)(a->size < 128 ? a->size : 128), a->data);
			return false;
		}
	}
	if (o->nx && (o->xx || o->gt || o->lt))
		reply_error(&c->out, "ERR NX and XX, GT or LT options at the same time are not compatible");
	else if (o->gt && o->lt)
		reply_error(&c->out, "ERR GT and LT options at the same time are not compatible");
	else
		return true;
	return false;
}

/* A key that never ends ends later than any other. */
static bool expire_allowed(const struct expire_options *o, int64_t old, int64_t when)
{
	return !(o->nx && old != 0) && !(o->xx && old == 0) && !(o->gt && (old == 0 || when <= old)) &&
		!(o->lt && old != 0 && when >= old);
}

static void end_key(struct client *c, int64_t unit, int64_t from)
{
	struct expire_options o = { 0 };
	struct entry *e;
	int64_t when;

	if (!expire_options(c, &o) || !command_int(c, 2, &when))
		return;
	if (__builtin_mul_overflow(when, unit, &when) || __builtin_add_overflow(when, from, &when)) {
		command_bad_expiry(c);
		return;
	}
	e = store_find(command_arg(c, 1));
	if (e == NULL || !expire_allowed(&o, e->expires, when)) {
		reply_int(&c->out, 0);
		return;
	}
	if (when <= store_now())
		store_remove(e);
	else
		store_expire_at(e, when);
	reply_int(&c->out, 1);
}

void do_expire(struct client *c)
{
	end_key(c, 1000, store_now());
}

void do_pexpire(struct client *c)
{
	end_key(c, 1, store_now());
}

void do_expireat(struct client *c)
{
	end_key(c, 1000, 0);
}

void do_pexpireat(struct client *c)
{
	end_key(c, 1, 0);
}

static void time_left(struct client *c, int64_t unit)
{
	struct entry *e = store_find(command_arg(c, 1));

	if (e == NULL || e->expires == 0)
		reply_int(&c->out, e == NULL ? -2 : -1);
	else
		reply_int(&c->out, (e->expires - store_now() + unit / 2) / unit);
}

void do_ttl(struct client *c)
{
	time_left(c, 1000);
}

void do_pttl(struct client *c)
{
	time_left(c, 1);
}

void do_persist(struct client *c)
{
	struct entry *e = store_find(command_arg(c, 1));
	bool does = e != NULL && e->expires != 0;

	if (does)
		store_expire_at(e, 0);
	reply_int(&c->out, does);
}

/* ---- all of them ---- */

/* Keys are collected behind the answer's head, which is written when their number is known. */
struct search {
	const struct arg *pattern; /* NULL: every one */
	int type; /* -1: every one */
	int64_t now;
	size_t found;
	struct buf keys;
	char small[512];
};

static void search_visit(const struct entry *e, void *arg)
{
	struct search *s = arg;

	if ((e->expires != 0 && e->expires <= s->now) || (s->type >= 0 && (int)e->type != s->type))
		return;
	if (s->pattern != NULL && !text_matches(s->pattern->data, s->pattern->size, e->key, e->size))
		return;
	reply_bulk(&s->keys, e->key, e->size);
	s->found++;
}

static void search_reply(struct client *c, struct search *s)
{
	reply_array(&c->out, s->found);
	buf_add(&c->out, s->keys.data, s->keys.used);
	c->out.over = c->out.over || s->keys.over;
	buf_release(&s->keys);
}

void do_keys(struct client *c)
{
	struct search s = { .pattern = command_arg(c, 1), .type = -1, .now = store_now() };

	buf_init(&s.keys, s.small, sizeof s.small);
	s.keys.bounded = true;
	store_each(search_visit, &s);
	search_reply(c, &s);
}

/* A name that is no type finds nothing. */
static int type_of_name(const struct arg *a)
{
	return text_is(a->data, a->size, "STRING") ? STORE_STRING : text_is(a->data, a->size, "LIST") ? STORE_LIST : 99;
}

static bool scan_options(struct client *c, struct search *s, int64_t *count)
{
	for (size_t i = 2; i < c->request.count; i += 2) {
		bool more = i + 1 < c->request.count;

		if (more && command_is(c, i, "COUNT")) {
			if (!command_int(c, i + 1, count))
				return false;
			if (*count < 1) {
				command_syntax_error(c);
				return false;
			}
		} else if (more && command_is(c, i, "MATCH")) {
			s->pattern = command_arg(c, i + 1);
		} else if (more && command_is(c, i, "TYPE")) {
			s->type = type_of_name(command_arg(c, i + 1));
		} else {
			command_syntax_error(c);
			return false;
		}
	}
	return true;
}

static bool cursor_of(const struct arg *a, uint64_t *cursor)
{
	*cursor = 0;
	for (size_t i = 0; i < a->size; i++) {
		unsigned digit = (unsigned char)a->data[i] - (unsigned)'0';

		if (digit > 9 || __builtin_mul_overflow(*cursor, 10, cursor) || __builtin_add_overflow(*cursor, digit, cursor))
			return false;
	}
	return a->size > 0;
}

void do_scan(struct client *c)
{
	struct search s = { .type = -1, .now = store_now() };
	char digits[TEXT_INT];
	int64_t count = 10;
	uint64_t cursor;

	if (!cursor_of(command_arg(c, 1), &cursor)) {
		reply_error(&c->out, "ERR invalid cursor");
		return;
	}
	if (!scan_options(c, &s, &count))
		return;
	buf_init(&s.keys, s.small, sizeof s.small);
	s.keys.bounded = true;
	cursor = store_scan(cursor, (size_t)count, search_visit, &s);
	reply_array(&c->out, 2);
	reply_bulk(&c->out, digits, text_from_int(digits, (int64_t)cursor));
	search_reply(c, &s);
}

void do_dbsize(struct client *c)
{
	size_t keys, expiring;

	store_count(&keys, &expiring);
	reply_int(&c->out, (int64_t)keys);
}

void do_flushall(struct client *c)
{
	if (c->request.count > 2 || (c->request.count == 2 && !command_is(c, 1, "SYNC") && !command_is(c, 1, "ASYNC"))) {
		command_syntax_error(c);
		return;
	}
	store_clear();
	reply_status(&c->out, "OK");
}
