/* command.h - what clients may ask: a table, and the one who looks into it. A command's row says which arguments are keys;
 * command_run locks their shards, so that the function behind the row is single-threaded code and atomic. */
#ifndef KVSTORE_COMMAND_H
#define KVSTORE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "client.h"
#include "store.h"

enum {
	COMMAND_ALL = 1, /* locks every shard */
	COMMAND_WRITE = 2, /* changes keys: only said by COMMAND */
};

struct command {
	const char *name; /* in capitals */
	void (*run)(struct client *c);
	int arity; /* with the name; negative: at least so many */
	int first, last, step; /* the arguments that are keys, as COMMAND tells them; last -1: to the end */
	unsigned flags;
};

void command_init(void);

/* Runs the client's request, which is complete, and adds the answer to c->out. */
void command_run(struct client *c);

extern const struct command command_table[];
extern const size_t command_count;

#define COMMAND(name, function, arity, first, last, step, flags) void function(struct client *c);
#include "command.def"
#undef COMMAND

/* ---- for those who write commands ---- */

/* The arguments are c->request.args[0 ... count - 1]; 0 is the command's name. */
static inline const struct arg *command_arg(const struct client *c, size_t i)
{
	return &c->request.args[i];
}

/* Is argument i this word? `upper` is in capitals. */
bool command_is(const struct client *c, size_t i, const char *upper);

/* These answer with an error when they give false. */
bool command_int(struct client *c, size_t i, int64_t *value);
bool command_find(struct client *c, size_t i, enum store_type type, struct entry **e);

void command_wrong_type(struct client *c);
void command_syntax_error(struct client *c);
void command_wrong_arity(struct client *c);

/* "<name> <error> '<command>' command" */
void command_bad_expiry(struct client *c);

/* A subcommand that there is not. */
void command_unknown_sub(struct client *c);

#endif
