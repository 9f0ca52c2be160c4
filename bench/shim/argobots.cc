// bench/shim/argobots.cc - Argobots: an eventual per seat of the ring, ABT_mutex. A single stream has
// its own pool; several streams have a pool each, emptied by Argobots' random work stealing.
#include <abt.h>
#include <vector>

#include "shim.h"

static std::vector<ABT_pool> pools;

static void right(int error)
{
	if (error != ABT_SUCCESS) {
		fprintf(stderr, "shim: Argobots says %d\n", error);
		_Exit(77);
	}
}

struct argobots {
	typedef void entry;
	typedef ABT_thread thread;

	static void create(thread &t, void (*main)(void *), void *arg)
	{
		int rank = 0;
		if (vps > 1)
			ABT_self_get_xstream_rank(&rank);
		right(ABT_thread_create(pools[(unsigned)rank], main, arg, ABT_THREAD_ATTR_NULL, &t));
	}
	static void join(thread &t) { ABT_thread_free(&t); }
	static void yield() { ABT_self_yield(); }

	struct lock {
		ABT_mutex mutex;
		lock() { right(ABT_mutex_create(&mutex)); }
		void take() { ABT_mutex_lock(mutex); }
		void leave() { ABT_mutex_unlock(mutex); }
	};

	struct box {
		ABT_eventual eventual;
		box() { right(ABT_eventual_create(sizeof(uint64_t), &eventual)); }
		void send(uint64_t m) { ABT_eventual_set(eventual, &m, sizeof m); }
		uint64_t receive()
		{
			uint64_t *m, got;
			ABT_eventual_wait(eventual, (void **)&m);
			got = *m;
			ABT_eventual_reset(eventual);
			return got;
		}
	};
};

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	setenv("ABT_THREAD_STACKSIZE", "65536", 1);
	right(ABT_init(0, nullptr));
	pools.resize(vps);
	for (auto &p : pools)
		right(ABT_pool_create_basic(ABT_POOL_FIFO, vps == 1 ? ABT_POOL_ACCESS_PRIV : ABT_POOL_ACCESS_MPMC, ABT_TRUE, &p));
	ABT_sched_predef kind = vps == 1 ? ABT_SCHED_BASIC : ABT_SCHED_RANDWS;
	ABT_xstream self;
	right(ABT_xstream_self(&self));
	right(ABT_xstream_set_main_sched_basic(self, kind, (int)vps, pools.data()));
	for (unsigned i = 1; i < vps; i++) { // each stream's own pool first
		std::vector<ABT_pool> own(pools);
		std::swap(own[0], own[i]);
		right(ABT_xstream_create_basic(kind, (int)vps, own.data(), ABT_SCHED_CONFIG_NULL, &self));
	}
	_Exit(questions<argobots>::ask(q));
}
