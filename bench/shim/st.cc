// bench/shim/st.cc - State Threads: a condition variable per seat of the ring; one processor.
#include <st.h>

#include "shim.h"

struct state_threads {
	typedef void *entry;
	typedef st_thread_t thread;

	static void create(thread &t, void *(*main)(void *), void *arg)
	{
		t = st_thread_create(main, arg, 1, 65536);
		if (!t)
			_Exit(77);
	}
	static void join(thread &t) { st_thread_join(t, nullptr); }
	static void yield() { st_sleep(0); }

	struct lock {
		st_mutex_t mutex = st_mutex_new();
		void take() { st_mutex_lock(mutex); }
		void leave() { st_mutex_unlock(mutex); }
	};

	struct box {
		st_cond_t cond = st_cond_new();
		uint64_t message;
		bool full = false;
		void send(uint64_t m)
		{
			message = m;
			full = true;
			st_cond_signal(cond);
		}
		uint64_t receive()
		{
			while (!full)
				st_cond_wait(cond);
			full = false;
			return message;
		}
	};
};

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	if (vps != 1 || st_set_eventsys(ST_EVENTSYS_ALT) || st_init())
		return 77;
	return questions<state_threads>::ask(q);
}
