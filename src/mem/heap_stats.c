/* mem/heap_stats.c - counts the heap's records. Contract in heap_stats.h. Records of other threads
 * are read while these may change them. */
#include "mem/heap_stats.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Reads a field that its owner may write meanwhile: the value is old or new. */
#define PEEP(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static void count_slab(struct kbi_stats *s, const struct kbi_slab *slab, unsigned k)
{
	const struct kbi_class *c = &kbi_slab_class[k];
	size_t out = (size_t)(uint16_t)(PEEP(slab->fresh) - PEEP(slab->n_free));

	s->class[k].slabs++;
	s->class[k].blocks += c->blocks;
	s->class[k].out += out;
	s->slab_bytes += (size_t)c->units * KBI_UNIT;
	s->out_bytes += out * c->size;
}

static void count_units(struct kbi_stats *s)
{
	size_t end = s->space.frontier >> KBI_UNIT_SHIFT;

	for (size_t unit = 0; unit < end; unit++) {
		const struct kbi_slab *slab = &kbi_space.slab[unit];
		uint32_t tag = a_load_rlx(&kbi_space.tag[unit]);

		if (tag == KBI_TAG_LARGE) {
			s->large++;
			s->large_bytes += (size_t)PEEP(slab->units) * KBI_UNIT;
		} else if (tag && PEEP(slab->back) == 0) {
			count_slab(s, slab, (tag & KBI_TAG_LARGE) >> KBI_BIN_SHIFT);
		}
	}
}

static void count_owner(struct kbi_stats *s, const struct kbi_owner *o)
{
	s->owners++;
	s->orphans += a_load_rlx(&o->state) == KBI_OWNER_ORPHAN;
	s->count.refills += PEEP(o->count.refills);
	s->count.flushes += PEEP(o->count.flushes);
	s->count.slabs_made += PEEP(o->count.slabs_made);
	s->count.slabs_ended += PEEP(o->count.slabs_ended);
	s->count.posts += PEEP(o->count.posts);
	s->count.posted += PEEP(o->count.posted);
	s->count.received += PEEP(o->count.received);
}

void kbi_stats_take(struct kbi_stats *s)
{
	memset(s, 0, sizeof *s);
	kbi_space_count(&s->space);
	for (uint32_t i = 1, n = kbi_life_limit(); i < n; i++)
		if (kbi_life_owner(i))
			count_owner(s, kbi_life_owner(i));
	count_units(s);
}

struct text {
	char *buf;
	size_t size, length;
};

static KBI_PRINTF(2, 3) void append_stats(struct text *t, const char *format, ...)
{
	size_t room = t->length < t->size ? t->size - t->length : 0;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(room ? t->buf + t->length : NULL, room, format, ap);
	va_end(ap);
	t->length += n > 0 ? (size_t)n : 0;
}

static void add_classes(struct text *t, const struct kbi_stats *s)
{
	const char *comma = "";

	append_stats(t, " \"classes\": [");
	for (unsigned k = 1; k < KBI_HEAP_CLASSES; k++) {
		const struct kbi_stats_class *c = &s->class[k];

		if (!c->slabs)
			continue;
		append_stats(t, "%s\n  {\"size\": %u, \"slabs\": %zu, \"blocks\": %zu, \"out\": %zu}",
		    comma, kbi_slab_class[k].size, c->slabs, c->blocks, c->out);
		comma = ",";
	}
	append_stats(t, "]\n}\n");
}

size_t kbi_stats_json(char *buf, size_t size)
{
	struct text t = { buf, size, 0 };
	struct kbi_stats s;

	kbi_stats_take(&s);
	if (size)
		*buf = '\0';
	append_stats(&t, "{\n \"hardened\": %s,\n", kbi_owner_hardened ? "true" : "false");
	append_stats(&t,
	    " \"bytes\": {\"mapped\": %zu, \"slabs\": %zu, \"out\": %zu, \"large\": %zu, "
	    "\"free_dirty\": %zu,"
	    " \"free_clean\": %zu, \"peak\": %zu, \"records\": %zu},\n",
	    s.space.frontier, s.slab_bytes, s.out_bytes, s.large_bytes, s.space.dirty, s.space.clean,
	    s.space.peak, s.space.records);
	append_stats(&t, " \"owners\": %zu, \"orphans\": %zu, \"large_blocks\": %zu,\n", s.owners,
	    s.orphans, s.large);
	append_stats(&t,
	    " \"counts\": {\"refills\": %ju, \"flushes\": %ju, \"slabs_made\": %ju, "
	    "\"slabs_ended\": %ju,"
	    " \"posts\": %ju, \"posted\": %ju, \"received\": %ju},\n",
	    (uintmax_t)s.count.refills, (uintmax_t)s.count.flushes, (uintmax_t)s.count.slabs_made,
	    (uintmax_t)s.count.slabs_ended, (uintmax_t)s.count.posts, (uintmax_t)s.count.posted,
	    (uintmax_t)s.count.received);
	add_classes(&t, &s);
	return t.length;
}
