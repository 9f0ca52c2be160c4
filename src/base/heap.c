/* base/heap.c - pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986), two-pass merging. Owner
 * only. */
#include "base/heap.h"

/* Joins two heaps. a and b are roots without siblings; the root with the smaller key becomes the
 * parent. */
static struct kbi_heap_node *meld_heaps(struct kbi_heap_node *a, struct kbi_heap_node *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (b->key < a->key) {
		struct kbi_heap_node *t = a;

		a = b;
		b = t;
	}
	b->next = a->child;
	b->prev = a;
	if (a->child)
		a->child->prev = b;
	a->child = b;
	return a;
}

/* Melds a list of siblings into one root: first in pairs from the left, then all pairs from the
 * right. */
static struct kbi_heap_node *meld_siblings(struct kbi_heap_node *first)
{
	struct kbi_heap_node *pairs = NULL, *root = NULL;

	while (first) {
		struct kbi_heap_node *a = first, *b = a->next;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		a = meld_heaps(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct kbi_heap_node *a = pairs;

		pairs = a->next;
		a->next = NULL;
		root = meld_heaps(root, a);
	}
	return root;
}

static void set_root(struct kbi_heap *h, struct kbi_heap_node *n)
{
	h->root = n;
	if (n) {
		n->next = NULL;
		n->prev = n;
	}
}

void kbi_heap_insert(struct kbi_heap *h, struct kbi_heap_node *n, uint64_t key)
{
	n->key = key;
	n->child = n->next = NULL;
	set_root(h, meld_heaps(h->root, n));
}

static void unlink_node(struct kbi_heap_node *n)
{
	if (n->prev->child == n)
		n->prev->child = n->next;
	else
		n->prev->next = n->next;
	if (n->next)
		n->next->prev = n->prev;
}

void kbi_heap_remove(struct kbi_heap *h, struct kbi_heap_node *n)
{
	struct kbi_heap_node *rest = meld_siblings(n->child);

	if (h->root == n) {
		set_root(h, rest);
	} else {
		unlink_node(n);
		set_root(h, meld_heaps(h->root, rest));
	}
	n->child = n->next = n->prev = NULL;
}
