/* blocked.c - clients that wait for an element of a list. One queue for all keys: few clients wait this way. Lock order:
 * shards of the store, then queue.lock. */
#include "blocked.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "reply.h"

enum { LOOK_MS = 500 }; /* so often a waiting thread looks whether its client is still there */

struct waiter {
	struct waiter *next;
	struct arg *keys;
	size_t count;
	int left;
	int64_t deadline;
	struct arg *key; /* served: which one, and its element */
	struct bytes *value;
	pthread_cond_t served;
};

static struct {
	pthread_mutex_t lock;
	struct waiter *first, **last;
	atomic_size_t count;
	bool stopping;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .last = &queue.first };

void blocked_enter(struct client *c, const struct arg *keys, size_t count, int left, int64_t deadline)
{
	struct waiter *w = must_alloc(sizeof *w);

	*w = (struct waiter){ .count = count, .left = left, .deadline = deadline };
	pthread_cond_init(&w->served, NULL);
	w->keys = must_alloc(count * sizeof *keys);
	buf_count(count * sizeof *keys);
	memcpy(w->keys, keys, count * sizeof *keys);
	pthread_mutex_lock(&queue.lock);
	*queue.last = w;
	queue.last = &w->next;
	queue.count++;
	pthread_mutex_unlock(&queue.lock);
	c->waiter = w;
}

static struct arg *wanted(const struct waiter *w, const struct entry *e)
{
	for (size_t i = 0; i < w->count; i++) {
		struct arg *k = &w->keys[i];

		if (k->hash == e->hash && k->size == e->size && memcmp(k->data, e->key, e->size) == 0)
			return k;
	}
	return NULL;
}

static void leave(struct waiter **at)
{
	struct waiter *w = *at;

	*at = w->next;
	if (w->next == NULL)
		queue.last = at;
	queue.count--;
}

void blocked_serve(struct entry *e)
{
	struct waiter **at, *w;

	/* Who waits for this key entered under the shard's lock, which we hold: we see its count. */
	if (atomic_load_explicit(&queue.count, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&queue.lock);
	for (at = &queue.first; (w = *at) != NULL && e->list.count > 0;) {
		w->key = wanted(w, e);
		if (w->key == NULL) {
			at = &w->next;
			continue;
		}
		w->value = list_pop(&e->list, w->left);
		leave(at);
		pthread_cond_signal(&w->served);
	}
	pthread_mutex_unlock(&queue.lock);
	if (e->list.count == 0)
		store_remove(e);
}

static void wait_in_queue(struct client *c, struct waiter *w)
{
	struct waiter **at;
	struct timespec t;

	pthread_mutex_lock(&queue.lock);
	while (w->value == NULL && !queue.stopping && !c->closing) {
		int64_t now = store_now(), until = now + LOOK_MS;

		if (w->deadline != 0 && w->deadline <= now)
			break;
		if (w->deadline != 0 && w->deadline < until)
			until = w->deadline;
		t = (struct timespec){ .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
		pthread_cond_timedwait(&w->served, &queue.lock, &t);
		c->closing = c->closing || client_gone(c);
	}
	if (w->value == NULL) {
		for (at = &queue.first; *at != w;)
			at = &(*at)->next;
		leave(at);
	}
	pthread_mutex_unlock(&queue.lock);
}

void blocked_wait(struct client *c)
{
	struct waiter *w = c->waiter;

	client_flush(c); /* what was asked before this */
	wait_in_queue(c, w);
	if (w->value != NULL) {
		reply_array(&c->out, 2);
		reply_bulk(&c->out, w->key->data, w->key->size);
		reply_bulk(&c->out, w->value->data, w->value->size);
	} else {
		reply_null_array(&c->out);
	}
	pthread_cond_destroy(&w->served);
	free(w->value);
	free(w->keys);
	buf_uncount(w->count * sizeof *w->keys);
	free(w);
	c->waiter = NULL;
}

void blocked_stop(void)
{
	pthread_mutex_lock(&queue.lock);
	queue.stopping = true;
	for (struct waiter *w = queue.first; w != NULL; w = w->next)
		pthread_cond_signal(&w->served);
	pthread_mutex_unlock(&queue.lock);
}

size_t blocked_count(void)
{
	return queue.count;
}
