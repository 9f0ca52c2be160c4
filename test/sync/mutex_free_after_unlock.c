/* The last holder of the lock may free the mutex at once: unlock touches nothing of the mutex after
 * it has released the lock. */
#include <string.h>

#include "threads.h"

enum { ROUNDS = 1500, THREADS = 3 };

struct object {
	kb_mutex_t mutex;
	int refs;
};

static void *put(void *arg)
{
	struct object *o = arg;
	int last;

	CHECK_EQ(kb_mutex_lock(&o->mutex), 0);
	last = --o->refs == 0;
	kb_yield();
	CHECK_EQ(kb_mutex_unlock(&o->mutex), 0);
	if (last) {
		static const struct object dead = { .refs = -1 };

		CHECK_EQ(kb_mutex_destroy(&o->mutex), 0);
		memset(o, 0x5a, sizeof *o);
		for (int i = 0; i < 20; i++) {
			kb_yield();
			for (size_t k = 0; k < sizeof *o; k++)
				CHECK_EQ(((unsigned char *)o)[k], 0x5a);
		}
		*o = dead;
	}
	return NULL;
}

static void body(void)
{
	struct object *o = malloc(sizeof *o);

	CHECK(o != NULL);
	for (int i = 0; i < (test_foreign ? ROUNDS / 5 : ROUNDS); i++) {
		CHECK_EQ(kb_mutex_init(&o->mutex, KB_MUTEX_NORMAL), 0);
		o->refs = THREADS;
		workers_run(THREADS, put, o);
		CHECK_EQ(o->refs, -1);
	}
	free(o);
}

int main(void)
{
	test_both(body);
	return 0;
}
