/* posix/signal_settle.c - what came for the program before a thread ends, or blocks it, is that thread's if nobody else
 * lets it through. The kernel sees to that by itself, for it interrupts the thread at once; here the signal may be in the
 * postman's hands at that moment, who was told by the kernel while a handler had it blocked, and finds nobody afterwards.
 * So such a thread waits until he has nothing in hand. It need not ask him each time: who sends a signal to the program
 * from inside, and does not know who takes it, makes a note of it.
 * Callers: this family. They wait in the kernel, some ten microseconds mostly; not in handlers. */
#include "posix/signal_priv.h"

static a64 sent;     /* has been given to the kernel or the postman, and may wait there or be in hand */
static a32 settling; /* who has taken bits from there and waits for the answer */

/* After it was sent: what is noted is in a queue, in somebody's hands, or has come. */
void kbi_signal_note_sent(uint64_t set)
{
	a_or_acqrel(&sent, set);
}

/* What he does not take when it comes is in his hands only while he puts it back. acquire: partners are the releases in
 * kbi_signal_note_sent and kbi_signal_settle, in this order */
static bool may_be_in_hand(uint64_t set)
{
	return kbi_signal_has_post() && ((a_load_acq(&sent) & kbi_signal_post_takes(set)) || a_load_acq(&settling) ||
					 kbi_signal_post_is_at_work());
}

bool kbi_signal_settle(uint64_t set)
{
	if (kbi_likely(!may_be_in_hand(set)) || kbi_posix_me.in_handler)
		return false;
	/* before the bits go: who finds them gone finds this, until he has answered */
	a_add_acqrel(&settling, 1);
	a_and_acqrel(&sent, ~kbi_signal_post_takes(set));
	kbi_signal_ask_post();
	a_sub_acqrel(&settling, 1);
	return true;
}

bool kbi_signal_is_settled(int sig)
{
	uint64_t bit = kbi_signal_bit(sig);

	/* acquire: partner is the release in kbi_signal_note_sent */
	if (kbi_likely(!(a_load_acq(&sent) & bit)))
		return true;
	kbi_signal_settle(bit);
	return !(a_load_acq(&sent) & bit);
}

/* Two that leave at once must not each rely on the other: both say it, and then look. */
void kbi_signal_leaves(struct kbi_task *self, uint64_t set)
{
	struct kb_thread *t = kbi_thread_of(self);

	if (kbi_likely(!may_be_in_hand(set)) || kbi_posix_me.in_handler)
		return;
	a_or_acqrel(&t->signals.wanted, KBI_SIGNAL_LEAVES);
	a_fence_sc(); /* partner: the same one in another thread */
	set = kbi_signal_only_for(t, set);
	if (set && kbi_signal_settle(set))
		kbi_signal_resumed();
}

void kbi_signal_left(struct kbi_task *self)
{
	a64 *wanted = &kbi_thread_of(self)->signals.wanted;

	if (kbi_unlikely(a_load_rlx(wanted) & KBI_SIGNAL_LEAVES))
		a_and_acqrel(wanted, ~KBI_SIGNAL_LEAVES);
}

void kbi_signal_take_queued(struct kbi_task *self, uint64_t set)
{
	static const struct timespec none;
	struct kbi_signal_to to, me = kbi_signal_to(kbi_thread_of(self));
	siginfo_t info;

	set &= ~((kbi_signal_bit(KBI_LIBC_LAST) << 1) - 1);
	if (!set || kbi_sys_from.processes || !self->vp)
		return;
	kbi_signal_settle(set);
	while (kbi_sys(SYS_rt_sigtimedwait, &set, &info, &none, KBI_MASK_BYTES) > 0) {
		if (kbi_signal_unpack(&info, &to) == KBI_SIGNAL_LATE)
			continue;
		if ((to.t && to.t != me.t) || kbi_signal_put(me, &info, !to.t))
			kbi_signal_forward(&info, to);
	}
}

/* Sent to a group of processes, of which this is one: POSIX wants the handler of the caller, if nobody else lets the signal
 * through, to have run when the call returns. before: how many had run when it was sent. The kernel has given it to
 * any of the kernel threads, who passes it on. */
void kbi_signal_await_own(struct kbi_task *self, int sig, uint32_t before)
{
	enum { TIMES = 1000 };
	static const struct timespec nap = { 0, 100000 };
	uint64_t bit = kbi_signal_bit(sig);

	for (int i = 0; i < TIMES && kbi_posix_me.handled == before; i++) {
		if ((a_load_rlx(kbi_signal_mask(self)) & bit) || !kbi_signal_only_for(kbi_thread_of(self), bit))
			return;
		if (!kbi_signal_settle(bit))
			kbi_sys(SYS_nanosleep, &nap, NULL);
		kbi_signal_resumed();
	}
}
