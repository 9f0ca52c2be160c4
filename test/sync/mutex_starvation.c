/* A thread that takes the lock again at once cannot keep a waiter out for long. */
#include "threads.h"

enum { TURNS = 20 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static int stop, hog_inside;

static void *hog(void *arg)
{
	(void)arg;
	while (!test_get(&stop)) {
		CHECK_EQ(kb_mutex_lock(&mutex), 0);
		test_put(&hog_inside, 1);
		kb_sleep(TEST_MS / 10);
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	}
	return NULL;
}

static void body(void)
{
	struct worker w;
	uint64_t start, longest = 0;

	test_put(&stop, 0);
	test_put(&hog_inside, 0);
	worker_start(&w, hog, NULL);
	test_reach(&hog_inside, 1);
	for (int i = 0; i < TURNS; i++) {
		start = test_now_ns();
		CHECK_EQ(kb_mutex_lock(&mutex), 0);
		if (test_now_ns() - start > longest)
			longest = test_now_ns() - start;
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
		kb_yield();
	}
	test_put(&stop, 1);
	worker_join(&w);
	CHECK(longest < 30000ull * TEST_MS);
}

int main(void)
{
	test_both(body);
	return 0;
}
