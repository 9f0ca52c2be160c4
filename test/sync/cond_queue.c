/* The bounded buffer: producers and consumers over a mutex and two condition variables;
 * each number arrives once. */
#include "threads.h"

enum { PRODUCERS = 4, CONSUMERS = 5, EACH = 3000, ROOM = 4 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static kb_cond_t not_full = KB_COND_INIT, not_empty = KB_COND_INIT;
static int ring[ROOM], first, count, produced, consumed;
static char seen[PRODUCERS * EACH];

static void *produce(void *arg)
{
	int base = (test_add(arg, 1) - 1) * EACH;

	for (int i = 0; i < EACH; i++) {
		kb_mutex_lock(&mutex);
		while (count == ROOM)
			kb_cond_wait(&not_full, &mutex);
		ring[(first + count++) % ROOM] = base + i;
		kb_cond_signal(&not_empty);
		kb_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *consume(void *arg)
{
	(void)arg;
	kb_mutex_lock(&mutex);
	for (;;) {
		while (count == 0 && consumed < PRODUCERS * EACH)
			kb_cond_wait(&not_empty, &mutex);
		if (count == 0)
			break;
		CHECK_EQ(seen[ring[first]]++, 0);
		first = (first + 1) % ROOM;
		count--;
		if (++consumed == PRODUCERS * EACH)
			kb_cond_broadcast(&not_empty);
		kb_cond_signal(&not_full);
	}
	kb_mutex_unlock(&mutex);
	return NULL;
}

static void body(void)
{
	struct worker p[PRODUCERS], c[CONSUMERS];

	first = count = produced = consumed = 0;
	for (int i = 0; i < PRODUCERS * EACH; i++)
		seen[i] = 0;
	for (int i = 0; i < PRODUCERS; i++)
		worker_start(&p[i], produce, &produced);
	for (int i = 0; i < CONSUMERS; i++)
		worker_start(&c[i], consume, NULL);
	for (int i = 0; i < PRODUCERS; i++)
		worker_join(&p[i]);
	for (int i = 0; i < CONSUMERS; i++)
		worker_join(&c[i]);
	for (int i = 0; i < PRODUCERS * EACH; i++)
		CHECK_EQ(seen[i], 1);
}

int main(void)
{
	test_both(body);
	return 0;
}
