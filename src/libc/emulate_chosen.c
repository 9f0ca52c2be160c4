/* libc/emulate_chosen.c - contract in emulate_chosen.h.
 * Where the processes have the same mappings the kernel chooses the same address in each. A
 * differing address is kept mapped until the end of the search, so that the kernel offers
 * another. */
#include "libc/emulate_chosen.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atom.h"
#include "libc/broadcast.h"
#include "os/sys.h"

static bool is_mmap_error(long r)
{
	return (unsigned long)r > -4096ul;
}

struct chosen {
	uintptr_t at;  /* the first process's address; written before another process reads it */
	a32 failed;    /* set by a process that could not follow */
};

static long map_chosen(const struct kbi_broadcast_call *c)
{
	enum { TRIES = 32 };
	const long *a = c->arg;
	uintptr_t other[TRIES];
	struct chosen *chosen;
	unsigned n = 0;
	long r;

	memcpy(&chosen, c->data, sizeof chosen);
	for (;;) {
		r = kbi_sys(SYS_mmap, 0, a[1], a[2], a[3], a[4], a[5]);
		if (!is_mmap_error(r) && !chosen->at)
			chosen->at = (uintptr_t)r;
		if (is_mmap_error(r) || (uintptr_t)r == chosen->at || n == TRIES)
			break;
		other[n++] = (uintptr_t)r;
	}
	if (!is_mmap_error(r) && (uintptr_t)r != chosen->at) {
		kbi_sys(SYS_munmap, r, a[1]);
		r = -ENOMEM;
	}
	if (is_mmap_error(r))
		a_store_rlx(&chosen->failed, 1);
	while (n > 0)
		kbi_sys(SYS_munmap, other[--n], a[1]);
	return r;
}

long kbi_emulate_chosen_map(size_t bytes, int protection, int flags, int fd, long offset)
{
	struct chosen chosen = { 0 }, *p = &chosen;
	struct kbi_broadcast_call c = {
		.fn = map_chosen,
		.arg = { 0, (long)bytes, protection, flags, fd, offset },
		.pointer = -1,
	};
	long at;

	memcpy(c.data, &p, sizeof p);
	at = kbi_broadcast(&c);
	if (is_mmap_error(at) || !a_load_rlx(&chosen.failed))
		return at;
	kbi_broadcast(&(struct kbi_broadcast_call){ .nr = SYS_munmap, .arg = { at, (long)bytes },
		.pointer = -1 });
	kbi_sys_message("a mapping is refused that lies at different places in the processes: ENOMEM");
	return -ENOMEM;
}
