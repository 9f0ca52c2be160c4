// bench/shim/boost-fiber.cc - Boost.Fiber: a buffered channel per seat of the ring; several processors by
// its work-stealing scheduler.
#include <boost/fiber/all.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "shim.h"

namespace bf = boost::fibers;

static bf::fixedsize_stack stack(65536); // from malloc: below its map threshold

template <class Main> static double crew(Main main)
{
	std::vector<bf::fiber> crew;
	for (unsigned i = 0; i < threads; i++)
		crew.emplace_back(std::allocator_arg, stack, main, i);
	double start = now();
	for (auto &f : crew)
		f.join();
	return now() - start;
}

static void ring()
{
	std::vector<std::unique_ptr<bf::buffered_channel<uint64_t>>> box;
	for (unsigned i = 0; i < threads; i++)
		box.emplace_back(new bf::buffered_channel<uint64_t>(2));
	crew([&](unsigned i) {
		ring_seat(i, [&](unsigned to, uint64_t m) { box[to]->push(m); },
			  [&](unsigned me) { return box[me]->value_pop(); });
	});
}

static void yields()
{
	report("yield", scale([](uint64_t n) {
		return crew([n](unsigned) {
			for (uint64_t k = n; k; k--)
				boost::this_fiber::yield();
		});
	}) / threads);
}

static void spawn()
{
	report("create+join", scale([](uint64_t n) {
		double start = now();
		for (; n; n--)
			crew([](unsigned) {});
		return now() - start;
	}) / threads);
}

static unsigned fib(unsigned n)
{
	if (n < 2)
		return n;
	unsigned a = 0;
	bf::fiber f(std::allocator_arg, stack, [&] { a = fib(n - 1); });
	unsigned b = fib(n - 2);
	f.join();
	return a + b;
}

static void mutex()
{
	bf::mutex m;
	uint64_t count;
	report("lock+unlock", scale([&](uint64_t n) {
		count = 0;
		double took = crew([&, n](unsigned) {
			for (uint64_t k = n; k; k--) {
				std::lock_guard<bf::mutex> hold(m);
				count++;
			}
		});
		check(count == n * threads, "count");
		return took;
	}) / threads);
}

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	for (unsigned i = 1; i < vps; i++)
		std::thread([] {
			bf::use_scheduling_algorithm<bf::algo::work_stealing>(vps);
			bf::condition_variable_any never;
			bf::mutex m;
			std::unique_lock<bf::mutex> hold(m);
			never.wait(hold, [] { return false; });
		}).detach();
	if (vps > 1)
		bf::use_scheduling_algorithm<bf::algo::work_stealing>(vps);
	bf::fiber([&] {
		if (!strcmp(q, "rendezvous"))
			ring();
		else if (!strcmp(q, "yield"))
			yields();
		else if (!strcmp(q, "spawn"))
			spawn();
		else if (!strcmp(q, "forkjoin"))
			fork_join(fib);
		else if (!strcmp(q, "mutex"))
			mutex();
		else
			_Exit(77);
	}).join();
	_Exit(0);
}
