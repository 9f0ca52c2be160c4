/* blocked.h - clients that wait for an element of a list: who came first is served first. */
#ifndef KVSTORE_BLOCKED_H
#define KVSTORE_BLOCKED_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "store.h"

/* The client will wait for any of these keys, whose shards the caller has locked. It waits in blocked_wait. */
void blocked_enter(struct client *c, const struct arg *keys, size_t count, int left, int64_t deadline);

/* An element has been added to the list, whose shard the caller has locked: serves those who wait for it, and removes the
 * list if they empty it. */
void blocked_serve(struct entry *e);

/* Waits until the client is served, its time (ms since 1970; 0: none) is over, it is gone or the server ends; answers. */
void blocked_wait(struct client *c);

/* The server ends: nobody waits any more. */
void blocked_stop(void);
size_t blocked_count(void);

#endif
