/* mem/heap_slab.c - slabs. Contract in heap_slab.h. */
#include "mem/heap_slab.h"

#include "os/sys.h"

struct kbi_class kbi_slab_class[KBI_HEAP_CLASSES];

/* Threads that run this at the same time write equal values. */
void kbi_slab_setup(void)
{
	for (unsigned k = 0; k < KBI_HEAP_CLASSES; k++)
		kbi_slab_class[k] = kbi_class_make(k);
}

struct kbi_slab *kbi_slab_make(unsigned k, uint32_t tag)
{
	size_t units = kbi_slab_class[k].units;
	bool zero;
	size_t unit = kbi_space_take(units, 1, &zero);
	struct kbi_slab *s;

	if (unit == ~(size_t)0)
		return NULL;
	s = &kbi_space.slab[unit];
	for (size_t i = 0; i < units; i++) {
		s[i].back = (uint32_t)i;
		a_store_rlx(&kbi_space.tag[unit + i], tag);
	}
	if (kbi_unlikely(kbi_space.marked))
		__builtin_memset(kbi_space_marks(s), 0, units * KBI_MARK_WORDS * sizeof(uint64_t));
	s->class = (uint16_t)k;
	s->fresh = s->n_free = 0;
	s->low = 0;
	s->listed = false;
	return s;
}

static unsigned take_freed(struct kbi_slab *s, char *base, uint32_t size, void **blocks, unsigned n)
{
	unsigned got = 0;

	while (got < n && s->n_free) {
		uint64_t *word = &s->free[s->low];

		for (; *word && got < n; *word &= *word - 1, s->n_free--)
			blocks[n - ++got] = base + (s->low * 64u + (unsigned)__builtin_ctzll(*word)) * size;
		if (!*word)
			s->low++;
	}
	return got;
}

/* Takes blocks that were never given out, without touching them. */
static unsigned take_fresh(struct kbi_slab *s, char *base, const struct kbi_class *c, void **end,
			   unsigned n)
{
	unsigned left = c->blocks - s->fresh;

	n = n < left ? n : left;
	for (unsigned i = 1; i <= n; i++)
		end[-(int)i] = base + s->fresh++ * (size_t)c->size;
	return n;
}

unsigned kbi_slab_take(struct kbi_slab *s, void **blocks, unsigned n)
{
	char *base = kbi_space_at((size_t)(s - kbi_space.slab));
	const struct kbi_class *c = &kbi_slab_class[s->class];
	unsigned got = take_freed(s, base, c->size, blocks, n);

	got += take_fresh(s, base, c, blocks + n - got, n - got);
	if (got < n)
		__builtin_memmove(blocks, blocks + n - got, got * sizeof *blocks);
	return got;
}

void kbi_slab_put(struct kbi_slab *s, void *block)
{
	bool exact;
	uint32_t i = kbi_slab_index(s, block, &exact), w = i / 64;
	uint64_t bit = (uint64_t)1 << i % 64;

	if (kbi_unlikely(!exact || i >= s->fresh))
		kbi_sys_fatal("heap: free(%p): no block begins there; the nearest are of %u bytes",
			      kbi_sys_shown(block), kbi_slab_class[s->class].size);
	if (kbi_unlikely(s->free[w] & bit))
		kbi_sys_fatal("heap: free(%p): a block of %u bytes was freed twice",
			      kbi_sys_shown(block), kbi_slab_class[s->class].size);
	s->free[w] |= bit;
	s->n_free++;
	if (w < s->low)
		s->low = (uint16_t)w;
}

void kbi_slab_end(struct kbi_slab *s)
{
	size_t unit = (size_t)(s - kbi_space.slab), units = s->units;

	for (size_t i = 0; i < units; i++)
		a_store_rlx(&kbi_space.tag[unit + i], 0);
	for (unsigned w = 0; w < (s->fresh + 63u) / 64; w++)
		s->free[w] = 0;
	kbi_space_give(unit, units);
}
