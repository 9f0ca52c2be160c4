/* io/patience.c - kb_io_cancel. Contract in patience.h and kochab/io.h. The request is a bit
 * of the descriptor's futex word, for which a lightweight thread has no other use; it
 * vanishes with the thread.
 * Callers: programs, io. Never switches. */
#include "io/patience.h"

#include <errno.h>
#include <kochab/io.h>

#include "core/descriptor.h"

static int stop_if_cancelled(struct kbi_task *self)
{
	a32 *word = &kbi_thread_of(self)->futex;

	if (kbi_likely(!(a_load_rlx(word) & KBI_DESCRIPTOR_IO_CANCEL)))
		return 0;
	/* acquire: pairs with the release in kb_io_cancel */
	a_and_acqrel(word, ~(uint32_t)KBI_DESCRIPTOR_IO_CANCEL);
	return ECANCELED;
}

struct kbi_until kbi_patience(uint64_t deadline)
{
	return (struct kbi_until){ deadline, stop_if_cancelled };
}

int kb_io_cancel(kb_thread_t t)
{
	if (!t || !kbi_descriptor_valid(t))
		return ESRCH;
	/* release: pairs with the acquire in stop_if_cancelled; the wake follows, so that the bit is
	 * seen */
	a_or_acqrel(&t->futex, KBI_DESCRIPTOR_IO_CANCEL);
	kbi_wait_wake(&t->task);
	return 0;
}
