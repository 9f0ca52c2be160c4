/* core/local: values by thread; destructors in up to four rounds; deleted and re-created keys; the
 * limit. */
#include <errno.h>
#include <kochab/kochab.h>

#include "core/own_tls.h"
#include "test.h"

static kb_key_t again_key, plain_key;
static uint32_t again_calls, plain_calls;

static void again(void *value)
{
	again_calls++;
	/* a destructor that sets a value anew is called four times, not for ever */
	CHECK_EQ(kb_setspecific(again_key, value), 0);
	CHECK(kb_getspecific(again_key) == value);
}

static void plain(void *value)
{
	CHECK(value == &plain_key);
	CHECK(kb_getspecific(plain_key) == NULL);
	plain_calls++;
	kb_yield(); /* destructors may suspend */
}

static void *sets(void *arg)
{
	CHECK(kb_getspecific(again_key) == NULL);
	CHECK(kb_getspecific(plain_key) == NULL);
	CHECK_EQ(kb_setspecific(again_key, arg), 0);
	CHECK_EQ(kb_setspecific(plain_key, &plain_key), 0);
	CHECK(kb_getspecific(again_key) == arg);
	kb_yield();
	CHECK(kb_getspecific(again_key) == arg);
	return NULL;
}

static void *sets_null(void *arg)
{
	CHECK_EQ(kb_setspecific(plain_key, arg), 0);
	CHECK_EQ(kb_setspecific(plain_key, NULL), 0);
	return NULL;
}

static void *never_called(void *arg)
{
	return arg;
}

static void forbidden(void *value)
{
	(void)value;
	CHECK(!"the destructor of a deleted key");
}

static kb_key_t deleted_key;
static void *sets_deleted(void *arg)
{
	CHECK_EQ(kb_setspecific(deleted_key, arg), 0);
	CHECK_EQ(kb_key_delete(deleted_key), 0);
	CHECK(kb_getspecific(deleted_key) == NULL);
	CHECK_EQ(kb_setspecific(deleted_key, arg), EINVAL);
	return NULL;
}

static void in_thread(void *(*fn)(void *), enum kb_tls tls)
{
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_settls(&a, own_tls_or_light(tls));
	CHECK_EQ(kb_thread_create(&t, &a, fn, &again_key), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
}

static void all_keys(void)
{
	static kb_key_t key[KB_KEYS_MAX];
	unsigned n = 0;

	while (n < KB_KEYS_MAX && kb_key_create(&key[n], NULL) == 0)
		n++;
	CHECK_EQ(n, KB_KEYS_MAX - 2);
	CHECK_EQ(kb_key_create(&deleted_key, NULL), EAGAIN);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_setspecific(key[i], &key[i]), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK(kb_getspecific(key[i]) == &key[i]);
	CHECK_EQ(kb_key_delete(key[5]), 0);
	CHECK_EQ(kb_key_delete(key[5]), EINVAL);
	CHECK_EQ(kb_key_create(&key[5], NULL), 0);
	CHECK(kb_getspecific(key[5]) == NULL); /* the same slot, another key */
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_key_delete(key[i]), 0);
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_key_create(&again_key, again), 0);
	CHECK_EQ(kb_key_create(&plain_key, plain), 0);
	for (int tls = 0; tls < 2; tls++) {
		again_calls = plain_calls = 0;
		in_thread(sets, (enum kb_tls)tls);
		CHECK_EQ(again_calls, 4);
		CHECK_EQ(plain_calls, 1);
		in_thread(sets_null, (enum kb_tls)tls);
		CHECK_EQ(plain_calls, 1);
		in_thread(never_called, (enum kb_tls)tls);
		CHECK_EQ(again_calls, 4);
	}
	CHECK_EQ(kb_key_create(&deleted_key, forbidden), 0);
	in_thread(sets_deleted, KB_TLS_LIGHT);
	CHECK_EQ(kb_key_delete(KB_KEYS_MAX), EINVAL);
	CHECK_EQ(kb_setspecific(KB_KEYS_MAX, &again_key), EINVAL);
	CHECK(kb_getspecific(UINT32_MAX) == NULL);
	all_keys();
	return 0;
}
