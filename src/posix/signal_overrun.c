/* posix/signal_overrun.c - overruns of timers' signals that we send through the kernel a second
 * time. The kernel has at most one signal of a timer, and goes on with the timer once that signal
 * is taken; expirations meanwhile are overruns. When we take the signal, it has not reached a
 * thread yet, and the next signal may come at once. So of the signals that we send on, too, at most
 * one of each timer is in the kernel, and the rest count as its overruns. (In the pool, likewise:
 * kbi_signal_put.) The kernel may throw a signal away: it is ignored meanwhile, or its kernel
 * thread has ended. A look at the pending signals there finds this out.
 * Callers: signal_pool, signal_address, signal_dispatcher, signal_sent, signal_action, sigwait,
 * cputimer; also in handlers. No locks. */
#include "posix/signal_priv.h"

#include <limits.h>
#include <stdio.h>

#include "core/timer.h"

enum { SLOTS = 1024, LOOK_AFTER_NS = 100000000 };

#define THERE ((uint64_t)1 << 31)
#define MOST (THERE - 1)

/* Changes of `word`, acquire and release, are each other's partners. */
static struct slot {
	/* number of the timer (32 bits); THERE: a signal is on its way; number of overruns */
	a64 word;
	a64 since;
	a32 to;   /* where the signal was sent: a kernel thread or the process */
	a64 last; /* number; THERE: given to the program; overruns that the program was told last */
} slots[SLOTS];

static struct slot *slot_of_timer(int id)
{
	return &slots[(uint32_t)id % SLOTS];
}

static uint64_t overrun_word(int id, uint64_t n)
{
	return (uint64_t)(uint32_t)id << 32 | THERE | (n < MOST ? n : MOST);
}

static bool is_word_of_timer(uint64_t word, int id)
{
	return (word & THERE) && word >> 32 == (uint32_t)id;
}

/* Tests whether the kernel has thrown the signal away. Another signal of that number which is
 * pending there is taken for it; then the test is repeated later. */
static bool is_timer_signal_lost(struct slot *s, int sig)
{
	uint64_t now = kbi_timer_now();
	char path[64];

	if (now - a_load_rlx(&s->since) < LOOK_AFTER_NS)
		return false;
	snprintf(path, sizeof path, "/proc/%u/status", a_load_rlx(&s->to));
	a_store_rlx(&s->since, now);
	return !((kbi_signal_listed(path, "SigPnd:") | kbi_signal_listed(path, "ShdPnd:")) &
		kbi_signal_bit(sig));
}

bool kbi_signal_is_overrun(const siginfo_t *info, int to)
{
	uint64_t more = 1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0), word;
	int id = info->si_timerid;
	struct slot *s = slot_of_timer(id);

	if (kbi_likely(info->si_code != SI_TIMER))
		return false;
	word = a_load_rlx(&s->word);
	for (;;) {
		if (is_word_of_timer(word, id)) {
			if (is_timer_signal_lost(s, info->si_signo))
				return false;
			if (a_cas_acqrel(&s->word, &word, overrun_word(id, (word & MOST) + more)))
				return true;
		} else if (word & THERE) {
			return false;
		} else if (a_cas_acqrel(&s->word, &word, overrun_word(id, 0))) {
			a_store_rlx(&s->since, kbi_timer_now());
			a_store_rlx(&s->to, (uint32_t)to);
			return false;
		}
	}
}

void kbi_signal_add_overruns(siginfo_t *info, uint64_t more)
{
	uint64_t sum = (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0) + more;

	info->si_overrun = sum < INT_MAX ? (int)sum : INT_MAX;
}

void kbi_signal_has_arrived(siginfo_t *info)
{
	struct slot *s = slot_of_timer(info->si_timerid);
	uint64_t word = a_load_rlx(&s->word);

	while (is_word_of_timer(word, info->si_timerid))
		if (a_cas_acqrel(&s->word, &word, 0)) {
			kbi_signal_add_overruns(info, word & MOST);
			return;
		}
}

void kbi_signal_tells_overruns(const siginfo_t *info)
{
	if (kbi_unlikely(info->si_code == SI_TIMER))
		a_store_rlx(&slot_of_timer(info->si_timerid)->last,
			    overrun_word(info->si_timerid,
				(uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0)));
}

int kbi_signal_overruns(int id)
{
	uint64_t last = a_load_rlx(&slot_of_timer(id)->last);

	return is_word_of_timer(last, id) ? (int)(last & MOST) : -1;
}

void kbi_signal_forget_overruns(int id)
{
	uint64_t last = a_load_rlx(&slot_of_timer(id)->last);

	if (is_word_of_timer(last, id))
		a_cas_rlx(&slot_of_timer(id)->last, &last, 0);
}

void kbi_signal_overruns_after_fork(void)
{
	for (int i = 0; i < SLOTS; i++) {
		a_store_rlx(&slots[i].word, 0);
		a_store_rlx(&slots[i].last, 0);
	}
}
