// bench/shim/qthreads.cc - Qthreads: a full-empty word per seat of the ring, qthread_lock; a shepherd
// per processor.
#include <qthread/qthread.h>

#include "shim.h"

struct qthreads {
	typedef aligned_t entry;
	typedef aligned_t thread; // full when the thread has ended

	static void create(thread &t, aligned_t (*main)(void *), void *arg)
	{
		if (qthread_fork(main, arg, &t) != QTHREAD_SUCCESS)
			_Exit(77);
	}
	static void join(thread &t) { qthread_readFF(nullptr, &t); }
	static void yield() { qthread_yield(); }

	struct lock {
		aligned_t word = 0;
		void take() { qthread_lock(&word); }
		void leave() { qthread_unlock(&word); }
	};

	struct box {
		aligned_t word = 0;
		box() { qthread_empty(&word); }
		void send(uint64_t m) { qthread_writeEF_const(&word, m); }
		uint64_t receive()
		{
			aligned_t m;
			qthread_readFE(&m, &word);
			return m;
		}
	};
};
static_assert(sizeof(aligned_t) == sizeof(uint64_t), "a message is a word");

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	setenv("QT_NUM_SHEPHERDS", argv[3], 1);
	setenv("QT_NUM_WORKERS_PER_SHEPHERD", "1", 1);
	setenv("QT_STACK_SIZE", "65536", 1);
	if (qthread_initialize() != QTHREAD_SUCCESS || qthread_num_workers() != vps)
		return 77;
	_Exit(questions<qthreads>::ask(q));
}
