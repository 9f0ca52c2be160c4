/* base/heap: nodes come out in the order of their keys, with any insertions and removals in
 * between. */
#include "base/heap.h"

#include "test.h"

enum { N = 5000, STEPS = 200000 };

static struct kbi_heap_node node[N];
static struct kbi_heap heap;
static unsigned held;

/* Every node in the heap has a key not below its parent's, and consistent links. */
static unsigned check(const struct kbi_heap_node *n)
{
	unsigned count = 1;
	const struct kbi_heap_node *before = n;

	for (const struct kbi_heap_node *c = n->child; c; before = c, c = c->next) {
		CHECK(c->key >= n->key);
		CHECK(c->prev == before);
		CHECK(kbi_heap_holds(c));
		count += check(c);
	}
	return count;
}

static void check_all(void)
{
	CHECK_EQ(heap.root ? check(heap.root) : 0, held);
	if (heap.root)
		CHECK(heap.root->prev == heap.root && !heap.root->next);
}

static void remove_node(struct kbi_heap_node *n)
{
	CHECK(kbi_heap_holds(n));
	kbi_heap_remove(&heap, n);
	CHECK(!kbi_heap_holds(n));
	held--;
}

static void step(uint64_t *rand)
{
	struct kbi_heap_node *n = &node[test_rand(rand) % N];

	if (kbi_heap_holds(n)) {
		remove_node(test_rand(rand) % 3 ? n : heap.root);
		return;
	}
	kbi_heap_insert(&heap, n, test_rand(rand) % 1000); /* many equal keys */
	CHECK(kbi_heap_holds(n));
	held++;
}

int main(void)
{
	uint64_t rand = test_seed(), last = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		step(&rand);
		if (i % 1000 == 0)
			check_all();
	}
	CHECK(held > 100);
	while (heap.root) {
		CHECK(heap.root->key >= last);
		last = heap.root->key;
		remove_node(heap.root);
	}
	CHECK_EQ(held, 0);
	return 0;
}
