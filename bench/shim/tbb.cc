// bench/shim/tbb.cc - oneTBB: the questions that suit tasks which do not wait for each other: spawn,
// fork-join, tasks and a mutex.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "../tasks.h"
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

static unsigned queens(board b)
{
	unsigned sum = 0, result[QUEENS], n = 0;
	if (board_is_full(&b))
		return 1;
	tbb::task_group g;
	for (uint32_t left = board_free(&b); left; left &= left - 1, n++)
		g.run([next = board_with(&b, left & -left), to = &result[n]] { *to = queens(next); });
	g.wait();
	while (n)
		sum += result[--n];
	return sum;
}

static unsigned tree(uint64_t node)
{
	unsigned sum = 1, result[TREE_WIDTH], n = tree_children(node);
	if (!n)
		return 1;
	tbb::task_group g;
	for (unsigned i = 0; i < n; i++)
		g.run([=, to = &result[i]] { *to = tree(tree_child(node, i)); });
	g.wait();
	while (n)
		sum += result[--n];
	return sum;
}

static unsigned trees()
{
	static unsigned result[TREE_ROOTS];
	unsigned sum = 0;
	tbb::task_group g;
	for (unsigned i = 0; i < TREE_ROOTS; i++)
		g.run([=] { result[i] = tree(tree_child(1, i)); });
	g.wait();
	for (unsigned r : result)
		sum += r;
	return sum;
}

static void multiply(const product &p)
{
	if (p.side == BLOCK) {
		product_block(&p);
		return;
	}
	tbb::task_group g;
	for (unsigned i = 0; i < 8; i++) {
		g.run([part = product_part(&p, i)] { multiply(part); });
		if (i % 4 == 3)
			g.wait();
	}
}

static unsigned blocks()
{
	multiply(product_whole());
	return BLOCK_TASKS;
}

static void ask(const char *metric, unsigned (*solve)(), unsigned result, unsigned n)
{
	report(metric, scale([=](uint64_t rounds) {
		check(solve() == result, metric);
		double start = now();
		for (; rounds; rounds--)
			check(solve() == result, metric);
		return now() - start;
	}) / n);
}

static void tasks()
{
	unsigned nodes = tree_size();
	ask("fib", [] { return fib(FIB); }, FIB_RESULT, FIB_TASKS);
	ask("queens", [] { return queens({ 0, 0, 0 }); }, QUEENS_RESULT, QUEENS_TASKS);
	ask("tree", trees, nodes, nodes);
	ask("blocks", blocks, BLOCK_TASKS, BLOCK_TASKS);
	check(product_is_right(1), "product");
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
		else if (!strcmp(q, "tasks"))
			tasks();
		else if (!strcmp(q, "mutex"))
			report("lock+unlock", scale(mutex) / threads);
		else
			_Exit(77);
	});
	_Exit(0);
}
