/* posix/kaction.c - signal actions in the kernel's form. Contract in kaction.h. */
#include "posix/kaction.h"

#include "libc/emulate.h"
#include "os/sys.h"

enum { MASK_BYTES = 8 };

long kbi_kaction(int sig, const struct kbi_kaction *new, struct kbi_kaction *old)
{
	if (kbi_sys_from.processes)
		return kbi_emulate_action(sig, new, old, MASK_BYTES);
	return kbi_sys(SYS_rt_sigaction, sig, new, old, MASK_BYTES);
}

bool kbi_kaction_is_default(int sig)
{
	struct kbi_kaction a = { 0 };

	return kbi_kaction(sig, NULL, &a) == 0 && (uintptr_t)a.handler == (uintptr_t)SIG_DFL;
}

bool kbi_kaction_restarts(int sig)
{
	struct kbi_kaction a = { 0 };

	return kbi_kaction(sig, NULL, &a) || !kbi_kaction_is_handler(&a) || (a.flags & SA_RESTART);
}
