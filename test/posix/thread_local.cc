// thread_local objects: each thread has its own, constructed at first use, destroyed at the thread's
// end, before its keys.
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

static int made, gone, late;

static void end_key(void *) {}

static pthread_key_t key;
static thread_local int plain = 7;

struct Counted {
	std::string text;
	Counted() : text("a text too long for the small string buffer") { __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED); }
	~Counted()
	{
		CHECK(text.size() > 20);
		if (pthread_getspecific(key) == nullptr)
			__atomic_add_fetch(&late, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&gone, 1, __ATOMIC_RELAXED);
	}
};

static thread_local Counted counted;

static void body(int i)
{
	const int *where = &plain;

	CHECK_EQ(plain, 7);
	CHECK_EQ(pthread_setspecific(key, &made), 0);
	plain = i;
	counted.text += std::to_string(i);
	for (int k = 0; k < 20; k++) {
		sched_yield();
		CHECK_EQ(plain, i);
		CHECK(where == &plain);
	}
	CHECK(counted.text.find(std::to_string(i)) != std::string::npos);
}

int main()
{
	CHECK_EQ(pthread_key_create(&key, end_key), 0);
	for (int round = 1; round <= 3; round++) {
		std::vector<std::thread> t;

		for (int i = 0; i < 100; i++)
			t.emplace_back(body, i);
		for (auto &i : t)
			i.join();
		CHECK_EQ(made, round * 100);
		CHECK_EQ(gone, round * 100);
		CHECK_EQ(late, 0);
	}
	CHECK_EQ(plain, 7);
	return 0;
}
