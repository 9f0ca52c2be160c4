/* store.c - keys and their values: hash tables with chains, which double. A table never shrinks, but for store_clear. */
#include "store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "buf.h"

enum { FIRST_ROOM = 16, SWEEP_BUCKETS = 20000 };

struct shard {
	pthread_mutex_t lock;
	struct entry **bucket;
	size_t room, count; /* room is a power of two */
	atomic_size_t expiring; /* written under the lock, read without by the sweeper */
} __attribute__((aligned(64)));

static struct shard shard[STORE_SHARDS];
static uint64_t secret[2];

static void table_new(struct shard *s)
{
	s->room = FIRST_ROOM;
	s->bucket = must_alloc(s->room * sizeof *s->bucket);
	memset(s->bucket, 0, s->room * sizeof *s->bucket);
}

void store_init(void)
{
	if (getrandom(secret, sizeof secret, 0) != sizeof secret) {
		fputs("kvstore: the kernel gives no random numbers: clients could choose keys that meet in one place\n", stderr);
		exit(1);
	}
	for (size_t i = 0; i < STORE_SHARDS; i++) {
		pthread_mutex_init(&shard[i].lock, NULL);
		table_new(&shard[i]);
	}
}

int64_t store_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the hash: SipHash-1-3, so that no client can choose keys that meet in one bucket ---- */

static uint64_t rotated(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotated(v[1], 13) ^ v[0];
	v[3] = rotated(v[3], 16) ^ v[2];
	v[0] = rotated(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotated(v[1], 17) ^ v[2];
	v[3] = rotated(v[3], 21) ^ v[0];
	v[2] = rotated(v[2], 32);
}

void store_hash(struct arg *key)
{
	uint64_t v[4] = { secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d,
		secret[0] ^ 0x6c7967656e657261, secret[1] ^ 0x7465646279746573 };
	const char *p = key->data;
	size_t n = key->size;
	uint64_t word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = (uint64_t)key->size << 56;
	for (size_t i = 0; i < n; i++)
		word |= (uint64_t)(unsigned char)p[i] << 8 * i;
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	key->hash = v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The shard is chosen by the hash's upper bits, the bucket by its lower ones. */
static struct shard *shard_of(uint64_t hash)
{
	return &shard[hash >> 58];
}

_Static_assert(STORE_SHARDS == 64, "the hash's six upper bits, a bit each in a word of 64");

uint64_t store_shard(const struct arg *key)
{
	return (uint64_t)1 << (key->hash >> 58);
}

/* In ascending order, so that two who want the same shards cannot wait for each other. */
void store_lock(uint64_t shards)
{
	for (; shards != 0; shards &= shards - 1)
		pthread_mutex_lock(&shard[__builtin_ctzll(shards)].lock);
}

void store_unlock(uint64_t shards)
{
	for (; shards != 0; shards &= shards - 1)
		pthread_mutex_unlock(&shard[__builtin_ctzll(shards)].lock);
}

/* ---- entries ---- */

static struct entry **bucket_of(struct shard *s, uint64_t hash)
{
	return &s->bucket[hash & (s->room - 1)];
}

static void count_expiring(struct shard *s, int change)
{
	size_t n = atomic_load_explicit(&s->expiring, memory_order_relaxed);

	atomic_store_explicit(&s->expiring, n + (size_t)change, memory_order_relaxed);
}

static void entry_free(struct entry *e)
{
	if (e->type == STORE_LIST) {
		for (size_t i = 0; i < e->list.count; i++)
			free(list_at(&e->list, i));
		free(e->list.ring);
	} else {
		free(e->string);
	}
	free(e);
}

void store_remove(struct entry *e)
{
	struct shard *s = shard_of(e->hash);
	struct entry **at = bucket_of(s, e->hash);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	s->count--;
	if (e->expires != 0)
		count_expiring(s, -1);
	entry_free(e);
}

struct entry *store_find(const struct arg *key)
{
	struct entry *e = *bucket_of(shard_of(key->hash), key->hash);

	while (e != NULL && (e->hash != key->hash || e->size != key->size || memcmp(e->key, key->data, key->size) != 0))
		e = e->next;
	if (e != NULL && e->expires != 0 && e->expires <= store_now()) {
		store_remove(e);
		return NULL;
	}
	return e;
}

static void table_double(struct shard *s)
{
	struct entry **old = s->bucket;
	size_t room = s->room;

	s->room = 2 * room;
	s->bucket = must_alloc(s->room * sizeof *s->bucket);
	memset(s->bucket, 0, s->room * sizeof *s->bucket);
	for (size_t i = 0; i < room; i++) {
		for (struct entry *e = old[i], *next; e != NULL; e = next) {
			struct entry **at = bucket_of(s, e->hash);

			next = e->next;
			e->next = *at;
			*at = e;
		}
	}
	free(old);
}

struct entry *store_add(const struct arg *key, enum store_type type)
{
	struct shard *s = shard_of(key->hash);
	struct entry *e = must_alloc(sizeof *e + key->size), **at;

	memset(e, 0, sizeof *e);
	e->hash = key->hash;
	e->type = type;
	e->size = key->size;
	memcpy(e->key, key->data, key->size);
	if (++s->count > s->room)
		table_double(s);
	at = bucket_of(s, e->hash);
	e->next = *at;
	*at = e;
	return e;
}

void store_expire_at(struct entry *e, int64_t ms)
{
	count_expiring(shard_of(e->hash), (ms != 0) - (e->expires != 0));
	e->expires = ms;
}

void store_clear(void)
{
	for (size_t i = 0; i < STORE_SHARDS; i++) {
		for (size_t j = 0; j < shard[i].room; j++) {
			for (struct entry *e = shard[i].bucket[j], *next; e != NULL; e = next) {
				next = e->next;
				entry_free(e);
			}
		}
		free(shard[i].bucket);
		shard[i].count = 0;
		atomic_store_explicit(&shard[i].expiring, 0, memory_order_relaxed);
		table_new(&shard[i]);
	}
}

/* ---- values ---- */

struct bytes *bytes_new(const char *data, size_t size)
{
	struct bytes *b = must_alloc(sizeof *b + size);

	b->size = b->room = size;
	memcpy(b->data, data, size);
	return b;
}

/* In place when it fits and does not waste more than half. */
void store_set(struct entry *e, const char *data, size_t size)
{
	struct bytes *b = e->string;

	if (b == NULL || size > b->room || (b->room > 64 && size < b->room / 2)) {
		free(b);
		e->string = bytes_new(data, size);
		return;
	}
	memcpy(b->data, data, size);
	b->size = size;
}

void store_append(struct entry *e, const char *data, size_t size)
{
	struct bytes *b = e->string;
	size_t need = b->size + size;

	if (need > b->room) {
		b = e->string = must_realloc(b, sizeof *b + 2 * need);
		b->room = 2 * need;
	}
	memcpy(b->data + b->size, data, size);
	b->size = need;
}

static struct bytes **list_slot(const struct list *l, size_t i)
{
	return &l->ring[(l->first + i) & (l->room - 1)];
}

struct bytes *list_at(const struct list *l, size_t i)
{
	return *list_slot(l, i);
}

static void list_resize(struct list *l, size_t room)
{
	struct bytes **ring = must_alloc(room * sizeof *ring);

	for (size_t i = 0; i < l->count; i++)
		ring[i] = list_at(l, i);
	free(l->ring);
	l->ring = ring;
	l->room = room;
	l->first = 0;
}

void list_push(struct list *l, int left, struct bytes *value)
{
	if (l->count == l->room)
		list_resize(l, l->room ? 2 * l->room : 4);
	if (left)
		l->first--;
	*list_slot(l, left ? 0 : l->count) = value;
	l->count++;
}

struct bytes *list_pop(struct list *l, int left)
{
	struct bytes *value = list_at(l, left ? 0 : l->count - 1);

	l->count--;
	if (left)
		l->first++;
	if (l->room > 64 && l->count < l->room / 8)
		list_resize(l, l->room / 4);
	return value;
}

/* ---- going through them all ---- */

/* Buckets are visited in the order of their reversed numbers: when a table doubles, a bucket's keys go to two buckets that
 * share its lower bits, and both stand where it stood in this order. */
static uint64_t reversed(uint64_t x)
{
	x = __builtin_bswap64(x);
	x = (x & 0x0f0f0f0f0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0f);
	x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
	return (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
}

/* The bucket after this one; 0: there is none. */
static uint64_t bucket_after(const struct shard *s, uint64_t bucket)
{
	return reversed(reversed(bucket | ~(uint64_t)(s->room - 1)) + 1);
}

/* A cursor is the bucket's number and, in the six bits below it, the shard's. */
uint64_t store_scan(uint64_t cursor, size_t count, void (*visit)(const struct entry *e, void *arg), void *arg)
{
	size_t i = cursor % STORE_SHARDS, seen = 0, buckets = 0;
	uint64_t bucket = cursor / STORE_SHARDS;

	for (; i < STORE_SHARDS; i++, bucket = 0) {
		struct shard *s = &shard[i];

		pthread_mutex_lock(&s->lock);
		do {
			for (struct entry *e = *bucket_of(s, bucket); e != NULL; e = e->next, seen++)
				visit(e, arg);
			bucket = s->count == 0 ? 0 : bucket_after(s, bucket);
		} while (bucket != 0 && seen < count && ++buckets / 10 < count);
		pthread_mutex_unlock(&s->lock);
		if (bucket != 0)
			return bucket * STORE_SHARDS + i;
		if (seen >= count)
			return (i + 1) % STORE_SHARDS;
	}
	return 0;
}

void store_each(void (*visit)(const struct entry *e, void *arg), void *arg)
{
	for (size_t i = 0; i < STORE_SHARDS; i++)
		for (size_t j = 0; j < shard[i].room; j++)
			for (struct entry *e = shard[i].bucket[j]; e != NULL; e = e->next)
				visit(e, arg);
}

void store_count(size_t *keys, size_t *expiring)
{
	*keys = *expiring = 0;
	for (size_t i = 0; i < STORE_SHARDS; i++) {
		pthread_mutex_lock(&shard[i].lock);
		*keys += shard[i].count;
		*expiring += atomic_load_explicit(&shard[i].expiring, memory_order_relaxed);
		pthread_mutex_unlock(&shard[i].lock);
	}
}

static void sweep_bucket(struct shard *s, size_t bucket, int64_t now)
{
	for (struct entry *e = *bucket_of(s, bucket), *next; e != NULL; e = next) {
		next = e->next;
		if (e->expires != 0 && e->expires <= now)
			store_remove(e);
	}
}

/* Called by one thread only. A shard is locked for at most some hundred buckets at a time. */
void store_sweep(void)
{
	static size_t i, bucket;
	size_t left = SWEEP_BUCKETS;
	int64_t now = store_now();

	for (size_t shards = 0; shards < STORE_SHARDS && left > 0; shards++, i = (i + 1) % STORE_SHARDS, bucket = 0) {
		struct shard *s = &shard[i];

		while (left > 0 && atomic_load_explicit(&s->expiring, memory_order_relaxed) != 0) {
			size_t last = bucket + 256;

			pthread_mutex_lock(&s->lock);
			for (; bucket < last && bucket < s->room; bucket++)
				sweep_bucket(s, bucket, now);
			last = s->room;
			pthread_mutex_unlock(&s->lock);
			left -= left < 256 ? left : 256;
			if (bucket >= last)
				break;
		}
		if (left == 0)
			break;
	}
}
