// bench/shim/photon.cc - Photon (PhotonLibOS): a semaphore per seat of the ring, its mutex, pooled
// stacks. A thread stays on the processor it was put on: with several processors, Photon's pool of
// processors takes new threads in turn.
#include <photon/common/alog.h>
#include <photon/photon.h>
#include <photon/thread/stack-allocator.h>
#include <photon/thread/thread.h>
#include <photon/thread/workerpool.h>

#include "shim.h"

static photon::WorkPool *pool;

struct photon_threads {
	typedef void *entry;
	typedef photon::join_handle *thread;

	static void create(thread &t, void *(*main)(void *), void *arg)
	{
		photon::thread *made = photon::thread_create(main, arg, 65536);
		if (!made)
			_Exit(77);
		t = photon::thread_enable_join(made);
		if (pool)
			pool->thread_migrate(made);
	}
	static void join(thread &t) { photon::thread_join(t); }
	static void yield() { photon::thread_yield(); }

	struct lock {
		photon::mutex mutex;
		void take() { mutex.lock(); }
		void leave() { mutex.unlock(); }
	};

	struct box {
		photon::semaphore full;
		uint64_t message;
		void send(uint64_t m)
		{
			message = m;
			full.signal(1);
		}
		uint64_t receive()
		{
			full.wait(1);
			return message;
		}
	};
};

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	// the event engine that wakes a processor
	uint64_t events = vps > 1 ? photon::INIT_EVENT_EPOLL : photon::INIT_EVENT_NONE;
	default_logger.log_output = log_output_null; // it writes to standard output
	photon::use_pooled_stack_allocator();
	if (photon::init(events, photon::INIT_IO_NONE))
		return 77;
	if (vps > 1)
		pool = new photon::WorkPool(vps, (int)events, photon::INIT_IO_NONE, -1);
	_Exit(questions<photon_threads>::ask(q));
}
