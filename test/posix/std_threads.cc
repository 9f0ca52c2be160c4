// The C++ library's threads: mutexes, condition variables, async, futures, latches, barriers, semaphores, jthread.
#include "test.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <thread>
#include <vector>
#if __cplusplus >= 202002L
#include <barrier>
#include <latch>
#include <semaphore>
#include <stop_token>
#endif

using namespace std::chrono_literals;

static void counting()
{
	std::mutex m;
	std::condition_variable cv;
	long n = 0;
	std::vector<std::thread> t;

	for (int i = 0; i < 64; i++)
		t.emplace_back([&] {
			for (int k = 0; k < 500; k++) {
				std::lock_guard<std::mutex> g(m);
				n++;
			}
			cv.notify_all();
		});
	{
		std::unique_lock<std::mutex> g(m);
		cv.wait(g, [&] { return n == 64 * 500; });
	}
	for (auto &i : t)
		i.join();
	CHECK_EQ(n, 64 * 500);
}

static void futures()
{
	std::vector<std::future<long>> f;
	std::promise<int> p;
	std::shared_future<int> s = p.get_future().share();
	long sum = 0;

	for (long i = 0; i < 100; i++)
		f.push_back(std::async(std::launch::async, [i, s] { return i * s.get(); }));
	CHECK(f[0].wait_for(5ms) == std::future_status::timeout);
	p.set_value(3);
	for (auto &i : f)
		sum += i.get();
	CHECK_EQ(sum, 3 * 99 * 100 / 2);
	auto bad = std::async(std::launch::async, []() -> int { throw std::runtime_error("carried over"); });
	try {
		bad.get();
		CHECK(!"an exception was lost");
	} catch (const std::runtime_error &) {
	}
}

static void timed()
{
	std::timed_mutex m;
	std::shared_timed_mutex sm;
	std::recursive_mutex rm;
	std::condition_variable cv;
	std::mutex cm;

	m.lock();
	std::thread([&] { CHECK(!m.try_lock_for(10ms)); }).join();
	m.unlock();
	sm.lock_shared();
	std::thread([&] {
		CHECK(sm.try_lock_shared());
		CHECK(!sm.try_lock_for(10ms));
		sm.unlock_shared();
	}).join();
	sm.unlock_shared();
	rm.lock();
	rm.lock();
	rm.unlock();
	rm.unlock();
	std::unique_lock<std::mutex> g(cm);
	CHECK(cv.wait_for(g, 10ms) == std::cv_status::timeout);
	std::this_thread::sleep_for(5ms);
}

#if __cplusplus >= 202002L
static void twenty()
{
	std::latch done(40);
	std::counting_semaphore<4> places(4);
	std::barrier sync(40);
	std::atomic<int> inside = 0, word = 0, stopped = 0;
	std::vector<std::jthread> t;

	for (int i = 0; i < 40; i++)
		t.emplace_back([&](std::stop_token stop) {
			for (int k = 0; k < 20; k++) {
				places.acquire();
				CHECK(++inside <= 4);
				std::this_thread::yield();
				--inside;
				places.release();
				sync.arrive_and_wait();
			}
			done.count_down();
			word.wait(0);
			std::mutex m;
			std::condition_variable_any cv;
			std::unique_lock g(m);
			cv.wait(g, stop, [] { return false; });
			stopped++;
		});
	done.wait();
	word = 1;
	word.notify_all();
	t.clear();
	CHECK_EQ(stopped.load(), 40);
}
#else
static void twenty() {}
#endif

int main()
{
	counting();
	futures();
	timed();
	twenty();
	return 0;
}
