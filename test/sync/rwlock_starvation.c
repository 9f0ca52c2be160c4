/* Writers that take the lock again at once cannot keep a reader or a writer out for long, with
 * either preference; nor can readers keep a writer out where writers are preferred. */
#include "threads.h"

enum { HOGS = 2, TURNS = 15 };

static kb_rwlock_t lock;
static int stop, hog_inside, hogs_write;

static int lock_for(int write)
{
	return write ? kb_rwlock_wrlock(&lock) : kb_rwlock_rdlock(&lock);
}

static void *hog(void *arg)
{
	(void)arg;
	while (!test_get(&stop)) {
		CHECK_EQ(lock_for(hogs_write), 0);
		test_put(&hog_inside, 1);
		kb_sleep(TEST_MS / 10);
		CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

/* The waiters are of the same kind as the hogs; main is a lightweight thread. */
static void *wait_for_it(void *write)
{
	uint64_t start;

	for (int i = 0; i < TURNS; i++) {
		start = test_now_ns();
		CHECK_EQ(lock_for(write != NULL), 0);
		CHECK(test_now_ns() - start < 30000ull * TEST_MS);
		CHECK_EQ(kb_rwlock_unlock(&lock), 0);
		kb_yield();
	}
	return NULL;
}

static void compete(enum kb_rwlock_kind kind, int hogs, int write)
{
	struct worker w[HOGS], waiter;

	CHECK_EQ(kb_rwlock_init(&lock, kind), 0);
	test_put(&stop, 0);
	test_put(&hog_inside, 0);
	hogs_write = hogs;
	for (int i = 0; i < HOGS; i++)
		worker_start(&w[i], hog, NULL);
	test_reach(&hog_inside, 1);
	worker_start(&waiter, wait_for_it, write ? &lock : NULL);
	wait_for_it(write ? &lock : NULL);
	worker_join(&waiter);
	test_put(&stop, 1);
	for (int i = 0; i < HOGS; i++)
		worker_join(&w[i]);
	CHECK_EQ(kb_rwlock_destroy(&lock), 0);
}

static void body(void)
{
	compete(KB_RWLOCK_PREFER_WRITER, 1, 0);
	compete(KB_RWLOCK_PREFER_WRITER, 1, 1);
	compete(KB_RWLOCK_PREFER_WRITER, 0, 1);
	compete(KB_RWLOCK_PREFER_READER, 1, 0);
	compete(KB_RWLOCK_PREFER_READER, 1, 1);
}

int main(void)
{
	test_each(body);
	return 0;
}
