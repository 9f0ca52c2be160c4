/* bench/sim/lines.c - the table of cache lines: a hash table of records that stay where they
 * are. Contract in lines.h. */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 22 }; /* bytes of records at a time */

static struct {
	struct sim_line **at; /* [size], open addressing */
	size_t size, used;
	size_t record;        /* bytes */
	unsigned words;       /* of `have` */
	char **chunk;
	size_t chunks, in_chunk;
} t;

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

void sim_lines_begin(unsigned processors)
{
	t.words = (processors + 63) / 64;
	t.record = sizeof(struct sim_line) + t.words * sizeof(uint64_t);
	t.size = 1 << 16;
	t.at = need(calloc(t.size, sizeof *t.at));
}

void sim_lines_end(void)
{
	for (size_t i = 0; i < t.chunks; i++)
		free(t.chunk[i]);
	free(t.chunk);
	free(t.at);
	memset(&t, 0, sizeof t);
}

static size_t place(uint64_t key)
{
	size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (t.size - 1);

	while (t.at[i] && t.at[i]->key != key)
		i = (i + 1) & (t.size - 1);
	return i;
}

static void grow(void)
{
	struct sim_line **old = t.at;
	size_t n = t.size;

	t.size *= 2;
	t.at = need(calloc(t.size, sizeof *t.at));
	for (size_t i = 0; i < n; i++)
		if (old[i])
			t.at[place(old[i]->key)] = old[i];
	free(old);
}

static struct sim_line *record(uint64_t key)
{
	struct sim_line *l;

	if (!t.chunks || t.in_chunk + t.record > CHUNK) {
		t.chunk = need(realloc(t.chunk, (t.chunks + 1) * sizeof *t.chunk));
		t.chunk[t.chunks++] = need(calloc(1, CHUNK));
		t.in_chunk = 0;
	}
	l = (struct sim_line *)(void *)(t.chunk[t.chunks - 1] + t.in_chunk);
	t.in_chunk += t.record;
	l->key = key;
	l->owner = l->last = -1;
	return l;
}

struct sim_line *sim_line_of(const void *word)
{
	uint64_t key = (uintptr_t)word / 64;
	size_t i = place(key);

	if (t.at[i])
		return t.at[i];
	if (t.used++ > t.size / 2) {
		grow();
		i = place(key);
	}
	return t.at[i] = record(key);
}

void sim_line_take(struct sim_line *l, unsigned who)
{
	memset(l->have, 0, t.words * sizeof *l->have);
	l->sharers = 0;
	sim_line_share(l, who);
	l->owner = (int32_t)who;
}
