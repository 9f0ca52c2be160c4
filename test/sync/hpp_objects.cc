/* kochab.hpp: each object behaves as its namesake of the standard library,
 * across threads that suspend. */
#include <kochab/kochab.hpp>

#include <string>
#include <thread>

#include "test.h"

using namespace std::chrono_literals;

enum { THREADS = 20, ROUNDS = 200 };

static void threads()
{
	std::string said = "no";
	int sum = 0;
	{
		kochab::thread t([&](kochab::stop_token stop, int a, std::unique_ptr<int> b) {
			sum = a + *b;
			while (!stop.stop_requested())
				kochab::this_thread::yield();
			said = "stopped";
		}, 3, std::make_unique<int>(4));
		CHECK(t.joinable());
		CHECK(t.get_id() != kochab::this_thread::get_id());
		kochab::thread u(std::move(t));
		CHECK(!t.joinable());
	}
	CHECK_EQ(sum, 7);
	CHECK(said == "stopped");
	kochab::thread_options o;
	o.name = "named";
	kochab::thread n(o, [] {
		char name[KB_NAME_MAX];
		CHECK_EQ(kb_thread_getname(kb_thread_self(), name, sizeof name), 0);
		CHECK(std::string(name) == "named");
		try {
			kochab::this_thread::sleep_for(1ms);
			throw 5;
		} catch (int e) {
			kochab::this_thread::yield(); /* own TLS: allowed */
			CHECK_EQ(e, 5);
		}
	});
	n.join();
	std::error_code e;
	n.join(e);
	CHECK(e == std::errc::invalid_argument);
	bool thrown = false;
	try {
		n.join();
	} catch (const std::system_error &x) {
		thrown = x.code() == std::errc::invalid_argument;
	}
	CHECK(thrown);
}

static void callbacks()
{
	kochab::stop_source s;
	int calls = 0;
	{
		kochab::stop_callback gone(s.get_token(), [&] { calls += 100; });
	}
	kochab::stop_callback c(s.get_token(), [&] { calls++; });
	CHECK(s.request_stop());
	CHECK(!s.request_stop());
	CHECK_EQ(calls, 1);
	kochab::stop_callback late(s.get_token(), [&] { calls++; });
	CHECK_EQ(calls, 2);
}

template <class M> static void lock(bool again)
{
	M m;
	int n = 0, inside = 0;
	{
		std::vector<kochab::thread> all;
		for (int i = 0; i < THREADS; i++)
			all.emplace_back([&] {
				for (int k = 0; k < ROUNDS; k++) {
					std::unique_lock<M> hold(m);
					std::unique_lock<M> twice;
					if (again)
						twice = std::unique_lock<M>(m);
					CHECK_EQ(++inside, 1);
					if (k % 16 == 0)
						kochab::this_thread::yield();
					n++;
					--inside;
				}
			});
	}
	CHECK_EQ(n, THREADS * ROUNDS);
	std::unique_lock<M> hold(m);
	kochab::thread([&] {
		CHECK(!m.try_lock());
		CHECK(!m.try_lock_for(2ms));
		CHECK(!m.try_lock_until(std::chrono::system_clock::now() + 2ms));
	}).join();
}

static void shared()
{
	kochab::shared_mutex m;
	std::shared_lock<kochab::shared_mutex> one(m);
	kochab::thread([&] {
		std::shared_lock<kochab::shared_mutex> two(m, std::try_to_lock);
		CHECK(two.owns_lock());
		CHECK(!m.try_lock());
		CHECK(!m.try_lock_for(1ms));
	}).join();
	one.unlock();
	std::unique_lock<kochab::shared_mutex> w(m);
	kochab::thread([&] { CHECK(!m.try_lock_shared_for(1ms)); }).join();
}

static void conditions()
{
	kochab::mutex m;
	kochab::condition_variable c;
	int turn = 0;
	{
		kochab::thread t([&] {
			for (int i = 0; i < ROUNDS; i++) {
				std::unique_lock<kochab::mutex> l(m);
				c.wait(l, [&] { return turn % 2 == 1; });
				turn++;
				c.notify_one();
			}
		});
		for (int i = 0; i < ROUNDS; i++) {
			std::unique_lock<kochab::mutex> l(m);
			c.wait(l, [&] { return turn % 2 == 0; });
			turn++;
			c.notify_one();
		}
	}
	CHECK_EQ(turn, 2 * ROUNDS);
	std::unique_lock<kochab::mutex> l(m);
	CHECK(c.wait_for(l, 1ms) == std::cv_status::timeout);
	CHECK(!c.wait_for(l, 1ms, [] { return false; }));
	CHECK(c.wait_until(l, std::chrono::steady_clock::now() + 10s, [] { return true; }));
	l.unlock();
	for (int i = 0; i < 50; i++) {
		bool met = true;
		{
			kochab::thread t([&](kochab::stop_token stop) {
				std::unique_lock<kochab::mutex> h(m);
				met = c.wait(h, stop, [] { return false; });
				CHECK(h.owns_lock());
			});
			if (i % 2)
				kochab::this_thread::yield();
		}
		CHECK(!met);
	}
}

static void counters()
{
	kochab::latch all(THREADS), go(1);
	kochab::counting_semaphore<> s(0);
	int phases = 0;
	std::atomic<int> n{ 0 };
	auto count = [&] { phases++; };
	kochab::barrier<decltype(count)> b(THREADS, count);
	{
		std::vector<kochab::thread> t;
		for (int i = 0; i < THREADS; i++)
			t.emplace_back([&] {
				go.wait();
				for (int k = 1; k <= 10; k++) {
					n++;
					b.arrive_and_wait();
					CHECK(n >= k * THREADS);
					CHECK(phases >= k);
				}
				all.count_down();
				s.release();
			});
		CHECK(!go.try_wait());
		go.count_down();
		all.wait();
		for (int i = 0; i < THREADS; i++)
			s.acquire();
		CHECK(!s.try_acquire());
		CHECK(!s.try_acquire_for(1ms));
	}
	CHECK_EQ(phases, 10);
	bool thrown = false;
	try {
		kochab::binary_semaphore bad(2);
	} catch (const std::system_error &e) {
		thrown = e.code() == std::errc::invalid_argument;
	}
	CHECK(thrown);
}

template <class T> static void channels(T (*make)(int), std::size_t capacity)
{
	kochab::channel<T> c(capacity);
	int got = 0;
	{
		kochab::thread receiver([&] {
			for (T &v : c)
				CHECK(v == make(got++));
		});
		for (int i = 0; i < ROUNDS; i++)
			CHECK(c.send(make(i)));
		c.close();
	}
	CHECK_EQ(got, ROUNDS);
	CHECK(!c.send(make(1)));
	CHECK(!c.receive());
	kochab::channel<T> left(3); /* elements that no thread takes are destroyed */
	CHECK(left.try_send(make(1)));
	CHECK_EQ(left.size(), 1);
	CHECK(!kochab::channel<T>(0).receive_until(std::chrono::steady_clock::now() + 1ms));
	CHECK(!kochab::channel<T>(0).send_until(make(1), std::chrono::steady_clock::now() + 1ms));
}

static void selects()
{
	kochab::channel<std::string> a, b(1);
	kochab::channel<int> full(1);
	std::optional<std::string> v, w;
	CHECK(full.try_send(1));
	CHECK(!kochab::select().receive(a, v).send(full, 2).try_now());
	CHECK(!kochab::select().receive(a, v).send(full,
		2).wait_until(std::chrono::steady_clock::now() + 1ms));
	CHECK_EQ(kochab::select().receive(a, v).send(b, std::string("to b")).wait(), 1);
	CHECK(!v);
	kochab::thread t([&] { CHECK(a.send("to a")); });
	CHECK_EQ(kochab::select().send(full, 2).receive(a, v).wait(), 1);
	CHECK(v && *v == "to a");
	CHECK_EQ(kochab::select().receive(a, v).receive(b, w).wait(), 1);
	CHECK(w && *w == "to b");
	a.close();
	CHECK_EQ(kochab::select().receive(a, v).wait(), 0);
	CHECK(!v);
}

int main()
{
	threads();
	callbacks();
	lock<kochab::mutex>(false);
	lock<kochab::recursive_mutex>(true);
	shared();
	conditions();
	counters();
	channels<int>([](int i) { return i; }, 0);
	channels<std::string>(
		[](int i) {
			return "a string that is longer than what lies in it " + std::to_string(i);
		},
		5);
	selects();
	return 0;
}
