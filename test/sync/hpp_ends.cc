/* kochab.hpp at its edges: the end of a stop callback that is being called, promises that
 * are destroyed, deadlines that do not fit, values that a select has not sent, exceptions
 * that must end the program. */
/* programs that enable this warning get none from the headers */
#pragma GCC diagnostic error "-Wshadow"
#pragma GCC diagnostic error "-Wconversion"
#include <kochab/kochab.hpp>

#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

using namespace std::chrono_literals;

static void foreign_callback()
{
	kochab::stop_source s;
	std::atomic<bool> inside{ false }, gone{ false }, bad{ false };
	auto f = [&] {
		inside = true;
		std::this_thread::sleep_for(30ms);
		bad = gone.load();
	};
	auto c = std::make_unique<kochab::stop_callback<decltype(f)>>(s.get_token(), f);
	std::thread a([&] { s.request_stop(); });
	std::thread b([&] {
		while (!inside)
			std::this_thread::sleep_for(1ms);
		c.reset();
		gone = true;
	});
	a.join();
	b.join();
	CHECK(gone && !bad);
}

struct suicide {
	std::unique_ptr<kochab::stop_callback<suicide>> *self;
	void operator()() const { self->reset(); }
};

static void own_callback()
{
	kochab::stop_source s;
	std::unique_ptr<kochab::stop_callback<suicide>> c;
	c = std::make_unique<kochab::stop_callback<suicide>>(s.get_token(), suicide{ &c });
	std::thread([&] { CHECK(s.request_stop()); }).join();
	CHECK(!c);
}

static void add(int &n, int by) { n += by; }

static void references()
{
	int n = 0;
	kochab::thread(add, std::ref(n), 3).join();
	CHECK_EQ(n, 3);
	static_assert(std::is_nothrow_move_assignable_v<kochab::thread>);
	static_assert(!std::is_copy_constructible_v<kochab::future<int>>);
}

template <class F> static bool fails(std::future_errc code, F f)
{
	try {
		f();
	} catch (const std::future_error &e) {
		return e.code() == code;
	}
	return false;
}

struct fragile {
	fragile() = default;
	fragile(const fragile &) { throw 1; }
	fragile(fragile &&) = default;
};

static void promises()
{
	kochab::promise<int> p;
	auto f = p.get_future();
	p = kochab::promise<int>();
	CHECK(f.wait_for(5s) == std::future_status::ready);
	CHECK(fails(std::future_errc::broken_promise, [&] { f.get(); }));
	kochab::promise<int> q(std::move(p));
	CHECK(fails(std::future_errc::no_state, [&] { p.set_value(1); }));
	CHECK(fails(std::future_errc::no_state, [&] { p.set_exception(nullptr); }));
	CHECK(fails(std::future_errc::no_state, [&] { p.get_future(); }));
	q.set_value(2);
	CHECK_EQ(q.get_future().get(), 2);
	CHECK(fails(std::future_errc::promise_already_satisfied, [&] { q.set_value(3); }));
	kochab::promise<fragile> r;
	auto g = r.get_future();
	const fragile x;
	bool thrown = false;
	try {
		r.set_value(x);
	} catch (int) {
		thrown = true;
	}
	CHECK(thrown);
	r.set_value();
	CHECK(g.wait_for(5s) == std::future_status::ready);
	g.get();
}

template <class Time> static void at_once(const Time &t)
{
	kochab::channel<int> c;
	CHECK(!c.receive_until(t));
	kochab::this_thread::sleep_until(t);
}

template <class Time> static void for_ever(const Time &t)
{
	kochab::channel<int> c;
	kochab::thread w([&] {
		kochab::this_thread::sleep_for(2ms);
		c.send(1);
	});
	CHECK(c.receive_until(t).has_value());
}

static void deadlines()
{
	using steady = std::chrono::steady_clock;
	using system = std::chrono::system_clock;
	using std::chrono::hours;
	at_once(steady::time_point::min());
	at_once(system::time_point::min());
	at_once(std::chrono::time_point<system, hours>::min());
	for_ever(steady::time_point::max());
	for_ever(system::time_point::max());
	for_ever(std::chrono::time_point<system, hours>::max());
	for_ever(hours::max());
	kochab::this_thread::sleep_for(hours::min());
	kochab::mutex m;
	kochab::condition_variable c;
	bool set = false;
	std::unique_lock<kochab::mutex> l(m);
	kochab::thread w([&] {
		std::lock_guard<kochab::mutex> hold(m);
		set = true;
		c.notify_all();
	});
	CHECK(c.wait_for(l, hours::max(), [&] { return set; }));
	CHECK(!c.wait_for(l, hours::min(), [] { return false; }));
}

struct counted {
	static int alive;
	counted() { alive++; }
	counted(const counted &) { alive++; }
	~counted() { alive--; }
};
int counted::alive;

static void unsent()
{
	kochab::channel<counted> c, d(1);
	{
		kochab::select s;
		s.send(c, counted());
		CHECK_EQ(counted::alive, 1);
	}
	CHECK_EQ(counted::alive, 0);
	CHECK(!kochab::select().send(c, counted()).try_now());
	CHECK_EQ(counted::alive, 0);
	CHECK_EQ(kochab::select().send(d, counted()).wait(), 0);
	CHECK_EQ(counted::alive, 1);
	CHECK(d.receive().has_value());
	CHECK_EQ(counted::alive, 0);
	kochab::channel<std::string> text(1);
	CHECK_EQ(kochab::select().send(text, "x").wait(), 0);
	CHECK(*text.receive() == "x");
}

/* Returns whether f ends the program by std::terminate, which reports it here. */
template <class F> static bool terminates(F f)
{
	const pid_t child = fork();
	if (child == 0) {
		std::set_terminate([] { _exit(42); });
		alarm(60);
		f();
		_exit(1);
	}
	int status = 0;
	CHECK_EQ(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

static void throwing_callback()
{
	kochab::stop_source s;
	auto f = [] { throw 1; };
	kochab::stop_callback<decltype(f)> c(s.get_token(), f);
	try {
		s.request_stop();
	} catch (int) {
	}
}

static void own_end()
{
	std::unique_ptr<kochab::thread> p;
	kochab::channel<int> c;
	p = std::make_unique<kochab::thread>([&] {
		c.receive();
		p.reset();
	});
	c.send(1);
	kochab::this_thread::sleep_for(10s);
}

int main()
{
	CHECK(terminates(throwing_callback)); /* before there is a runtime to fork */
	CHECK(terminates(own_end));
	foreign_callback();
	own_callback();
	references();
	promises();
	deadlines();
	unsent();
	return 0;
}
