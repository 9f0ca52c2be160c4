/* store.h - keys and their values. The keys are spread over STORE_SHARDS tables, each with a lock of its own. Who works on
 * keys first locks the shards of all of them with store_lock; between that and store_unlock nobody else sees or changes
 * them, and everything below is plain single-threaded code. */
#ifndef KVSTORE_STORE_H
#define KVSTORE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "resp.h"

enum { STORE_SHARDS = 64 };

#define STORE_ALL (~(uint64_t)0) /* every shard */

enum store_type { STORE_STRING, STORE_LIST };

struct bytes {
	size_t size, room;
	char data[];
};

/* A ring: element i is ring[(first + i) % room]; room is a power of two. */
struct list {
	struct bytes **ring;
	size_t room, first, count;
};

struct entry {
	struct entry *next; /* in its bucket */
	uint64_t hash;
	int64_t expires; /* ms since 1970; 0: never */
	enum store_type type;
	union {
		struct bytes *string;
		struct list list;
	};
	size_t size;
	char key[];
};

void store_init(void);

/* Every argument that is a key gets its hash once; the shard's bit is in the set that store_lock takes. */
void store_hash(struct arg *key);
uint64_t store_shard(const struct arg *key);
void store_lock(uint64_t shards);
void store_unlock(uint64_t shards);

/* The key's entry, or NULL. An entry whose time is over is removed here and not found. */
struct entry *store_find(const struct arg *key);

/* A new key, without expiry: an empty list, or a string that the caller fills. */
struct entry *store_add(const struct arg *key, enum store_type type);
void store_remove(struct entry *e);
void store_clear(void); /* all shards are locked */

void store_expire_at(struct entry *e, int64_t ms); /* 0: never */

/* The string's bytes are these from now on. */
void store_set(struct entry *e, const char *data, size_t size);
void store_append(struct entry *e, const char *data, size_t size);

/* A value leaves or enters a list at its left or right end. A list that is empty must be removed by the caller. */
void list_push(struct list *l, int left, struct bytes *value);
struct bytes *list_pop(struct list *l, int left);
struct bytes *list_at(const struct list *l, size_t i);

struct bytes *bytes_new(const char *data, size_t size);

/* Calls visit for the keys of the cursor's bucket, and further buckets until it has seen `count`; the next cursor, 0 at
 * the end. Whoever goes on from 0 to 0 sees every key that is there all the time. Locks for itself. */
uint64_t store_scan(uint64_t cursor, size_t count, void (*visit)(const struct entry *e, void *arg), void *arg);

/* Calls visit for every key; all shards are locked. */
void store_each(void (*visit)(const struct entry *e, void *arg), void *arg);

/* How many keys there are, and how many of them expire. Locks for itself. */
void store_count(size_t *keys, size_t *expiring);

/* Removes keys whose time is over, some thousand buckets further at each call. Locks for itself. */
void store_sweep(void);

int64_t store_now(void); /* ms since 1970 */

#endif
