// bench/programs/tbb.cc - the stencil with oneTBB: pieces of rows as tasks.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "stencil.h"

namespace tbb = oneapi::tbb;

static tbb::task_arena *arena;

static void prepare(int threads)
{
	static tbb::global_control limit(tbb::global_control::max_allowed_parallelism, (size_t)threads);
	arena = new tbb::task_arena(threads);
}

static void sweep(square to, square from)
{
	arena->execute([=] {
		tbb::parallel_for(tbb::blocked_range<int>(1, SIDE - 1, 16), [=](const tbb::blocked_range<int> &rows) {
			for (int y = rows.begin(); y < rows.end(); y++)
				stencil_row(to, from, y);
		});
	});
}

int main(int argc, char **argv)
{
	return stencil_main(argc, argv, prepare, sweep);
}
