/* command.c - the table of commands, how one is found and run, and what all of them use. */
#include "command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "blocked.h"
#include "reply.h"
#include "text.h"

const struct command command_table[] = {
#define COMMAND(name, function, arity, first, last, step, flags) { #name, function, arity, first, last, step, flags },
#include "command.def"
#undef COMMAND
};

const size_t command_count = sizeof command_table / sizeof *command_table;

/* ---- finding it ---- */

enum { SLOTS = 256, NAME_MAX_ = 16 };

static const struct command *slot[SLOTS];

/* Letters of either case, and every other character but not all, give the same; the comparison decides. */
static unsigned name_hash(const char *s, size_t n)
{
	unsigned h = (unsigned)n;

	for (size_t i = 0; i < n; i++)
		h = h * 31 + ((unsigned char)s[i] & 0xdfu);
	return (h ^ h >> 8) % SLOTS;
}

void command_init(void)
{
	for (size_t i = 0; i < command_count; i++) {
		unsigned h = name_hash(command_table[i].name, strlen(command_table[i].name));

		while (slot[h] != NULL)
			h = (h + 1) % SLOTS;
		slot[h] = &command_table[i];
	}
}

static const struct command *find(const struct arg *name)
{
	unsigned h;

	if (name->size > NAME_MAX_)
		return NULL;
	h = name_hash(name->data, name->size);
	while (slot[h] != NULL && !text_is(name->data, name->size, slot[h]->name))
		h = (h + 1) % SLOTS;
	return slot[h];
}

/* ---- running it ---- */

static void unknown(struct client *c)
{
	char args[160];
	size_t used = 0;

	args[0] = '\0';
	for (size_t i = 1; i < c->request.count && used < 128; i++) {
		const struct arg *a = command_arg(c, i);
		int most = (int)(128 - used);

		if (a->size < (size_t)most)
			most = (int)a->size;
		used += (size_t)snprintf(args + used, sizeof args - used, "'%.*s' ", most, a->data);
	}
	reply_errorf(&c->out, "ERR unknown command '%.*s', with args beginning with: %s",
		(int)(command_arg(c, 0)->size < 128 ? command_arg(c, 0)->size : 128), command_arg(c, 0)->data, args);
}

/* Hashes the keys; the set of their shards. */
static uint64_t keys_of(struct client *c, const struct command *command)
{
	uint64_t shards = command->flags & COMMAND_ALL ? STORE_ALL : 0;
	size_t last = command->last < 0 ? c->request.count - (size_t)-command->last : (size_t)command->last;

	if (command->first == 0)
		return shards;
	for (size_t i = (size_t)command->first; i <= last; i += (size_t)command->step) {
		store_hash(&c->request.args[i]);
		shards |= store_shard(&c->request.args[i]);
	}
	return shards;
}

void command_run(struct client *c)
{
	const struct command *command = find(command_arg(c, 0));
	int count = (int)c->request.count;
	uint64_t shards;

	atomic_store_explicit(&c->requests, atomic_load_explicit(&c->requests, memory_order_relaxed) + 1,
		memory_order_relaxed);
	if (command == NULL) {
		unknown(c);
		return;
	}
	if (command->arity > 0 ? count != command->arity : count < -command->arity) {
		command_wrong_arity(c);
		return;
	}
	shards = keys_of(c, command);
	store_lock(shards);
	command->run(c);
	store_unlock(shards);
	if (c->waiter != NULL)
		blocked_wait(c);
}

/* ---- for the commands ---- */

bool command_is(const struct client *c, size_t i, const char *upper)
{
	return i < c->request.count && text_is(command_arg(c, i)->data, command_arg(c, i)->size, upper);
}

bool command_int(struct client *c, size_t i, int64_t *value)
{
	const struct arg *a = command_arg(c, i);

	if (text_to_int(a->data, a->size, value))
		return true;
	reply_error(&c->out, "ERR value is not an integer or out of range");
	return false;
}

bool command_find(struct client *c, size_t i, enum store_type type, struct entry **e)
{
	*e = store_find(command_arg(c, i));
	if (*e == NULL || (*e)->type == type)
		return true;
	command_wrong_type(c);
	return false;
}

void command_wrong_type(struct client *c)
{
	reply_error(&c->out, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void command_syntax_error(struct client *c)
{
	reply_error(&c->out, "ERR syntax error");
}

/* The command's name as it is in messages. */
static const char *lower_name(struct client *c, char name[NAME_MAX_ + 1])
{
	const struct arg *a = command_arg(c, 0);
	size_t n = a->size < NAME_MAX_ ? a->size : NAME_MAX_;

	for (size_t i = 0; i < n; i++)
		name[i] = (char)tolower((unsigned char)a->data[i]);
	name[n] = '\0';
	return name;
}

void command_wrong_arity(struct client *c)
{
	char name[NAME_MAX_ + 1];

	reply_errorf(&c->out, "ERR wrong number of arguments for '%s' command", lower_name(c, name));
}

void command_bad_expiry(struct client *c)
{
	char name[NAME_MAX_ + 1];

	reply_errorf(&c->out, "ERR invalid expire time in '%s' command", lower_name(c, name));
}

void command_unknown_sub(struct client *c)
{
	const struct arg *sub = command_arg(c, 1);
	char name[NAME_MAX_ + 1];

	lower_name(c, name);
	for (char *p = name; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	reply_errorf(&c->out, "ERR unknown subcommand '%.*s'. Try %s HELP.", (int)(sub->size < 128 ? sub->size : 128),
		sub->data, name);
}
