/* posix/mark.c - where libc keeps a thread's cancellation state: the cancelhandling word in its control block, whose
 * place libc tells debuggers. Callers: this room. Never switches; kbi_cancel_act may unwind. */
#include "posix/posix.h"

#include "os/names.h"

ptrdiff_t kbi_cancel_at;

/* As glibc tells debuggers: bits, count, offset. Checked by switching cancellation off and on. */
void kbi_cancel_find(void)
{
	const uint32_t *place = kbi_names_look_up("_thread_db_pthread_cancelhandling");
	int old;
	bool ok;

	if (kbi_cancel_at || !place || place[0] != 32)
		return;
	kbi_cancel_at = (ptrdiff_t)place[2];
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	ok = a_load_rlx(kbi_cancel_word(pthread_self())) & KBI_CANCEL_DISABLED;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	ok = ok && !(a_load_rlx(kbi_cancel_word(pthread_self())) & KBI_CANCEL_DISABLED);
	pthread_setcancelstate(old, NULL);
	if (!ok)
		kbi_cancel_at = 0;
}

void kbi_cancel_fresh(pthread_t t)
{
	uint32_t old = kbi_cancel_at ? a_load_rlx(kbi_cancel_word(t)) : 0;

	if (kbi_unlikely(old))
		a_store_rlx(kbi_cancel_word(t), 0); /* nobody knows the new thread yet */
}

void kbi_cancel_act(void)
{
	pthread_testcancel();
}
