/* posix/signal_settle.c - waits for signals in flight. A signal that came for the program before a
 * thread ends, or blocks it, is that thread's if no other thread lets it through. The kernel
 * guarantees this, because it interrupts the thread at once. Here the signal may be in the
 * dispatcher's hands at that moment: the dispatcher got it while a handler blocked it, and finds no
 * thread afterwards. So the ending or blocking thread waits until the dispatcher has nothing in
 * hand. It need not ask each time: a sender of a signal to the program from inside that does not
 * know which thread takes it makes a note (kbi_signal_note_sent).
 * Callers: this family, sigwait. Runs on the thread's stack; waits in the kernel, mostly some ten
 * microseconds; not in handlers. No locks. */
#include "posix/signal_priv.h"

/* signals given to the kernel or the dispatcher; they may wait there or be in hand. Partners of the
 * changes are the acquires in may_be_in_hand and kbi_signal_is_settled */
static a64 sent;
static a32 settling; /* threads that have taken bits from `sent` and wait for the answer */

/* Called after the sending: a noted signal is in a queue, in the dispatcher's hands, or has
 * come. */
void kbi_signal_note_sent(uint64_t set)
{
	a_or_acqrel(&sent, set);
}

/* Tests whether the dispatcher may hold signals of the set. A signal that it does not take when it
 * comes is in its hands only while it puts the signal back. acquire: partners are the changes in
 * kbi_signal_note_sent and kbi_signal_settle, in this order */
static bool may_be_in_hand(uint64_t set)
{
	return kbi_signal_has_dispatcher() &&
	       ((a_load_acq(&sent) & kbi_signal_dispatcher_takes(set)) || a_load_acq(&settling) ||
		kbi_signal_dispatcher_is_at_work());
}

bool kbi_signal_settle(uint64_t set)
{
	if (kbi_likely(!may_be_in_hand(set)) || kbi_posix_me.in_handler)
		return false;
	/* before the bits are cleared: a thread that finds them cleared finds this count until the
	 * dispatcher has answered */
	a_add_acqrel(&settling, 1);
	a_and_acqrel(&sent, ~kbi_signal_dispatcher_takes(set));
	kbi_signal_drain_dispatcher();
	a_sub_acqrel(&settling, 1);
	return true;
}

bool kbi_signal_is_settled(int sig)
{
	uint64_t bit = kbi_signal_bit(sig);

	/* acquire: partner is the change in kbi_signal_note_sent */
	if (kbi_likely(!(a_load_acq(&sent) & bit)))
		return true;
	kbi_signal_settle(bit);
	return !(a_load_acq(&sent) & bit);
}

/* Of two threads that leave at once, neither may rely on the other: both set the mark, and then
 * look. */
void kbi_signal_leaves(struct kbi_task *self, uint64_t set)
{
	struct kb_thread *t = kbi_thread_of(self);

	if (kbi_likely(!may_be_in_hand(set)) || kbi_posix_me.in_handler)
		return;
	a_or_acqrel(&t->signals.wanted, KBI_SIGNAL_LEAVES);
	a_fence_sc(); /* partner: the same fence in another thread */
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

/* Waits for the caller's handler after a signal to a group of processes of which this process is
 * one. POSIX wants the handler of the caller to have run when the call returns, if no other thread
 * lets the signal through. before: number of handlers that had run when the signal was sent. The
 * kernel has given the signal to any of the kernel threads, which passes it on. */
void kbi_signal_await_own(struct kbi_task *self, int sig, uint32_t before)
{
	enum { TIMES = 1000 };
	static const struct timespec nap = { 0, 100000 };
	uint64_t bit = kbi_signal_bit(sig);

	for (int i = 0; i < TIMES && kbi_posix_me.handled == before; i++) {
		if ((a_load_rlx(kbi_signal_mask(self)) & bit) ||
			!kbi_signal_only_for(kbi_thread_of(self), bit))
			return;
		if (!kbi_signal_settle(bit))
			kbi_sys(SYS_nanosleep, &nap, NULL);
		kbi_signal_resumed();
	}
}
