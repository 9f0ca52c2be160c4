/* libc/emulate_private.c - contract in emulate_private.h.
 * SBCL's core file is such a map: its collector protects pages of the map, and makes a page
 * writable when it is written to. If mprotect made them writable as they are, each process would
 * write to a page of its own. So the first process finds the parts and copies them while nobody can
 * write there; then each process maps the copy in their place. All of this runs under the lock of
 * libc/broadcast: of two callers, the second finds nothing left to copy. */
#include "libc/emulate_private.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "libc/broadcast.h"
#include "os/maps.h"
#include "os/memory.h"
#include "os/sys.h"

enum { PARTS = 64 };

struct opening {
	uintptr_t at;
	size_t bytes;
	int protection;
	char *backing; /* memory of the space for the copy, as long as the range */
	bool found;    /* the first process has written the fields below, before another reads them */
	bool more;     /* there are more parts than PARTS: to be repeated */
	unsigned parts;
	struct {
		uintptr_t from, to;
	} part[PARTS];
};

static bool is_syscall_error(long r)
{
	return (unsigned long)r > -4096ul;
}

static bool is_private_mapping(const struct kbi_maps_line *m)
{
	return !m->shared;
}

static bool has_private(uintptr_t at, size_t bytes)
{
	uintptr_t end = at + bytes;
	struct kbi_maps_line m;

	for (; at < end && !kbi_maps_find(at, &m); at = m.to)
		if (is_private_mapping(&m))
			return true;
	return false;
}

static void copy_part(const struct opening *o, uintptr_t from, uintptr_t to, uint8_t protection)
{
	if (!(protection & PROT_READ))
		kbi_sys(SYS_mprotect, from, to - from, protection | PROT_READ);
	memcpy(o->backing + (from - o->at), (const void *)from, to - from);
}

static void find_parts(struct opening *o)
{
	uintptr_t at = o->at, end = o->at + o->bytes;
	struct kbi_maps_line m;

	o->found = true;
	for (; at < end && !kbi_maps_find(at, &m); at = m.to) {
		uintptr_t to = m.to < end ? m.to : end;

		if (!is_private_mapping(&m))
			continue;
		o->more = o->parts == PARTS;
		if (o->more)
			return;
		copy_part(o, at, to, m.protection);
		o->part[o->parts].from = at;
		o->part[o->parts++].to = to;
	}
}

/* Runs in each process. */
static long open_here(const struct kbi_broadcast_call *c)
{
	struct opening *o;

	memcpy(&o, c->data, sizeof o);
	if (!o->found)
		find_parts(o);
	for (unsigned i = 0; i < o->parts; i++) {
		uintptr_t from = o->part[i].from;
		long r = kbi_sys(SYS_mmap, from, o->part[i].to - from, o->protection,
			MAP_SHARED | MAP_FIXED | MAP_NORESERVE, kbi_memory_descriptor(),
			kbi_memory_offset(o->backing + (from - o->at)));

		if (is_syscall_error(r))
			return r;
	}
	return kbi_sys(SYS_mprotect, o->at, o->bytes, o->protection);
}

static long open_everywhere(uintptr_t at, size_t bytes, int protection)
{
	struct opening o, *p = &o;
	struct kbi_broadcast_call c = { .fn = open_here, .pointer = -1 };
	long r;

	memcpy(c.data, &p, sizeof p);
	do {
		o = (struct opening){ .at = at, .bytes = bytes, .protection = protection };
		o.backing = kbi_memory_take(bytes);
		if (!o.backing)
			return -ENOMEM;
		r = kbi_broadcast(&c);
		if (!o.parts)
			kbi_memory_give(o.backing, bytes);
	} while (o.more && !is_syscall_error(r));
	return r;
}

long kbi_emulate_private_protect(uintptr_t at, size_t bytes, int protection)
{
	const struct kbi_broadcast_call c = {
		.nr = SYS_mprotect,
		.arg = { (long)at, (long)bytes, protection },
		.pointer = -1,
	};

	return protection & PROT_WRITE && has_private(at, bytes) ?
		open_everywhere(at, bytes, protection) : kbi_broadcast(&c);
}
