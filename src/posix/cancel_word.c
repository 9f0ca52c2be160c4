/* posix/cancel_word.c - where libc keeps a thread's cancellation state: the word `cancelhandling`
 * in its control block. libc tells debuggers the offset of that word (from 2.34 on the symbol is in
 * libc itself). Otherwise the word is found by changing the state and the type and comparing the
 * block. In glibc 2.34 and 2.35 state and type have bytes of their own.
 * Callers: posix/thread (the search, at start), cancel, signal, signal_sigcancel, call_wait. No
 * locks. Never switches; kbi_cancel_act may unwind the caller. */
#include "posix/posix.h"

#include <gnu/libc-version.h>
#include <string.h>

#include "libc/asked.h"
#include "libc/names.h"

ptrdiff_t kbi_cancel_at, kbi_cancel_state_at;

/* bytes of a control block that are searched */
enum { LEAST = 1536, MOST = 3072, WORDS = MOST / 4 };

static void set_cancel_state(int state, int type)
{
	pthread_setcancelstate(state, NULL);
	kbi_libc()->pthread_setcanceltype(type, NULL);
}

/* Returns the number of words of a control block, if libc tells its size; otherwise the number that
 * every control block has. */
static unsigned words_of_block(void)
{
	const uint32_t *bytes = kbi_names_look_up("_thread_db_sizeof_pthread");

	return bytes && *bytes >= LEAST && *bytes <= MOST ? *bytes / 4 : LEAST / 4;
}

static void copy_control_block(uint32_t to[WORDS], unsigned words)
{
	const volatile uint32_t *block = (const volatile uint32_t *)(void *)pthread_self();

	for (unsigned i = 0; i < words; i++)
		to[i] = block[i];
}

struct seen {
	unsigned words;
	uint32_t both[WORDS], state[WORDS], none[WORDS];
};

/* Records the block for three settings. The type is never asynchronous while cancellation is
 * enabled, because the caller may have been cancelled already. */
static void record_settings(struct seen *s)
{
	s->words = words_of_block();
	set_cancel_state(PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ASYNCHRONOUS);
	copy_control_block(s->both, s->words);
	set_cancel_state(PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_DEFERRED);
	copy_control_block(s->state, s->words);
	set_cancel_state(PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DEFERRED);
	copy_control_block(s->none, s->words);
}

/* Returns the offset of the only word in which the state is bit `state` and the type is bit `type`;
 * 0: there is no word like that, or several. */
static ptrdiff_t find_mark_word(const struct seen *s, uint32_t state, uint32_t type)
{
	ptrdiff_t found = 0;

	for (unsigned i = 0; i < s->words; i++) {
		uint32_t base = s->none[i];

		if (base & (state | type) || s->both[i] != (base | state | type) ||
			s->state[i] != (base | state))
			continue;
		if (found)
			return 0;
		found = i * (ptrdiff_t)sizeof base;
	}
	return found;
}

/* Returns the offset of the state's byte if state and type are two adjacent bytes of a word, else
 * 0. */
static ptrdiff_t find_mark_bytes(const struct seen *s)
{
	for (unsigned byte = 0; byte < 3; byte++) {
		uint32_t one = 1u << 8 * byte;
		ptrdiff_t found = find_mark_word(s, one, one << 8);

		if (found)
			return found + (ptrdiff_t)byte;
	}
	return 0;
}

/* Tests whether the offset `told` is a word of the block that has no bits outside the mark's. */
static bool may_be_mark(const struct seen *s, ptrdiff_t told)
{
	enum { BITS = 0x7f };
	size_t i = (size_t)told / sizeof s->none[0];

	return told % (ptrdiff_t)sizeof s->none[0] == 0 && i < s->words &&
		!(s->none[i] & ~(uint32_t)BITS);
}

/* Logs the result. pthread_cancel reports the lack too, when it is called. */
static void log_mark(void)
{
	const char *what = "cancellation mark";

	if (kbi_cancel_at)
		kbi_asked_found(what, "at byte %td", kbi_cancel_at);
	else
		kbi_asked_lacks(what,
			"not found: pthread_cancel of a lightweight thread is refused, ENOSYS");
}

/* Finds the offsets kbi_cancel_at and kbi_cancel_state_at. glibc's description for debuggers has
 * three words: bits, count, offset. */
void kbi_cancel_find(void)
{
	const uint32_t *place = kbi_names_look_up("_thread_db_pthread_cancelhandling");
	ptrdiff_t told = place && place[0] == 32 ? (ptrdiff_t)place[2] : 0, found;
	int state, type;
	struct seen s;

	if (kbi_cancel_at)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	kbi_libc()->pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	record_settings(&s);
	set_cancel_state(state, type);
	found = find_mark_word(&s, KBI_CANCEL_DISABLED, KBI_CANCEL_ASYNC);
	if (!found && told && may_be_mark(&s, told))
		kbi_cancel_state_at = find_mark_bytes(&s);
	if (found ? !told || told == found : kbi_cancel_state_at != 0)
		kbi_cancel_at = told ? told : found;
	log_mark();
}

void kbi_cancel_fresh(pthread_t t)
{
	uint32_t old = kbi_cancel_at ? a_load_rlx(kbi_cancel_word(t)) : 0;

	if (kbi_unlikely(old))
		a_store_rlx(kbi_cancel_word(t), 0); /* no other thread knows the new thread yet */
}

bool kbi_cancel_goes_by_place(void)
{
	static a32 known; /* 0: not asked, 1: no, 2: yes */
	uint32_t answer = a_load_rlx(&known);

	if (!answer) {
		answer = strverscmp(gnu_get_libc_version(), "2.41") < 0 ? 1 : 2;
		a_store_rlx(&known, answer);
	}
	return answer == 2;
}

void kbi_cancel_act(void)
{
	pthread_testcancel();
}
