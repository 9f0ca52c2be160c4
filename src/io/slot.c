/* io/slot.c - the table of slots: pieces of 16,384, mapped when first used. Contract in slot.h.
 * Callers: see slot.h. Runs on any kernel thread, takes no lock. */
#include "io/slot.h"

#include "os/sys.h"

enum { PIECE = KBI_SLOT_PIECE, PIECES = KBI_SLOT_PIECES };

aptr kbi_slot_pieces[PIECES];
a32 kbi_slot_numbers;

static void add_piece(int fd)
{
	struct kbi_slot *p = kbi_sys_map(PIECE * sizeof *p);
	void *none = NULL;

	/* release: pairs with the acquire in kbi_slot_find */
	if (p && !a_cas_rel(&kbi_slot_pieces[fd / PIECE], &none, (void *)p))
		kbi_sys_unmap(p, PIECE * sizeof *p);
}

struct kbi_slot *kbi_slot_make(int fd)
{
	struct kbi_slot *s = kbi_slot_find(fd);
	uint32_t n = a_load_rlx(&kbi_slot_numbers);

	if (kbi_likely(s && a_load_rlx(&s->made)))
		return s;
	if (kbi_unlikely(!s)) {
		if (fd < 0 || fd / PIECE >= PIECES)
			return NULL;
		add_piece(fd);
		s = kbi_slot_find(fd);
		if (!s)
			return NULL;
	}
	while (kbi_unlikely((uint32_t)fd >= n) && !a_cas_rlx(&kbi_slot_numbers, &n, (uint32_t)fd + 1))
		;
	a_store_rlx(&s->made, 1);
	return s;
}
