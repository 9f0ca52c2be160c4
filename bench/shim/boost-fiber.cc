// bench/shim/boost-fiber.cc - Boost.Fiber: a buffered channel per seat of the ring; several processors by
// its work-stealing scheduler.
#include <boost/fiber/all.hpp>
#include <thread>

#include "shim.h"

namespace bf = boost::fibers;

static bf::fixedsize_stack stack(65536); // from malloc: below its map threshold

struct boost_fiber {
	typedef void entry;
	typedef bf::fiber thread;

	static void create(thread &t, void (*main)(void *), void *arg) { t = bf::fiber(std::allocator_arg, stack, main, arg); }
	static void join(thread &t) { t.join(); }
	static void yield() { boost::this_fiber::yield(); }

	struct lock {
		bf::mutex mutex;
		void take() { mutex.lock(); }
		void leave() { mutex.unlock(); }
	};

	struct box {
		bf::buffered_channel<uint64_t> channel{ 2 };
		void send(uint64_t m) { channel.push(m); }
		uint64_t receive() { return channel.value_pop(); }
	};
};

static void processor()
{
	bf::use_scheduling_algorithm<bf::algo::work_stealing>(vps);
	bf::condition_variable_any never;
	bf::mutex m;
	std::unique_lock<bf::mutex> hold(m);
	never.wait(hold, [] { return false; });
}

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	int status = 0;
	for (unsigned i = 1; i < vps; i++)
		std::thread(processor).detach();
	if (vps > 1)
		bf::use_scheduling_algorithm<bf::algo::work_stealing>(vps);
	bf::fiber([&] { status = questions<boost_fiber>::ask(q); }).join();
	_Exit(status);
}
