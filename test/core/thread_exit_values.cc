/* core/thread: a thread has ended only when its thread_local objects and keys have: the process,
 * whose main has ended before, does not exit while a destructor of the last thread still works.
 * Objects go before keys. */
#include <kochab/kochab.h>

#include <cstdlib>
#include <unistd.h>

#include "test.h"

static bool has_own_tls, object_gone, key_gone;

struct Slow {
	int set = 0;
	~Slow()
	{
		CHECK(!key_gone);
		kb_sleep(20000000);
		object_gone = set == 5;
	}
};
static thread_local Slow slow;

static void end_key(void *)
{
	CHECK(object_gone || !has_own_tls);
	kb_sleep(20000000);
	key_gone = true;
}

static void at_exit()
{
	if (!key_gone || (has_own_tls && !object_gone))
		_exit(1);
}

static kb_key_t key;

static void *body(void *)
{
	if (has_own_tls)
		slow.set = 5;
	CHECK_EQ(kb_setspecific(key, &key), 0);
	kb_sleep(10000000);
	return nullptr;
}

int main()
{
	kb_thread_t t;
	kb_attr_t a;

	std::atexit(at_exit);
	CHECK_EQ(kb_key_create(&key, end_key), 0);
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_settls(&a, KB_TLS_OWN), 0);
	has_own_tls = true;
	if (kb_thread_create(&t, &a, body, nullptr)) {
		has_own_tls = false; /* not on this machine */
		CHECK_EQ(kb_thread_create(&t, nullptr, body, nullptr), 0);
	}
	kb_thread_exit(nullptr);
}
