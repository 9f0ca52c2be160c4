/* posix/once.c - pthread_once and call_once. An exception or a cancellation that leaves the function makes
 * the flag new again, and the next caller runs it (std::call_once relies on that). The unwinder finds our
 * frame by -fexceptions and the cleanup attribute. Callers: programs. May switch. */
#include "posix/posix.h"

#include "sync/once.h"

#if !defined(__EXCEPTIONS)
#error "the unwinder does not see the cleanup without -fexceptions"
#endif

_Static_assert(sizeof(kb_once_t) <= sizeof(pthread_once_t), "it lies in libc's bytes");
_Static_assert(sizeof(kb_once_t) <= sizeof(once_flag), "it lies in libc's bytes");
_Static_assert(PTHREAD_ONCE_INIT == 0, "static initialisers");

struct run {
	kb_once_t *once;
	bool done;
};

static void finish(struct run *r)
{
	if (r->done)
		kbi_once_done(r->once);
	else
		kbi_once_abort(r->once);
}

KBI_POSIX_API int pthread_once(pthread_once_t *flag, void (*fn)(void))
{
	kb_once_t *once = (kb_once_t *)(void *)flag;

	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_once(once);
	if (kbi_once_begin(once)) {
		struct run r __attribute__((cleanup(finish))) = { once, false };

		fn();
		r.done = true;
	}
	kbi_signal_resumed();
	return 0;
}

KBI_POSIX_ALIAS(__pthread_once, pthread_once);

KBI_POSIX_API void call_once(once_flag *flag, void (*fn)(void))
{
	pthread_once((pthread_once_t *)(void *)flag, fn);
}
