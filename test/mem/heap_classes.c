/* mem/heap_class: every size gets the smallest class that holds it, with little waste; blocks of a class are found from
 * any address in a slab. */
#include "mem/heap_slab.h"
#include "test.h"

static void sizes(void)
{
	for (size_t n = 1; n <= KBI_HEAP_SMALL; n++) {
		unsigned k = kbi_class_of(n);

		CHECK(k > 0 && k < KBI_HEAP_CLASSES);
		CHECK(kbi_class_bytes(k) >= n);
		CHECK(k == 1 || kbi_class_bytes(k - 1) < n);
		CHECK(kbi_class_bytes(k) - n < 16 || kbi_class_bytes(k) - n <= n / 8);
	}
	CHECK_EQ(kbi_class_of(0), 0);
	CHECK_EQ(kbi_class_bytes(KBI_HEAP_CLASSES - 1), KBI_HEAP_SMALL);
}

/* The reciprocal divides exactly, for each offset in a slab. */
static void division(void)
{
	for (unsigned k = 1; k < KBI_HEAP_CLASSES; k++) {
		struct kbi_class c = kbi_class_make(k);

		CHECK((size_t)c.blocks * c.size <= (size_t)c.units * KBI_UNIT);
		CHECK(c.blocks <= KBI_SLAB_WORDS * 64 && c.room <= KBI_MAGAZINE_BLOCKS);
		for (uint64_t at = 0; at < (uint64_t)c.units * KBI_UNIT; at++)
			CHECK(at * c.reciprocal >> KBI_RECIPROCAL_SHIFT == at / c.size);
	}
}

int main(void)
{
	sizes();
	division();
	return 0;
}
