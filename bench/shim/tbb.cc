// bench/shim/tbb.cc - oneTBB: what fits tasks that do not wait for each other: spawn, fork-join and a mutex.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "shim.h"

namespace tbb = oneapi::tbb;

template <class Main> static double crew(Main main)
{
	tbb::task_group all;
	double start = now();
	for (unsigned i = 0; i < threads; i++)
		all.run(main);
	all.wait();
	return now() - start;
}

static double spawn(uint64_t n)
{
	double took = 0;
	for (; n; n--)
		took += crew([] {});
	return took;
}

static unsigned fib(unsigned n)
{
	if (n < 2)
		return n;
	unsigned a;
	tbb::task_group child;
	child.run([&] { a = fib(n - 1); });
	unsigned b = fib(n - 2);
	child.wait();
	return a + b;
}

static double mutex(uint64_t n)
{
	static tbb::mutex m;
	uint64_t count = 0;
	double took = crew([&] {
		for (uint64_t k = n; k; k--) {
			tbb::mutex::scoped_lock hold(m);
			count++;
		}
	});
	check(count == n * threads, "count");
	return took;
}

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	tbb::global_control processors(tbb::global_control::max_allowed_parallelism, vps);
	tbb::task_arena((int)vps).execute([q] {
		if (!strcmp(q, "spawn"))
			report("create+join", scale(spawn) / threads);
		else if (!strcmp(q, "forkjoin"))
			fork_join(fib);
		else if (!strcmp(q, "mutex"))
			report("lock+unlock", scale(mutex) / threads);
		else
			_Exit(77);
	});
	_Exit(0);
}
