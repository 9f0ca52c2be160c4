/* Writers are alone, readers share; timed and plain calls of both kinds race. */
#include <errno.h>

#include "threads.h"

enum { THREADS = 10, ROUNDS = 2500 };

static kb_rwlock_t lock;
static int readers, writers;
static long counter, writes;

static int lock_read(uint64_t r)
{
	return r % 4 == 0 ? kb_rwlock_timedrdlock(&lock, kb_now() + r / 16 % 20000)
			  : r % 4 == 1 ? kb_rwlock_tryrdlock(&lock) : kb_rwlock_rdlock(&lock);
}

static int lock_write(uint64_t r)
{
	return r % 4 == 0 ? kb_rwlock_timedwrlock(&lock, kb_now() + r / 16 % 20000)
			  : r % 4 == 1 ? kb_rwlock_trywrlock(&lock) : kb_rwlock_wrlock(&lock);
}

static void read_it(uint64_t r)
{
	long before;

	if (lock_read(r))
		return;
	test_add(&readers, 1);
	CHECK_EQ(test_get(&writers), 0);
	before = counter;
	if (r / 64 % 4 == 0)
		kb_yield();
	CHECK_EQ(counter, before);
	test_add(&readers, -1);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
}

static void write_it(uint64_t r)
{
	if (lock_write(r))
		return;
	CHECK_EQ(test_add(&writers, 1), 1);
	CHECK_EQ(test_get(&readers), 0);
	counter++;
	if (r / 64 % 4 == 0)
		kb_yield();
	writes++;
	test_add(&writers, -1);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
}

static void *work(void *arg)
{
	uint64_t rnd = test_stream();

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t r = test_rand(&rnd);

		if (r / 4 % 4 == 0)
			write_it(r);
		else
			read_it(r);
	}
	return NULL;
}

static void *read_too(void *arg)
{
	CHECK_EQ(kb_rwlock_rdlock(&lock), 0);
	CHECK_EQ(test_get(&readers), 1);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
	return arg;
}

/* Further threads read while main does. Whether the workers above meet is a matter of luck. */
static void share(void)
{
	CHECK_EQ(kb_rwlock_rdlock(&lock), 0);
	test_add(&readers, 1);
	workers_run(3, read_too, NULL);
	test_add(&readers, -1);
	CHECK_EQ(kb_rwlock_unlock(&lock), 0);
}

static void body(void)
{
	for (int kind = KB_RWLOCK_PREFER_WRITER; kind <= KB_RWLOCK_PREFER_READER; kind++) {
		counter = writes = 0;
		CHECK_EQ(kb_rwlock_init(&lock, (enum kb_rwlock_kind)kind), 0);
		workers_run(THREADS, work, NULL);
		CHECK_EQ(counter, writes);
		CHECK(counter > 0);
		share();
		CHECK_EQ(kb_rwlock_destroy(&lock), 0);
	}
}

int main(void)
{
	test_seed();
	test_each(body);
	return 0;
}
