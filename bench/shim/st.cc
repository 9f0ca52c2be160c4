// bench/shim/st.cc - State Threads: a condition variable per seat of the ring; one processor.
#include <st.h>
#include <vector>

#include "shim.h"

struct box {
	st_cond_t cond;
	uint64_t message;
	bool full;
};

static std::vector<box> boxes;
static uint64_t each;
static st_mutex_t lock;
static uint64_t count;

static double crew(void *(*main)(void *))
{
	std::vector<st_thread_t> crew(threads);
	double start = now();
	for (uintptr_t i = 0; i < threads; i++)
		if (!(crew[i] = st_thread_create(main, (void *)i, 1, 65536)))
			_Exit(77);
	for (auto t : crew)
		st_thread_join(t, nullptr);
	return now() - start;
}

static void *seat(void *i)
{
	ring_seat((unsigned)(uintptr_t)i,
		  [](unsigned to, uint64_t m) {
			  boxes[to].message = m;
			  boxes[to].full = true;
			  st_cond_signal(boxes[to].cond);
		  },
		  [](unsigned me) {
			  while (!boxes[me].full)
				  st_cond_wait(boxes[me].cond);
			  boxes[me].full = false;
			  return boxes[me].message;
		  });
	return nullptr;
}

static void *yields(void *)
{
	for (uint64_t k = each; k; k--)
		st_sleep(0);
	return nullptr;
}

static void *nothing(void *)
{
	return nullptr;
}

static void *fib_thread(void *n);

static unsigned fib(unsigned n)
{
	if (n < 2)
		return n;
	void *a;
	st_thread_t t = st_thread_create(fib_thread, (void *)(uintptr_t)(n - 1), 1, 65536);
	unsigned b = fib(n - 2);
	st_thread_join(t, &a);
	return (unsigned)(uintptr_t)a + b;
}

static void *fib_thread(void *n)
{
	return (void *)(uintptr_t)fib((unsigned)(uintptr_t)n);
}

static void *locks(void *)
{
	for (uint64_t k = each; k; k--) {
		st_mutex_lock(lock);
		count++;
		st_mutex_unlock(lock);
	}
	return nullptr;
}

static double with(uint64_t n, void *(*main)(void *))
{
	each = n;
	return crew(main);
}

int main(int argc, char **argv)
{
	const char *q = arguments(argc, argv);
	if (st_set_eventsys(ST_EVENTSYS_ALT) || st_init() || vps != 1)
		return 77;
	lock = st_mutex_new();
	boxes.resize(threads);
	for (auto &b : boxes)
		b.cond = st_cond_new();
	if (!strcmp(q, "rendezvous"))
		crew(seat);
	else if (!strcmp(q, "yield"))
		report("yield", scale([](uint64_t n) { return with(n, yields); }) / threads);
	else if (!strcmp(q, "spawn"))
		report("create+join", scale([](uint64_t n) {
			double took = 0;
			for (; n; n--)
				took += crew(nothing);
			return took;
		}) / threads);
	else if (!strcmp(q, "forkjoin"))
		fork_join(fib);
	else if (!strcmp(q, "mutex"))
		report("lock+unlock", scale([](uint64_t n) { return with(n, locks); }) / threads);
	else
		return 77;
	return 0;
}
