/* posix/signal_address.c - the address of a signal: the thread it is for, kept in the signal itself
 * while it is on its way to a kernel thread, on which another thread may run by then.
 * Callers: signal_sent, signal_dispatcher, signal_settle, signal_action, signal_bound, sigwait;
 * also in handlers. No locks. */
#include "posix/signal_priv.h"

/* si_code of a signal on its way is IN_TRANSIT minus a check value of its thread's number. */
enum { IN_TRANSIT = -19266, CHECKS = 1 << 16, CODE_BITS = 10, CODE_MAX = 1 << (CODE_BITS - 1) };

/* Packs the descriptor's index and si_code into si_errno; the special si_code marks the signal as
 * packed. */
void kbi_signal_pack(siginfo_t *info, struct kbi_signal_to whom)
{
	int code = info->si_code > -CODE_MAX && info->si_code < CODE_MAX ? info->si_code : SI_QUEUE;
	uint32_t to = whom.t ? whom.t->task.index + 1 : 0;

	info->si_errno = (int)(to << CODE_BITS | (uint32_t)(code + CODE_MAX));
	info->si_code = IN_TRANSIT - (int)kbi_tcb_check(whom.number, CHECKS);
}

bool kbi_signal_is_plain(const siginfo_t *info)
{
	return info->si_errno == 0 && info->si_code > -CODE_MAX && info->si_code < CODE_MAX;
}

bool kbi_signal_is_packed(const siginfo_t *info)
{
	return info->si_code <= IN_TRANSIT && info->si_code > IN_TRANSIT - CHECKS;
}

enum kbi_signal_address kbi_signal_unpack(siginfo_t *info, struct kbi_signal_to *whom)
{
	uint32_t word = (uint32_t)info->si_errno, to = word >> CODE_BITS,
		check = (uint32_t)(IN_TRANSIT - info->si_code);

	*whom = KBI_SIGNAL_TO_PROCESS;
	if (!kbi_signal_is_packed(info))
		return KBI_SIGNAL_PLAIN;
	info->si_code = (int)(word & ((1u << CODE_BITS) - 1)) - CODE_MAX;
	info->si_errno = 0;
	if (info->si_code == SI_TIMER)
		kbi_signal_has_arrived(info);
	if (to && to <= kbi_descriptor_limit())
		*whom = kbi_signal_to(kbi_descriptor_at(to - 1));
	return check == kbi_tcb_check(whom->number, CHECKS) ? KBI_SIGNAL_PACKED : KBI_SIGNAL_LATE;
}
