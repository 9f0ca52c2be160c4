/* posix/signal_taker.c - the rule which thread takes a signal to the process. The order is the
 * kernel's for its own threads: main, if it lets the signal through or waits for it, then the rest.
 * Callers: each holder of such a signal: the relay, whose kernel thread got the signal, the signal
 * dispatcher, and a thread that sends a signal from inside; also in handlers. No locks: the signals
 * that a thread takes may change meanwhile; then a signal that it was given goes on to another
 * thread (kbi_signal_give_back). Never switches. */
#include "posix/signal_priv.h"

#include "core/descriptor.h"

static aptr main_thread;

void kbi_signal_main_is(struct kb_thread *t)
{
	a_store_rel(&main_thread, t); /* release: partner is the acquire in takes_as_main */
}

uint64_t kbi_signal_deliverable(uint64_t set)
{
	set &= ~kbi_broadcast_bit();
	return set & ~(kbi_signal_never() | kbi_signal_bit(SIGKILL) | kbi_signal_bit(SIGSTOP) |
		       kbi_signal_bit(SIGSEGV) | kbi_signal_bit(SIGBUS) | kbi_signal_bit(SIGFPE) |
		       kbi_signal_bit(SIGILL) | kbi_signal_bit(SIGTRAP));
}

bool kbi_signal_is_there(const struct kb_thread *t)
{
	/* acquire: partner is the release that gave the descriptor its state */
	enum kbi_task_kind kind = kbi_state_kind(a_load_acq(&t->task.state));

	return t->posix && (kind == KBI_TASK_READY || kind == KBI_TASK_WAIVED ||
			    kind == KBI_TASK_RUNNING || kind == KBI_TASK_WAITING ||
			    kind == KBI_TASK_BLOCKED);
}

uint64_t kbi_signal_accepts(const struct kb_thread *t)
{
	return kbi_signal_is_there(t) ?
		~a_load_rlx(&t->signals.mask) | a_load_rlx(&t->signals.wanted) : 0;
}

uint64_t kbi_signal_takes(const struct kb_thread *t)
{
	uint64_t wanted;

	if (!kbi_signal_is_there(t))
		return 0;
	wanted = a_load_rlx(&t->signals.wanted);
	/* acquire: partner is the release in kbi_signal_put */
	return ~a_load_rlx(&t->signals.mask) | (a_load_acq(&t->signals.pending) & wanted ? 0 : wanted);
}

/* Number of handlers that main had begun when a wait for it was in vain. */
static a32 slow = { UINT32_MAX };

static const struct kbi_posix_thread *record_of(const struct kb_thread *t)
{
	return t && t->is_main && kbi_signal_is_there(t) ? t->posix : NULL;
}

bool kbi_signal_main_is_soon(int sig)
{
	/* acquire: partner is the release in kbi_signal_main_is */
	const struct kb_thread *t = a_load_acq(&main_thread);
	const struct kbi_posix_thread *main = record_of(t);
	uint64_t bit = kbi_signal_bit(sig);

	return main && main->in_handler && (a_load_rlx(&t->signals.mask) & bit) &&
	       !(main->mask_outside & bit) && main->handled != a_load_rlx(&slow);
}

void kbi_signal_main_is_slow(void)
{
	/* acquire: partner as above */
	const struct kbi_posix_thread *main = record_of(a_load_acq(&main_thread));

	if (main)
		a_store_rlx(&slow, main->handled);
}

/* ---- the time of a handler ------------------------------------------------------------------- */

/* Each word holds a thread's index + 1 in the upper half and the real-time signals that it blocks
 * in the lower half. Of two threads with the same place the later counts, and the earlier is not
 * found: its signals then wait in the kernel, as do signals that every thread blocks. */
enum { PLACES = 1024, INDEX_AT = 32 };
static a64 for_now[PLACES];

static a64 *place_of(const struct kb_thread *t)
{
	return &for_now[t->task.index % PLACES];
}

static bool is_place_of(uint64_t word, const struct kb_thread *t)
{
	return word >> INDEX_AT == (uint64_t)t->task.index + 1;
}

void kbi_signal_blocks_for_now(const struct kb_thread *t, uint64_t set)
{
	/* release: partner is the acquire in kbi_signal_blocked_for_now */
	if (kbi_unlikely(set >> KBI_LIBC_LAST))
		a_store_rel(place_of(t), ((uint64_t)t->task.index + 1) << INDEX_AT | set >> KBI_LIBC_LAST);
}

void kbi_signal_blocks_for_good(const struct kb_thread *t)
{
	if (kbi_unlikely(is_place_of(a_load_rlx(place_of(t)), t)))
		a_store_rlx(place_of(t), 0);
}

uint64_t kbi_signal_blocked_for_now(const struct kb_thread *t)
{
	/* acquire: partner is the release in kbi_signal_blocks_for_now */
	uint64_t word = a_load_acq(place_of(t));

	return is_place_of(word, t) ? (uint64_t)(uint32_t)word << KBI_LIBC_LAST : 0;
}

struct kb_thread *kbi_signal_taker_soon(int sig)
{
	/* acquire: partner is the release in kbi_signal_main_is */
	struct kb_thread *main = a_load_acq(&main_thread), *found = NULL;
	uint64_t bit = kbi_signal_bit(sig);

	for (uint32_t i = 0; i < kbi_descriptor_limit() && found != main; i++) {
		struct kb_thread *t = kbi_descriptor_at(i);

		if ((kbi_signal_blocked_for_now(t) & bit) && kbi_signal_is_there(t) &&
			(!found || t == main))
			found = t;
	}
	return found;
}

uint64_t kbi_signal_only_for(const struct kb_thread *t, uint64_t set)
{
	set = kbi_signal_deliverable(set);
	for (uint32_t i = 0; set && i < kbi_descriptor_limit(); i++) {
		const struct kb_thread *other = kbi_descriptor_at(i);

		if (other != t && !kbi_signal_is_last(other))
			set &= ~kbi_signal_accepts(other);
	}
	return set;
}

bool kbi_signal_anybody_takes(uint64_t bit)
{
	for (uint32_t i = 0; i < kbi_descriptor_limit(); i++)
		if (kbi_signal_takes(kbi_descriptor_at(i)) & bit)
			return true;
	return false;
}

/* Returns main if it takes the signal. Its descriptor may be another thread's by now. */
static struct kb_thread *takes_as_main(uint64_t bit)
{
	/* acquire: partner is the release in kbi_signal_main_is */
	struct kb_thread *t = a_load_acq(&main_thread);

	return t && t->is_main && (kbi_signal_takes(t) & bit) ? t : NULL;
}

static struct kb_thread *any_that_takes(uint64_t bit)
{
	struct kb_thread *found = NULL;

	for (uint32_t i = 0; i < kbi_descriptor_limit(); i++) {
		struct kb_thread *t = kbi_descriptor_at(i);

		if (!(kbi_signal_takes(t) & bit))
			continue;
		if (a_load_rlx(&t->signals.wanted) & bit)
			return t;
		found = t;
	}
	return found;
}

struct kb_thread *kbi_signal_taker(int sig, struct kb_thread *near)
{
	uint64_t bit = kbi_signal_bit(sig);
	struct kb_thread *main = takes_as_main(bit);

	if (main)
		return main;
	return near && (kbi_signal_takes(near) & bit) ? near : any_that_takes(bit);
}

struct kb_thread *kbi_signal_computing(int sig)
{
	uint64_t bit = kbi_signal_bit(sig);

	for (uint32_t i = 0; i < kbi_descriptor_limit(); i++) {
		struct kb_thread *t = kbi_descriptor_at(i);

		if (kbi_state_kind(a_load_acq(&t->task.state)) == KBI_TASK_RUNNING &&
			(kbi_signal_takes(t) & bit))
			return t; /* acquire: partner is the release that gave the descriptor its state */
	}
	return NULL;
}

/* Tests whether t takes the signal. For a bound thread the kernel knows better than our words which
 * signals it lets through; but not whether main takes this signal. */
bool kbi_signal_is_for(struct kb_thread *t, int sig)
{
	const struct kb_thread *taker = kbi_signal_taker(sig, t);

	return taker == t || (kbi_signal_is_bound(t) && !(taker && taker->is_main));
}

bool kbi_signal_is_for_now(struct kb_thread *t, int sig)
{
	return !kbi_signal_main_is_soon(sig) && kbi_signal_is_for(t, sig);
}
