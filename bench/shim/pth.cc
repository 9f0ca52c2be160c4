// bench/shim/pth.cc - GNU Pth: mutex and condition variable per seat of the ring; one processor. Its
// threads cost too much for the spawn and fork-join sizes; it answers those with what it can create.
#include <pth.h>
#include <vector>

#include "shim.h"

struct box {
	pth_mutex_t mutex;
	pth_cond_t cond;
	uint64_t message;
	bool full;
};

static std::vector<box> boxes;
static pth_attr_t attr;
static pth_mutex_t lock = PTH_MUTEX_INIT;
static uint64_t each, count;

static double crew(void *(*main)(void *))
{
	std::vector<pth_t> crew(threads);
	double start = now();
	for (uintptr_t i = 0; i < threads; i++)
		if (!(crew[i] = pth_spawn(attr, main, (void *)i)))
			_Exit(77);
	for (auto t : crew)
		pth_join(t, nullptr);
	return now() - start;
}

static void *seat(void *i)
{
	ring_seat((unsigned)(uintptr_t)i,
		  [](unsigned to, uint64_t m) {
			  pth_mutex_acquire(&boxes[to].mutex, FALSE, nullptr);
			  boxes[to].message = m;
			  boxes[to].full = true;
			  pth_cond_notify(&boxes[to].cond, FALSE);
			  pth_mutex_release(&boxes[to].mutex);
		  },
		  [](unsigned me) {
			  pth_mutex_acquire(&boxes[me].mutex, FALSE, nullptr);
			  while (!boxes[me].full)
				  pth_cond_await(&boxes[me].cond, &boxes[me].mutex, nullptr);
			  boxes[me].full = false;
			  uint64_t m = boxes[me].message;
			  pth_mutex_release(&boxes[me].mutex);
			  return m;
		  });
	return nullptr;
}

static void *yields(void *)
{
	for (uint64_t k = each; k; k--)
		pth_yield(nullptr);
	return nullptr;
}

static void *nothing(void *)
{
	return nullptr;
}

static void *locks(void *)
{
	for (uint64_t k = each; k; k--) {
		pth_mutex_acquire(&lock, FALSE, nullptr);
		count++;
		pth_mutex_release(&lock);
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
	if (vps != 1 || !pth_init())
		return 77;
	attr = pth_attr_new();
	pth_attr_set(attr, PTH_ATTR_STACK_SIZE, 65536);
	boxes.resize(threads);
	for (auto &b : boxes)
		pth_mutex_init(&b.mutex), pth_cond_init(&b.cond);
	if (!strcmp(q, "rendezvous"))
		crew(seat);
	else if (!strcmp(q, "yield"))
		report("yield", scale([](uint64_t n) { return with(n, yields); }) / threads);
	else if (!strcmp(q, "spawn"))
		report("create+join", crew(nothing) / threads);
	else if (!strcmp(q, "mutex"))
		report("lock+unlock", scale([](uint64_t n) { return with(n, locks); }) / threads);
	else
		return 77;
	return 0;
}
