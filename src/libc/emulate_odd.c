/* libc/emulate_odd.c - ranges that are not plain memory of the space. Contract in emulate_odd.h. */
#include "libc/emulate_odd.h"

#include "os/lock.h"

enum { ODD_MOST = 4096 };

struct range {
	uintptr_t from, to;
	bool own; /* memory of the space with another protection; else something else is mapped there */
};

static struct {
	a32 lock;
	/* under the lock */
	unsigned n;
	struct range odd[ODD_MOST];
	bool all_odd;     /* the table was too small once: every range counts as odd */
} ranges;

/* Under the lock. */
static void add_odd_range(struct range r)
{
	if (ranges.n < ODD_MOST)
		ranges.odd[ranges.n++] = r;
	else
		ranges.all_odd = true;
}

/* Under the lock: nothing between from and to is odd any more; with own_only, only own memory
 * there. The rest of a range stays. */
static void cut_odd_ranges(uintptr_t from, uintptr_t to, bool own_only)
{
	for (unsigned i = 0; i < ranges.n;) {
		struct range *r = &ranges.odd[i], above = { to, r->to, r->own };

		if (r->from >= to || r->to <= from || (own_only && !r->own)) {
			i++;
			continue;
		}
		if (r->from < from)
			ranges.odd[i++].to = from;
		else
			*r = ranges.odd[--ranges.n];
		if (above.from < above.to)
			add_odd_range(above); /* the loop passes over it later */
	}
}

void kbi_emulate_odd_note(uintptr_t from, size_t bytes, bool own)
{
	kbi_lock_take(&ranges.lock);
	add_odd_range((struct range){ from, from + bytes, own });
	kbi_lock_leave(&ranges.lock);
}

bool kbi_emulate_odd_take(uintptr_t from, size_t bytes, bool forget)
{
	bool any;

	kbi_lock_take(&ranges.lock);
	any = ranges.all_odd;
	for (unsigned i = 0; i < ranges.n; i++)
		any |= ranges.odd[i].from < from + bytes && ranges.odd[i].to > from;
	if (forget && any)
		cut_odd_ranges(from, from + bytes, false);
	kbi_lock_leave(&ranges.lock);
	return any;
}

void kbi_emulate_odd_forget_own(uintptr_t from, size_t bytes)
{
	kbi_lock_take(&ranges.lock);
	cut_odd_ranges(from, from + bytes, true);
	kbi_lock_leave(&ranges.lock);
}

size_t kbi_emulate_odd_bytes(uintptr_t from)
{
	size_t bytes = 0;

	kbi_lock_take(&ranges.lock);
	for (unsigned i = 0; i < ranges.n && !bytes; i++)
		if (ranges.odd[i].from == from)
			bytes = ranges.odd[i].to - from;
	kbi_lock_leave(&ranges.lock);
	return bytes;
}

bool kbi_emulate_odd_is_own(uintptr_t at, size_t bytes)
{
	bool own = false;

	kbi_lock_take(&ranges.lock);
	for (unsigned i = 0; i < ranges.n; i++)
		own |= ranges.odd[i].own && ranges.odd[i].from < at + bytes && ranges.odd[i].to > at;
	kbi_lock_leave(&ranges.lock);
	return own;
}
