// bench/shim/pth.cc - GNU Pth: mutex and condition variable per seat of the ring; one processor.
#include <pth.h>

#include "shim.h"

static pth_attr_t attr;

struct pth {
	typedef void *entry;
	typedef pth_t thread;

	static void create(thread &t, void *(*main)(void *), void *arg)
	{
		t = pth_spawn(attr, main, arg);
		if (!t)
			_Exit(77);
	}
	static void join(thread &t) { pth_join(t, nullptr); }
	static void yield() { pth_yield(nullptr); }

	struct lock {
		pth_mutex_t mutex;
		lock() { pth_mutex_init(&mutex); }
		void take() { pth_mutex_acquire(&mutex, FALSE, nullptr); }
		void leave() { pth_mutex_release(&mutex); }
	};

	struct box : lock {
		pth_cond_t cond;
		uint64_t message;
		bool full = false;
		box() { pth_cond_init(&cond); }
		void send(uint64_t m)
		{
			take();
			message = m;
			full = true;
			pth_cond_notify(&cond, FALSE);
			leave();
		}
		uint64_t receive()
		{
			take();
			while (!full)
				pth_cond_await(&cond, &mutex, nullptr);
			full = false;
			uint64_t m = message;
			leave();
			return m;
		}
	};
};

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	if (vps != 1 || !pth_init())
		return 77;
	attr = pth_attr_new();
	pth_attr_set(attr, PTH_ATTR_STACK_SIZE, 65536);
	return questions<pth>::ask(q);
}
