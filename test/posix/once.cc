// pthread_once and std::call_once: once for 50 threads; after an exception or a pthread_exit out of the function
// the next caller runs it.
#include "test.h"
#include "libc_age.h"

#include <cstring>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <vector>

static pthread_once_t once = PTHREAD_ONCE_INIT, leaves = PTHREAD_ONCE_INIT;
static int runs, throws, exits;

static void run()
{
	sched_yield();
	runs++;
}

static void *call(void *arg)
{
	CHECK_EQ(pthread_once(&once, run), 0);
	CHECK_EQ(runs, 1);
	return arg;
}

static void leave()
{
	if (++exits < 3)
		pthread_exit(nullptr);
}

static void *call_leaving(void *arg)
{
	CHECK_EQ(pthread_once(&leaves, leave), 0);
	return arg;
}

int main()
{
	std::once_flag flag;
	std::vector<pthread_t> t(50);
	std::vector<std::thread> threads;
	int caught = 0;

	for (auto &i : t)
		CHECK_EQ(pthread_create(&i, nullptr, call, nullptr), 0);
	for (auto &i : t)
		CHECK_EQ(pthread_join(i, nullptr), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_create(&t[0], nullptr, call_leaving, nullptr), 0);
		CHECK_EQ(pthread_join(t[0], nullptr), 0);
	}
	CHECK_EQ(exits, 3);
	/* BZ 18435: after an exception the next caller waits for ever */
	if (!under_kochab() && libc_is_before("2.34"))
		SKIP("exceptions out of pthread_once: not in this libc");
	for (int i = 0; i < 20; i++)
		threads.emplace_back([&] {
			try {
				std::call_once(flag, [] {
					sched_yield();
					if (++throws < 5)
						throw std::runtime_error("again");
				});
			} catch (const std::runtime_error &) {
				__atomic_add_fetch(&caught, 1, __ATOMIC_RELAXED);
			}
		});
	for (auto &i : threads)
		i.join();
	CHECK_EQ(throws, 5);
	CHECK_EQ(caught, 4);
	return 0;
}
