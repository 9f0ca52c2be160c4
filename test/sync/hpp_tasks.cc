/* task.hpp: futures, promises, groups of tasks and loops, with
 * exceptions; all is destroyed once. */
#include <kochab/kochab.hpp>

#include <string>

#include "test.h"

using namespace std::chrono_literals;

enum { TASKS = 500 };

struct counted {
	static std::atomic<int> alive;
	counted() { alive++; }
	counted(const counted &) { alive++; }
	counted(counted &&) noexcept { alive++; }
	~counted() { alive--; }
};
std::atomic<int> counted::alive{ 0 };

template <class F> static bool throws(F f, const char *what)
{
	try {
		f();
	} catch (const std::exception &e) {
		return std::string(e.what()).find(what) != std::string::npos;
	}
	return false;
}

static unsigned fib(unsigned n)
{
	if (n < 2)
		return n;
	unsigned a = 0;
	kochab::task_group g;
	g.run([&a, n, c = counted()] { a = fib(n - 1); });
	unsigned b = fib(n - 2);
	CHECK(g.wait());
	return a + b;
}

static void groups()
{
	CHECK_EQ(fib(15), 610);
	std::atomic<int> n{ 0 };
	kochab::task_group g;
	for (int i = 0; i < TASKS; i++)
		g.run([&n, i, c = counted()] {
			n++;
			if (i == 7)
				throw std::runtime_error("the seventh");
			if (i % 50 == 0)
				kochab::this_thread::sleep_for(100us);
		});
	CHECK(throws([&] { g.wait(); }, "seventh"));
	CHECK(n >= 1 && n <= TASKS);
	n = 0;
	g.cancel();
	CHECK(g.is_cancelled());
	g.run([&] { n++; });
	CHECK(!g.wait());
	CHECK_EQ(n, 0);
	g.run([&] { n++; });
	CHECK(g.wait());
	CHECK_EQ(n, 1);
	{
		kochab::task_group left;
		for (int i = 0; i < TASKS; i++)
			left.run([&n, c = counted()] { n++; });
	}
	CHECK_EQ(n, TASKS + 1);
	CHECK_EQ(counted::alive, 0);
}

static void loops()
{
	std::vector<int> v(10000);
	kochab::parallel_for(0, v.size(), 64, [&](std::size_t from, std::size_t to) {
		for (; from < to; from++)
			v[from]++;
	});
	for (int i : v)
		CHECK_EQ(i, 1);
	auto piece = [](std::size_t from, std::size_t to, double &part) {
		for (; from < to; from++)
			part += 1.0 / (double)(from + 1);
	};
	auto join = [](double &left, const double &right) { left += right; };
	double a = kochab::parallel_reduce(0, 100000, 100, 0.0, piece, join);
	double b = kochab::parallel_reduce(0, 100000, 100, 0.0, piece, join);
	CHECK(a == b && a > 12.09 && a < 12.1);
	CHECK(throws([] {
		kochab::parallel_for(0, 1000, 1, [](std::size_t from, std::size_t) {
			if (from == 500)
				throw std::logic_error("piece 500");
		});
	}, "piece 500"));
}

static void futures()
{
	auto f = kochab::async([c = counted()] { return std::string("made"); });
	CHECK(f.valid());
	CHECK(f.get() == "made");
	CHECK(!f.valid());
	CHECK(throws([&] { f.wait(); }, ""));
	auto e = kochab::async([]() -> int { throw std::runtime_error("not made"); });
	CHECK(throws([&] { e.get(); }, "not made"));
	for (int i = 0; i < TASKS; i++) /* no thread asks for the values */
		kochab::async([c = counted()] {});
	CHECK_EQ(counted::alive, 0);

	kochab::promise<std::unique_ptr<int>> p;
	auto u = p.get_future();
	CHECK(u.wait_for(1ms) == std::future_status::timeout);
	kochab::thread t([&] { p.set_value(new int(9)); });
	CHECK_EQ(*u.get(), 9);
	t.join();
	CHECK(throws([&] { p.set_value(nullptr); }, ""));
	CHECK(throws([&] { p.get_future(); }, ""));
	kochab::future<void> broken;
	{
		kochab::promise<void> q;
		broken = q.get_future();
	}
	CHECK(broken.wait_for(0ms) == std::future_status::ready);
	CHECK(throws([&] { broken.get(); }, ""));
}

int main()
{
	for (int i = 0; i < 5; i++) {
		groups();
		loops();
		futures();
	}
	return 0;
}
