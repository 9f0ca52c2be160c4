/* The busy-waiting producer and consumer. Two defects:
 * - it waits by looking. With both on one processor the one that looks keeps the other from changing
 *   anything: without the bound below it would look for ever;
 * - in and out are plain variables: neither the compiler nor the processor has to show the item before the
 *   count (here they are atomic, so that the first defect can be seen alone).
 * Right: two semaphores count the full and the free places. Who has nothing to do sleeps, and is woken. */
#include "two.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { PLACES = 4, ITEMS = 64, LOOKS = 100000 };

static char buf[PLACES];
static atomic_uint in, out;
static kb_sem_t full, empty;
static long useless, wrong;
static bool busy;

/* Looks until the count is another; gives up after LOOKS looks and lets the other run. */
static void look_while(atomic_uint *count, unsigned value)
{
	while (atomic_load(count) == value) {
		for (int i = 0; i < LOOKS && atomic_load(count) == value; i++)
			useless++;
		if (atomic_load(count) == value)
			kb_yield();
	}
}

static void produce(char item)
{
	if (busy)
		look_while(&out, in - PLACES);
	else
		kb_sem_wait(&empty);
	buf[in % PLACES] = item;
	in++;
	if (!busy)
		kb_sem_post(&full);
}

static char consume(void)
{
	char item;

	if (busy)
		look_while(&in, out);
	else
		kb_sem_wait(&full);
	item = buf[out % PLACES];
	out++;
	if (!busy)
		kb_sem_post(&empty);
	return item;
}

static void *body(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		if ((long)arg == 0)
			produce((char)i);
		else
			wrong += consume() != (char)i;
	}
	return NULL;
}

static long run(bool by_looking)
{
	busy = by_looking;
	in = out = 0;
	useless = 0;
	kb_sem_init(&full, 0);
	kb_sem_init(&empty, PLACES);
	two(body, TOGETHER);
	return useless;
}

int main(void)
{
	long looks = run(true), none = run(false);

	printf("wrong: busy waiting: %ld useless looks for %d items\n", looks, ITEMS);
	printf("right: semaphores: %ld useless looks\n", none);
	return looks >= LOOKS && none == 0 && wrong == 0 ? 0 : 1;
}
