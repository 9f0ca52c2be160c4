/* C11 threads: results, mutexes, conditions, thread-specific storage with destructors, call_once,
 * sleep. */
#include "test.h"

#include <threads.h>
#include <time.h>

enum { THREADS = 30 };

static mtx_t m, r;
static cnd_t c;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static int n, runs, ended;

static void run(void)
{
	runs++;
}

static void end(void *v)
{
	CHECK(v != NULL);
	mtx_lock(&m);
	ended++;
	mtx_unlock(&m);
}

static int body(void *arg)
{
	call_once(&once, run);
	CHECK_EQ(tss_set(key, arg), thrd_success);
	CHECK_EQ(mtx_lock(&m), thrd_success);
	if (++n == THREADS)
		CHECK_EQ(cnd_broadcast(&c), thrd_success);
	while (n < THREADS)
		CHECK_EQ(cnd_wait(&c, &m), thrd_success);
	CHECK_EQ(mtx_unlock(&m), thrd_success);
	thrd_yield();
	CHECK(tss_get(key) == arg);
	if ((long)arg % 2)
		thrd_exit(-(int)(long)arg);
	return -(int)(long)arg;
}

int main(void)
{
	thrd_t t[THREADS];
	struct timespec at, nap = { 0, 2000000 };

	CHECK_EQ(mtx_init(&m, mtx_timed), thrd_success);
	CHECK_EQ(mtx_init(&r, mtx_plain | mtx_recursive), thrd_success);
	CHECK_EQ(cnd_init(&c), thrd_success);
	CHECK_EQ(tss_create(&key, end), thrd_success);
	CHECK_EQ(mtx_lock(&r), thrd_success);
	CHECK_EQ(mtx_trylock(&r), thrd_success);
	mtx_unlock(&r);
	mtx_unlock(&r);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(thrd_create(&t[i], body, (void *)(i + 1)), thrd_success);
	for (int i = 0; i < THREADS; i++) {
		int res;

		CHECK_EQ(thrd_join(t[i], &res), thrd_success);
		CHECK_EQ(res, -(i + 1));
	}
	CHECK_EQ(runs, 1);
	CHECK_EQ(ended, THREADS);
	CHECK_EQ(mtx_lock(&m), thrd_success);
	CHECK_EQ(mtx_trylock(&m), thrd_busy);
	timespec_get(&at, TIME_UTC);
	CHECK_EQ(mtx_timedlock(&m, &at), thrd_timedout);
	CHECK_EQ(cnd_timedwait(&c, &m, &at), thrd_timedout);
	mtx_unlock(&m);
	CHECK_EQ(thrd_sleep(&nap, NULL), 0);
	CHECK(thrd_equal(thrd_current(), thrd_current()));
	tss_delete(key);
	cnd_destroy(&c);
	mtx_destroy(&m);
	return 0;
}
