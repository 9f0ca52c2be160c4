/* The function runs once although it sleeps in the middle; all further callers wait for its end. */
#include "threads.h"

enum { THREADS = 16, ROUNDS = 200 };

static kb_once_t once[ROUNDS];
static int runs, complete, at;

static void slowly(void)
{
	CHECK_EQ(test_add(&runs, 1), 1);
	if (at % 16 == 0)
		kb_sleep(TEST_MS);
	else
		kb_yield();
	complete = 1;
}

static void *call(void *arg)
{
	(void)arg;
	CHECK_EQ(kb_once(&once[at], slowly), 0);
	CHECK_EQ(complete, 1);
	return NULL;
}

static void body(void)
{
	for (at = 0; at < ROUNDS; at++) {
		once[at] = (kb_once_t)KB_ONCE_INIT;
		runs = complete = 0;
		workers_run(THREADS, call, NULL);
		CHECK_EQ(runs, 1);
		CHECK_EQ(kb_once(&once[at], slowly), 0);
	}
}

int main(void)
{
	test_both(body);
	return 0;
}
