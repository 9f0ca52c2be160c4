// TBB: parallel_for, parallel_reduce, a pipeline in order, a concurrent map and tasks in a group, in an arena of
// more threads than processors. Prints the same numbers whatever runs its threads.
#include <tbb/concurrent_hash_map.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <cstdio>
#include <functional>
#include <vector>

using range = tbb::blocked_range<long>;

static long reduce()
{
	return tbb::parallel_reduce(
		range(0, 200000), 0L,
		[](const range &r, long sum) {
			for (long i = r.begin(); i < r.end(); i++)
				sum += i * i % 7;
			return sum;
		},
		std::plus<long>());
}

static long count_in_map()
{
	tbb::concurrent_hash_map<long, long> map;
	long total = 0;

	tbb::parallel_for(0L, 20000L, [&](long i) {
		tbb::concurrent_hash_map<long, long>::accessor a;

		map.insert(a, i % 100);
		a->second += i;
	});
	for (auto &e : map)
		total += e.second;
	return total;
}

static bool pipeline_in_order()
{
	std::vector<long> out;
	long next = 0;
	bool ordered = true;

	tbb::parallel_pipeline(
		16, tbb::make_filter<void, long>(tbb::filter_mode::serial_in_order,
						 [&](tbb::flow_control &fc) {
							 if (next == 5000)
								 fc.stop();
							 return next++;
						 }) &
			    tbb::make_filter<long, long>(tbb::filter_mode::parallel, [](long i) { return 3 * i; }) &
			    tbb::make_filter<long, void>(tbb::filter_mode::serial_in_order,
							 [&](long i) { out.push_back(i); }));
	for (long i = 0; i < (long)out.size(); i++)
		ordered = ordered && out[i] == 3 * i;
	return ordered && out.size() == 5000;
}

static long fibonacci(int n)
{
	long a = 0, b = 0;

	if (n < 10)
		return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
	tbb::task_group g;
	g.run([&] { a = fibonacci(n - 1); });
	g.run([&] { b = fibonacci(n - 2); });
	g.wait();
	return a + b;
}

int main()
{
	tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 8);
	tbb::task_arena arena(8);

	arena.execute([] {
		printf("reduce %ld map %ld pipeline %d", reduce(), count_in_map(), (int)pipeline_in_order());
		printf(" fibonacci %ld\n", fibonacci(20));
	});
	return 0;
}
