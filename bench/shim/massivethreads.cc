// bench/shim/massivethreads.cc - MassiveThreads: a full-empty lock per seat of the ring, its mutex,
// its work stealing.
#include <myth/myth.h>

#include "shim.h"

struct massivethreads {
	typedef void *entry;
	typedef myth_thread_t thread;

	static void create(thread &t, void *(*main)(void *), void *arg)
	{
		t = myth_create(main, arg);
		if (!t)
			_Exit(77);
	}
	static void join(thread &t) { myth_join(t, nullptr); }
	static void yield() { myth_yield(); }

	struct lock {
		myth_mutex_t mutex;
		lock() { myth_mutex_init(&mutex, nullptr); }
		void take() { myth_mutex_lock(&mutex); }
		void leave() { myth_mutex_unlock(&mutex); }
	};

	struct box {
		myth_felock_t full;
		uint64_t message;
		box() { myth_felock_init(&full, nullptr); }
		void send(uint64_t m)
		{
			myth_felock_wait_and_lock(&full, 0);
			message = m;
			myth_felock_mark_and_signal(&full, 1);
		}
		uint64_t receive()
		{
			myth_felock_wait_and_lock(&full, 1);
			uint64_t m = message;
			myth_felock_mark_and_signal(&full, 0);
			return m;
		}
	};
};

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	myth_globalattr_t attr;
	myth_globalattr_init(&attr);
	myth_globalattr_set_n_workers(&attr, vps);
	myth_globalattr_set_stacksize(&attr, 65536);
	myth_init_ex(&attr);
	_Exit(questions<massivethreads>::ask(q));
}
