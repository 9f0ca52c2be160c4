/* command_string.c - commands on strings. */
#include <stdlib.h>

#include "command.h"
#include "reply.h"
#include "text.h"

/* The key's string from now on; the entry, which the key may have had before, is of any type. */
static struct entry *put(const struct arg *key, struct entry *e, const struct arg *value)
{
	if (e != NULL && e->type != STORE_STRING) {
		store_remove(e);
		e = NULL;
	}
	if (e == NULL)
		e = store_add(key, STORE_STRING);
	store_set(e, value->data, value->size);
	return e;
}

static struct entry *put_forever(const struct arg *key, const struct arg *value)
{
	struct entry *e = put(key, store_find(key), value);

	if (e->expires != 0)
		store_expire_at(e, 0);
	return e;
}

static void reply_string(struct client *c, const struct entry *e)
{
	if (e == NULL)
		reply_null(&c->out);
	else
		reply_bulk(&c->out, e->string->data, e->string->size);
}

void do_get(struct client *c)
{
	struct entry *e;

	if (command_find(c, 1, STORE_STRING, &e))
		reply_string(c, e);
}

void do_getset(struct client *c)
{
	struct entry *e;

	if (!command_find(c, 1, STORE_STRING, &e))
		return;
	reply_string(c, e);
	put_forever(command_arg(c, 1), command_arg(c, 2));
}

void do_getdel(struct client *c)
{
	struct entry *e;

	if (!command_find(c, 1, STORE_STRING, &e))
		return;
	reply_string(c, e);
	if (e != NULL)
		store_remove(e);
}

/* ---- SET ---- */

struct set_options {
	bool nx, xx, get, keep;
	bool expires, seconds, absolute;
	size_t when; /* the argument */
};

/* Argument i tells when the key ends: a number follows. */
static bool expiry_option(struct client *c, size_t i, struct set_options *o)
{
	static const struct {
		const char *name;
		bool seconds, absolute;
	} form[] = { { "EX", true, false }, { "PX", false, false }, { "EXAT", true, true }, { "PXAT", false, true } };

	for (size_t f = 0; f < 4; f++) {
		if (!command_is(c, i, form[f].name))
			continue;
		o->seconds = form[f].seconds;
		o->absolute = form[f].absolute;
		o->when = i + 1;
		return o->expires = true;
	}
	return false;
}

static bool set_options(struct client *c, struct set_options *o)
{
	for (size_t i = 3; i < c->request.count; i++) {
		bool had = o->expires || o->keep;

		if (command_is(c, i, "NX") && !o->xx) {
			o->nx = true;
		} else if (command_is(c, i, "XX") && !o->nx) {
			o->xx = true;
		} else if (command_is(c, i, "GET")) {
			o->get = true;
		} else if (command_is(c, i, "KEEPTTL") && !o->expires) {
			o->keep = true;
		} else if (!had && i + 1 < c->request.count && expiry_option(c, i, o)) {
			i++;
		} else {
			command_syntax_error(c);
			return false;
		}
	}
	return true;
}

/* When the number in argument i, of seconds or ms from now or since 1970, is over. */
static bool expiry_time(struct client *c, size_t i, bool seconds, bool absolute, int64_t *when)
{
	int64_t n, now = absolute ? 0 : store_now();

	if (!command_int(c, i, &n))
		return false;
	if (n <= 0 || (seconds && n > INT64_MAX / 1000) || (seconds ? n * 1000 : n) > INT64_MAX - now) {
		command_bad_expiry(c);
		return false;
	}
	*when = (seconds ? n * 1000 : n) + now;
	return true;
}

void do_set(struct client *c)
{
	struct set_options o = { 0 };
	struct entry *e;
	int64_t when = 0;

	if (!set_options(c, &o) || (o.expires && !expiry_time(c, o.when, o.seconds, o.absolute, &when)))
		return;
	e = store_find(command_arg(c, 1));
	if (o.get) {
		if (e != NULL && e->type != STORE_STRING) {
			command_wrong_type(c);
			return;
		}
		reply_string(c, e);
	}
	if ((o.nx && e != NULL) || (o.xx && e == NULL)) {
		if (!o.get)
			reply_null(&c->out);
		return;
	}
	if (o.keep && e != NULL)
		when = e->expires;
	e = put(command_arg(c, 1), e, command_arg(c, 2));
	if (e->expires != when)
		store_expire_at(e, when);
	if (!o.get)
		reply_status(&c->out, "OK");
}

void do_setnx(struct client *c)
{
	bool there = store_find(command_arg(c, 1)) != NULL;

	if (!there)
		put_forever(command_arg(c, 1), command_arg(c, 2));
	reply_int(&c->out, !there);
}

static void set_expiring(struct client *c, bool seconds)
{
	int64_t when;

	if (!expiry_time(c, 2, seconds, false, &when))
		return;
	store_expire_at(put_forever(command_arg(c, 1), command_arg(c, 3)), when);
	reply_status(&c->out, "OK");
}

void do_setex(struct client *c)
{
	set_expiring(c, true);
}

void do_psetex(struct client *c)
{
	set_expiring(c, false);
}

/* ---- parts and numbers ---- */

void do_append(struct client *c)
{
	const struct arg *value = command_arg(c, 2);
	struct entry *e;

	if (!command_find(c, 1, STORE_STRING, &e))
		return;
	if (e == NULL) {
		e = put(command_arg(c, 1), NULL, value);
	} else if (e->string->size + value->size > RESP_BULK_MAX) {
		reply_error(&c->out, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
		return;
	} else {
		store_append(e, value->data, value->size);
	}
	reply_int(&c->out, (int64_t)e->string->size);
}

void do_strlen(struct client *c)
{
	struct entry *e;

	if (command_find(c, 1, STORE_STRING, &e))
		reply_int(&c->out, e == NULL ? 0 : (int64_t)e->string->size);
}

static void add(struct client *c, int64_t change)
{
	char digits[TEXT_INT];
	struct entry *e;
	int64_t value = 0;

	if (!command_find(c, 1, STORE_STRING, &e))
		return;
	if (e != NULL && !text_to_int(e->string->data, e->string->size, &value)) {
		reply_error(&c->out, "ERR value is not an integer or out of range");
		return;
	}
	if (__builtin_add_overflow(value, change, &value)) {
		reply_error(&c->out, "ERR increment or decrement would overflow");
		return;
	}
	if (e == NULL)
		e = store_add(command_arg(c, 1), STORE_STRING);
	store_set(e, digits, text_from_int(digits, value));
	reply_int(&c->out, value);
}

void do_incr(struct client *c)
{
	add(c, 1);
}

void do_decr(struct client *c)
{
	add(c, -1);
}

void do_incrby(struct client *c)
{
	int64_t n;

	if (command_int(c, 2, &n))
		add(c, n);
}

void do_decrby(struct client *c)
{
	int64_t n;

	if (!command_int(c, 2, &n))
		return;
	if (n == INT64_MIN)
		reply_error(&c->out, "ERR decrement would overflow");
	else
		add(c, -n);
}

/* ---- several at once ---- */

void do_mget(struct client *c)
{
	reply_array(&c->out, c->request.count - 1);
	for (size_t i = 1; i < c->request.count; i++) {
		struct entry *e = store_find(command_arg(c, i));

		reply_string(c, e != NULL && e->type == STORE_STRING ? e : NULL);
	}
}

void do_mset(struct client *c)
{
	if (c->request.count % 2 == 0) {
		command_wrong_arity(c);
		return;
	}
	for (size_t i = 1; i < c->request.count; i += 2)
		put_forever(command_arg(c, i), command_arg(c, i + 1));
	reply_status(&c->out, "OK");
}

void do_msetnx(struct client *c)
{
	if (c->request.count % 2 == 0) {
		command_wrong_arity(c);
		return;
	}
	for (size_t i = 1; i < c->request.count; i += 2) {
		if (store_find(command_arg(c, i)) != NULL) {
			reply_int(&c->out, 0);
			return;
		}
	}
	for (size_t i = 1; i < c->request.count; i += 2)
		put_forever(command_arg(c, i), command_arg(c, i + 1));
	reply_int(&c->out, 1);
}
