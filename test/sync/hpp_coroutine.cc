/* task.hpp with C++20: coroutines that await channels, events and time; while they wait their caller goes on. */
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

int main()
{
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
