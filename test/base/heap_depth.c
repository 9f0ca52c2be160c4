/* base/heap: the worst orders - ascending, descending, all equal, removal from the end - neither
 * overflow a small stack by recursion nor take quadratic time. */
#include <pthread.h>

#include "base/heap.h"

#include "test.h"

enum { N = 200000 };

static struct kbi_heap_node node[N];

static void run(uint64_t (*key)(uint64_t), int from_end)
{
	struct kbi_heap heap = { NULL };
	uint64_t last = 0;

	for (uint64_t i = 0; i < N; i++)
		kbi_heap_insert(&heap, &node[i], key(i));
	if (from_end)
		for (uint64_t i = N; i-- > N / 2;)
			kbi_heap_remove(&heap, &node[i]);
	while (heap.root) {
		CHECK(heap.root->key >= last);
		last = heap.root->key;
		kbi_heap_remove(&heap, heap.root);
	}
}

static uint64_t up(uint64_t i) { return i; }
static uint64_t down(uint64_t i) { return N - i; }
static uint64_t same(uint64_t i) { return i * 0; }

static void *body(void *arg)
{
	for (int from_end = 0; from_end < 2; from_end++) {
		run(up, from_end);
		run(down, from_end);
		run(same, from_end);
	}
	return arg;
}

int main(void)
{
	pthread_attr_t a;
	pthread_t t;

	CHECK_EQ(pthread_attr_init(&a), 0);
	/* small; aarch64 requires at least 128 KiB */
	if (pthread_attr_setstacksize(&a, 65536))
		CHECK_EQ(pthread_attr_setstacksize(&a, 131072), 0);
	CHECK_EQ(pthread_create(&t, &a, body, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
