/* With readers inside and a writer waiting, a new reader waits (PREFER_WRITER) or enters
 * (PREFER_READER); when the writer gives up, the readers behind it go on at once. */
#include <errno.h>

#include "threads.h"

static kb_rwlock_t lock;
static int asked, got, patience_ms;

static void *write_it(void *arg)
{
	test_add(&asked, 1);
	*(int *)arg = kb_rwlock_timedwrlock(&lock, kb_now() + (uint64_t)patience_ms * TEST_MS);
	if (*(int *)arg == 0)
		kb_rwlock_unlock(&lock);
	return NULL;
}

static void *read_it(void *arg)
{
	(void)arg;
	test_add(&asked, 1);
	CHECK_EQ(kb_rwlock_rdlock(&lock), 0);
	test_add(&got, 1);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	return NULL;
}

/* A reader is inside, a writer and then a reader wait outside. */
static void begin(int kind, int ms, struct worker *w, int *result)
{
	CHECK_EQ(kb_rwlock_init(&lock, (enum kb_rwlock_kind)kind), 0);
	CHECK_EQ(kb_rwlock_rdlock(&lock), 0);
	asked = got = 0;
	patience_ms = ms;
	worker_start(&w[0], write_it, result);
	test_reach(&asked, 1);
	kb_sleep(10 * TEST_MS);
	worker_start(&w[1], read_it, NULL);
	test_reach(&asked, 2);
	kb_sleep(10 * TEST_MS);
}

static void end(struct worker *w)
{
	worker_join(&w[0]);
	worker_join(&w[1]);
	CHECK_EQ(test_get(&got), 1);
	CHECK_EQ(kb_rwlock_destroy(&lock), 0);
}

static void body(void)
{
	struct worker w[2];
	int result;

	begin(KB_RWLOCK_PREFER_WRITER, 20000, w, &result);
	CHECK_EQ(test_get(&got), 0);
	CHECK_EQ(kb_rwlock_tryrdlock(&lock), EBUSY);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	end(w);
	CHECK_EQ(result, 0);

	begin(KB_RWLOCK_PREFER_READER, 20000, w, &result);
	test_reach(&got, 1);
	CHECK_EQ(kb_rwlock_tryrdlock(&lock), 0);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	end(w);
	CHECK_EQ(result, 0);

	begin(KB_RWLOCK_PREFER_WRITER, 60, w, &result);
	/* the first reader is still inside: only the leaving of the writer lets the second reader in */
	test_reach(&got, 1);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	end(w);
	CHECK_EQ(result, ETIMEDOUT);
}

int main(void)
{
	test_both(body);
	return 0;
}
