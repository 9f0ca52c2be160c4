/* command_server.c - commands on the connection and the server. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "blocked.h"
#include "command.h"
#include "reply.h"
#include "server.h"
#include "text.h"

void do_ping(struct client *c)
{
	if (c->request.count > 2)
		command_wrong_arity(c);
	else if (c->request.count == 2)
		reply_bulk(&c->out, command_arg(c, 1)->data, command_arg(c, 1)->size);
	else
		reply_status(&c->out, "PONG");
}

void do_echo(struct client *c)
{
	reply_bulk(&c->out, command_arg(c, 1)->data, command_arg(c, 1)->size);
}

void do_select(struct client *c)
{
	int64_t n;

	if (!command_int(c, 1, &n))
		return;
	if (n == 0)
		reply_status(&c->out, "OK");
	else
		reply_error(&c->out, "ERR DB index is out of range");
}

void do_quit(struct client *c)
{
	reply_status(&c->out, "OK");
	c->closing = true;
}

void do_time(struct client *c)
{
	struct timespec t;
	char digits[TEXT_INT];

	clock_gettime(CLOCK_REALTIME, &t);
	reply_array(&c->out, 2);
	reply_bulk(&c->out, digits, text_from_int(digits, t.tv_sec));
	reply_bulk(&c->out, digits, text_from_int(digits, t.tv_nsec / 1000));
}

/* There is nothing to save and nobody to wait for: these words change nothing. */
void do_shutdown(struct client *c)
{
	static const char *const word[] = { "NOSAVE", "SAVE", "NOW", "FORCE" };

	if (c->request.count == 2 && command_is(c, 1, "ABORT")) {
		reply_error(&c->out, "ERR No shutdown in progress.");
		return;
	}
	for (size_t i = 1; i < c->request.count; i++) {
		size_t w = 0;

		while (w < 4 && !command_is(c, i, word[w]))
			w++;
		if (w == 4) {
			command_syntax_error(c);
			return;
		}
	}
	c->closing = true;
	server_stop();
}

/* ---- CLIENT ---- */

static void describe(struct client *c, void *arg)
{
	struct buf *text = arg;

	text->used += (size_t)snprintf(buf_reserve(text, 128), 128, "id=%llu fd=%d age=%lld db=0\n",
		(unsigned long long)c->id, c->fd, (long long)(store_now() - c->since) / 1000);
}

static void client_list(struct client *c)
{
	struct buf text;
	char small[512];

	buf_init(&text, small, sizeof small);
	client_each(describe, &text);
	reply_bulk(&c->out, text.data, text.used);
	buf_release(&text);
}

static void set_name(struct client *c)
{
	const struct arg *a = command_arg(c, 2);

	for (size_t i = 0; i < a->size; i++) {
		if (a->data[i] < '!' || a->data[i] > '~') {
			reply_error(&c->out, "ERR Client names cannot contain spaces, newlines or special characters.");
			return;
		}
	}
	client_forget_name(c);
	if (a->size > 0) {
		c->name = must_alloc(a->size + 1);
		buf_count(a->size);
		memcpy(c->name, a->data, a->size);
		c->name[a->size] = '\0';
	}
	reply_status(&c->out, "OK");
}

void do_client(struct client *c)
{
	size_t n = c->request.count;

	if (n == 2 && command_is(c, 1, "ID"))
		reply_int(&c->out, (int64_t)c->id);
	else if (n == 2 && command_is(c, 1, "LIST"))
		client_list(c);
	else if (n == 2 && command_is(c, 1, "GETNAME"))
		c->name == NULL ? reply_null(&c->out) : reply_text(&c->out, c->name);
	else if (n == 3 && command_is(c, 1, "SETNAME"))
		set_name(c);
	else
		command_unknown_sub(c);
}

/* ---- CONFIG ---- */

static bool matches_any(struct client *c, const char *name)
{
	for (size_t i = 2; i < c->request.count; i++)
		if (text_matches(command_arg(c, i)->data, command_arg(c, i)->size, name, strlen(name)))
			return true;
	return false;
}

static void config_get(struct client *c)
{
	const struct {
		const char *name, *text; /* no text: the number */
		int64_t number;
	} setting[] = {
		{ "appendonly", "no", 0 },
		{ "bind", server.bind, 0 },
		{ "databases", NULL, 1 },
		{ "maxclients", NULL, (int64_t)server.maxclients },
		{ "maxmemory", NULL, 0 },
		{ "port", NULL, server.port },
		{ "proto-max-bulk-len", NULL, RESP_BULK_MAX },
		{ "save", "", 0 },
		{ "timeout", NULL, 0 },
		{ "unixsocket", server.unixsocket ? server.unixsocket : "", 0 },
	};
	enum { SETTINGS = sizeof setting / sizeof *setting };
	bool shown[SETTINGS];
	size_t n = 0;
	char digits[TEXT_INT];

	for (size_t i = 0; i < SETTINGS; i++)
		n += shown[i] = matches_any(c, setting[i].name);
	reply_array(&c->out, 2 * n);
	for (size_t i = 0; i < SETTINGS; i++) {
		if (!shown[i])
			continue;
		reply_text(&c->out, setting[i].name);
		if (setting[i].text != NULL)
			reply_text(&c->out, setting[i].text);
		else
			reply_bulk(&c->out, digits, text_from_int(digits, setting[i].number));
	}
}

void do_config(struct client *c)
{
	if (c->request.count > 2 && command_is(c, 1, "GET"))
		config_get(c);
	else if (c->request.count > 3 && command_is(c, 1, "SET"))
		reply_error(&c->out, "ERR settings are constant: give them on the command line");
	else
		command_unknown_sub(c);
}

/* ---- COMMAND ---- */

static void describe_command(struct buf *out, const struct command *command)
{
	char name[32];
	size_t n = 0;

	for (; command->name[n] != '\0'; n++)
		name[n] = (char)(command->name[n] | 0x20);
	reply_array(out, 6);
	reply_bulk(out, name, n);
	reply_int(out, command->arity);
	reply_array(out, 1);
	reply_status(out, command->flags & COMMAND_WRITE ? "write" : "readonly");
	reply_int(out, command->first);
	reply_int(out, command->last);
	reply_int(out, command->step);
}

void do_command(struct client *c)
{
	if (c->request.count == 1) {
		reply_array(&c->out, command_count);
		for (size_t i = 0; i < command_count; i++)
			describe_command(&c->out, &command_table[i]);
	} else if (command_is(c, 1, "COUNT") && c->request.count == 2) {
		reply_int(&c->out, (int64_t)command_count);
	} else if (command_is(c, 1, "DOCS")) {
		reply_array(&c->out, 0);
	} else {
		command_unknown_sub(c);
	}
}

/* ---- INFO ---- */

static void add(struct buf *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct buf *text, const char *format, ...)
{
	enum { LINE = 256 };
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(buf_reserve(text, LINE), LINE, format, args);
	va_end(args);
	text->used += n < LINE ? (size_t)n : LINE - 1;
}

static void info_server(struct buf *text)
{
	add(text, "redis_version:%s\r\nredis_mode:standalone\r\nprocess_id:%d\r\ntcp_port:%d\r\n", KVSTORE_VERSION,
		(int)getpid(), server.port);
	add(text, "uptime_in_seconds:%lld\r\nexecutable:kvstore\r\n", (long long)(store_now() - server.since) / 1000);
}

static void info_clients(struct buf *text)
{
	struct client_totals t;

	client_totals(&t);
	add(text, "connected_clients:%zu\r\nmaxclients:%zu\r\nblocked_clients:%zu\r\n", t.now, server.maxclients,
		blocked_count());
}

static void info_memory(struct buf *text)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f != NULL) {
		if (fscanf(f, "%*s %llu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	add(text, "used_memory_rss:%llu\r\n", pages * (unsigned long long)sysconf(_SC_PAGESIZE));
}

static void info_stats(struct buf *text)
{
	struct client_totals t;

	client_totals(&t);
	add(text, "total_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n", (unsigned long long)t.ever,
		(unsigned long long)t.requests);
	add(text, "rejected_connections:%llu\r\nclient_query_buffer_limit_disconnections:%llu\r\n",
		(unsigned long long)t.refused, (unsigned long long)t.cut);
}

static void info_cpu(struct buf *text)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	add(text, "used_cpu_sys:%lld.%06ld\r\nused_cpu_user:%lld.%06ld\r\n", (long long)u.ru_stime.tv_sec,
		(long)u.ru_stime.tv_usec, (long long)u.ru_utime.tv_sec, (long)u.ru_utime.tv_usec);
}

static void info_keyspace(struct buf *text)
{
	size_t keys, expiring;

	store_count(&keys, &expiring);
	if (keys > 0)
		add(text, "db0:keys=%zu,expires=%zu,avg_ttl=0\r\n", keys, expiring);
}

static const struct {
	const char *name, *title;
	void (*write)(struct buf *text);
} section[] = {
	{ "SERVER", "Server", info_server },
	{ "CLIENTS", "Clients", info_clients },
	{ "MEMORY", "Memory", info_memory },
	{ "STATS", "Stats", info_stats },
	{ "CPU", "CPU", info_cpu },
	{ "KEYSPACE", "Keyspace", info_keyspace },
};

static bool section_wanted(struct client *c, const char *name)
{
	bool wanted = c->request.count == 1;

	for (size_t i = 1; i < c->request.count; i++)
		wanted = wanted || command_is(c, i, name) || command_is(c, i, "ALL") || command_is(c, i, "DEFAULT") ||
			command_is(c, i, "EVERYTHING");
	return wanted;
}

void do_info(struct client *c)
{
	struct buf text;
	char small[512];

	buf_init(&text, small, sizeof small);
	for (size_t i = 0; i < sizeof section / sizeof *section; i++) {
		if (!section_wanted(c, section[i].name))
			continue;
		add(&text, "%s# %s\r\n", text.used > 0 ? "\r\n" : "", section[i].title);
		section[i].write(&text);
	}
	reply_bulk(&c->out, text.data, text.used);
	buf_release(&text);
}
