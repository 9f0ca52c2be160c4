/* pthread_exit from nested frames destroys their objects, is not stopped by a catch (...) that
 * rethrows, and its value reaches the joiner. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <vector>

static int alive;

struct Guard {
	Guard() { __atomic_add_fetch(&alive, 1, __ATOMIC_RELAXED); }
	~Guard() { __atomic_sub_fetch(&alive, 1, __ATOMIC_RELAXED); }
};

__attribute__((noinline)) static void leave(void *value)
{
	sched_yield();
	if (alive > 0)
		pthread_exit(value);
}

static void deep(int n, void *value)
{
	Guard g;

	if (n == 0)
		leave(value);
	try {
		if (n > 0)
			deep(n - 1, value);
	} catch (...) {
		throw;
	}
	if (n > 0)
		test_fail(__FILE__, __LINE__, "came back from pthread_exit");
}

static void *body(void *arg)
{
	Guard g;

	deep(20, arg);
	return nullptr;
}

int main()
{
	std::vector<pthread_t> t(100);

	for (size_t i = 0; i < t.size(); i++)
		CHECK_EQ(pthread_create(&t[i], nullptr, body, &t[i]), 0);
	for (size_t i = 0; i < t.size(); i++) {
		void *r;

		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK(r == &t[i]);
	}
	CHECK_EQ(alive, 0);
	return 0;
}
