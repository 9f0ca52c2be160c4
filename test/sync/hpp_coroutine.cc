/* task.hpp with C++20: coroutines that await channels, events and time; their caller
 * goes on while they wait. */
#include <kochab/kochab.hpp>

#include <string>

#include "test.h"

#if !defined(__cpp_impl_coroutine)
int main() { SKIP("no coroutines"); }
#else

using namespace std::chrono_literals;

enum { ROUNDS = 200 };

static kochab::coroutine<int> add_up(kochab::channel<std::string> &c)
{
	int n = 0;
	while (auto v = co_await kochab::async_receive(c))
		n += std::stoi(*v);
	co_return n;
}

static kochab::coroutine<> send_all(kochab::channel<std::string> &c)
{
	for (int i = 1; i <= ROUNDS; i++)
		CHECK(co_await kochab::async_send(c, std::to_string(i)));
	c.close();
	CHECK(!co_await kochab::async_send(c, std::string("late")));
}

static kochab::coroutine<std::uint64_t> after(kochab::async_event &e, std::uint64_t since)
{
	co_await e;
	co_await kochab::async_sleep_for(2ms);
	co_return kb_now() - since;
}

static kochab::coroutine<int> fails(kochab::async_event &e)
{
	co_await e;
	throw std::runtime_error("after the event");
}

static kochab::coroutine<std::pair<int, int>> at_once()
{
	co_return { 1, 2 };
}

/* Awaits a coroutine that has ended, coroutines that wait, and coroutines that throw. */
static kochab::coroutine<int> composed(kochab::async_event &e, kochab::channel<std::string> &c)
{
	const auto p = co_await at_once();
	int n = p.first + p.second;
	n += co_await add_up(c);
	try {
		n += co_await fails(e);
	} catch (const std::runtime_error &) {
		n += 1000;
	}
	co_return n;
}

static void compose()
{
	for (int i = 0; i < 50; i++) {
		kochab::async_event e;
		kochab::channel<std::string> c;
		auto whole = composed(e, c);
		CHECK(c.send("10"));
		CHECK(c.send("20"));
		c.close();
		e.set();
		CHECK_EQ(whole.get(), 1033);
	}
}

int main()
{
	compose();
	kochab::channel<std::string> c;
	auto sum = add_up(c);
	auto sender = send_all(c);
	CHECK_EQ(sum.get(), ROUNDS * (ROUNDS + 1) / 2);
	sender.get();

	kochab::async_event e;
	std::vector<kochab::coroutine<std::uint64_t>> all;
	std::uint64_t now = kb_now();
	for (int i = 0; i < 20; i++)
		all.push_back(after(e, now));
	auto bad = fails(e);
	CHECK(all[0].result().wait_for(1ms) == std::future_status::timeout);
	e.set();
	for (auto &a : all)
		CHECK(a.get() >= 2000000);
	CHECK(after(e, kb_now()).get() >= 2000000);
	bool thrown = false;
	try {
		bad.get();
	} catch (const std::runtime_error &x) {
		thrown = std::string(x.what()) == "after the event";
	}
	CHECK(thrown);
	return 0;
}
#endif
