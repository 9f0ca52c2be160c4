// C++20: jthread and stop_token, latch, barrier, counting_semaphore, async, shared_mutex, atomic wait, and a
// condition_variable_any that a stop request wakes. Prints the same numbers whatever runs its threads.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

static constexpr int threads = 16, rounds = 100;

static long latch_and_barrier()
{
	std::latch start(threads);
	long phases = 0, sum[threads] = {};
	std::barrier meet(threads, [&]() noexcept { phases++; });
	std::vector<std::jthread> crowd;

	for (int i = 0; i < threads; i++)
		crowd.emplace_back([&, i] {
			start.arrive_and_wait();
			for (int k = 0; k < rounds; k++) {
				sum[i] += phases; // only the completion writes, between two meetings
				meet.arrive_and_wait();
			}
		});
	crowd.clear();
	for (long s : sum)
		phases += s;
	return phases;
}

static long semaphores()
{
	std::counting_semaphore<8> room(8), items(0);
	std::mutex m;
	long in = 0, out = 0, fill[8];
	std::vector<std::jthread> crowd;

	for (int i = 0; i < 4; i++)
		crowd.emplace_back([&, i] {
			for (long k = 0; k < 500; k++) {
				room.acquire();
				std::scoped_lock l(m);
				fill[in++ % 8] = i * 500 + k;
				items.release();
			}
		});
	for (int i = 0; i < 4; i++)
		crowd.emplace_back([&] {
			for (long k = 0; k < 500; k++) {
				items.acquire();
				std::scoped_lock l(m);
				static long taken = 0;
				out += fill[taken++ % 8];
				room.release();
			}
		});
	crowd.clear();
	return out;
}

static long asynchronous()
{
	std::vector<std::future<long>> results;
	long sum = 0;

	for (long i = 0; i < 64; i++)
		results.push_back(std::async(std::launch::async, [i] {
			std::this_thread::sleep_for(std::chrono::microseconds(i % 7));
			return i * i;
		}));
	for (auto &r : results)
		sum += r.get();
	return sum;
}

static long readers_and_writers()
{
	std::shared_mutex lock;
	long a = 0, b = 0;
	std::atomic<long> torn = 0;
	{
		std::vector<std::jthread> crowd;

		for (int i = 0; i < threads; i++)
			crowd.emplace_back([&, i] {
				for (int k = 0; k < rounds; k++) {
					if (i % 4 == 0) {
						std::unique_lock w(lock);
						a++;
						std::this_thread::yield();
						b++;
					} else {
						std::shared_lock r(lock);
						torn += a != b;
					}
				}
			});
	}
	return torn ? -1 : a + b;
}

static long ping_pong_by_atomic_wait()
{
	std::atomic<int> turn = 0;
	long passed = 0;
	auto player = [&](int me) {
		for (int k = 0; k < 2000; k++) {
			for (int t; (t = turn.load()) % 2 != me;)
				turn.wait(t);
			passed++;
			turn.fetch_add(1);
			turn.notify_all();
		}
	};
	{
		std::jthread a(player, 0), b(player, 1);
	}
	return passed;
}

static long stopped()
{
	std::mutex m;
	std::condition_variable_any never;
	std::atomic<long> seen = 0;
	{
		std::vector<std::jthread> crowd;

		for (int i = 0; i < threads; i++)
			crowd.emplace_back([&](std::stop_token stop) {
				std::unique_lock l(m);
				seen += !never.wait(l, stop, [] { return false; });
			});
	}
	return seen;
}

int main()
{
	printf("phases %ld semaphores %ld async %ld", latch_and_barrier(), semaphores(), asynchronous());
	printf(" rwlock %ld wait %ld stop %ld\n", readers_and_writers(), ping_pong_by_atomic_wait(), stopped());
	return 0;
}
