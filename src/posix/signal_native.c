/* posix/signal_native.c - signals of threads that wait in the native interface (kb_sem_wait ...):
 * handlers run at once, and the wait goes on. The runtime's own waits, and kb_io_*, ask for no
 * handlers: a handler could leave the wait half done.
 * Callers: core/wait, for native waits; on the thread, outside np brackets. No locks. May switch,
 * as handlers may. */
#include "posix/signal_priv.h"

#include <errno.h>

#include "core/wait.h"

/* Returns EINTR if a handler is due. An asynchronous cancellation waits until the wait is over. */
static int is_handler_due(struct kbi_task *self)
{
	return kbi_posix_stop_signal(self) && self->vp && !kbi_cancel_async() ? EINTR : 0;
}

static int handle_due_signals(struct kbi_task *self)
{
	if (kbi_likely(!is_handler_due(self)))
		return 0;
	kbi_signal_resumed();
	a_store_rlx(&self->permit, 1); /* the handler may have slept and consumed the permit */
	return 0;
}

void kbi_signal_native_start(void)
{
	kbi_wait_due = is_handler_due;
	kbi_wait_handlers = handle_due_signals;
}
