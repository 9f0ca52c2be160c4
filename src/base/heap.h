/* base/heap.h - pairing heap of deadlines. It is intrusive: it needs no memory, so that a timed
 * wait cannot fail.
 * Insert O(1), remove-first and remove-any O(log n) amortised.
 * Callers: core/deadline. Owner only. */
#ifndef KBI_HEAP_H
#define KBI_HEAP_H

#include "base/base.h"

struct kbi_heap_node {
	uint64_t key;
	struct kbi_heap_node *child; /* first child */
	struct kbi_heap_node *next;  /* next sibling */
	/* Previous sibling, or parent of a first child; the node itself: the node is the root; NULL:
	 * the node is in no heap. */
	struct kbi_heap_node *prev;
};

struct kbi_heap {
	struct kbi_heap_node *root;
};

static inline bool kbi_heap_holds(const struct kbi_heap_node *n)
{
	return n->prev != NULL;
}

void kbi_heap_insert(struct kbi_heap *h, struct kbi_heap_node *n, uint64_t key);
void kbi_heap_remove(struct kbi_heap *h, struct kbi_heap_node *n);

#endif
