/* core/local: kernel threads that Kochab did not create have values too; their destructors run when
 * they end, and the descriptor's next user finds no values. */
#include <kochab/kochab.h>
#include <pthread.h>

#include "test.h"

static kb_key_t key;
static uint32_t destroyed;

static void gone(void *value)
{
	CHECK(value == &key);
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void *foreign(void *arg)
{
	CHECK(kb_getspecific(key) == NULL);
	CHECK_EQ(kb_setspecific(key, &key), 0);
	CHECK(kb_getspecific(key) == &key);
	kb_sleep(100000);
	CHECK(kb_getspecific(key) == &key);
	return arg;
}

static void *empty(void *arg)
{
	CHECK(kb_getspecific(key) == NULL);
	return arg;
}

int main(void)
{
	enum { N = 20 };
	static kb_thread_t kb[1000];

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_key_create(&key, gone), 0);
	for (int round = 1; round <= 3; round++) {
		pthread_t t[N];

		for (int i = 0; i < N; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, foreign, NULL), 0);
		for (int i = 0; i < N; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_EQ(destroyed, round * N);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(kb_thread_create(&kb[i], NULL, empty, NULL), 0);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(kb_thread_join(kb[i], NULL), 0);
	}
	return 0;
}
