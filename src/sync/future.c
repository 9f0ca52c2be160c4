/* sync/future.c - values that come once. Contract in kochab/task.h. A word, at
 * which waiters are parked.
 * Callers: all rooms above. Calls crew, park. Only get may switch. */
#include <errno.h>

#include "sync/crew.h"
#include "sync/park.h"

/* States. EMPTY -> RUNS (a task computes the value) or SETTING -> SET. A sleeper has or-ed AWAITED
 * to any of the first three states. */
enum { EMPTY, RUNS, SETTING, SET, AWAITED = 4 };

static inline a32 *future_word(kb_future_t *f) { return (a32 *)&f->word; }

int kb_future_init(kb_future_t *f)
{
	*f = (kb_future_t)KB_FUTURE_INIT;
	return 0;
}

/* Moves the word from EMPTY to `state`, with or without waiters. False: it was not EMPTY. */
static bool claim_future(kb_future_t *f, uint32_t state)
{
	uint32_t old = EMPTY;

	while (!a_cas_rlx(future_word(f), &old, old | state))
		if (old & ~(uint32_t)AWAITED)
			return false;
	return true;
}

static void set_future_value(kb_future_t *f, void *value)
{
	f->value = value;
	/* release: pairs with the acquire in is_set; the last access to the future */
	if (a_xchg_acqrel(future_word(f), SET) & AWAITED)
		kbi_park_wake(&f->word, UINT32_MAX, KBI_PARK_ANY);
}

int kb_future_set(kb_future_t *f, void *value)
{
	if (!claim_future(f, SETTING))
		return EBUSY;
	set_future_value(f, value);
	return 0;
}

KBI_SWITCHES static int run_future_task(void *future)
{
	kb_future_t *f = future;

	set_future_value(f, f->fn(f->arg));
	return 0;
}

int kb_future_run(kb_future_t *f, void *(*fn)(void *), void *arg)
{
	struct kbi_work w = { run_future_task, f, kbi_crew_tag(f) };
	int e;

	if (!fn)
		return EINVAL;
	if (!claim_future(f, RUNS))
		return EBUSY;
	f->fn = fn;
	f->arg = arg;
	if (kbi_likely(kbi_self_raw() && kbi_crew_put_here(kbi_self_raw(), w.fn, w.arg, w.whose)))
		return 0;
	e = kbi_crew_put_slow(&w);
	if (e)
		a_and_rlx(future_word(f), AWAITED);
	return e;
}

static inline bool is_set(kb_future_t *f)
{
	/* acquire: pairs with the release in set_future_value */
	return a_load_acq(future_word(f)) == SET;
}

KBI_SWITCHES static int await_future(kb_future_t *f, uint64_t deadline)
{
	while (!is_set(f)) {
		uint32_t old = a_load_rlx(future_word(f));

		if (old == SET ||
				(!(old & AWAITED) && !a_cas_rlx(future_word(f), &old, old | AWAITED)))
			continue;
		if (kbi_park_wait(&f->word, old | AWAITED, KBI_PARK_ANY, deadline) == ETIMEDOUT &&
				!is_set(f))
			return ETIMEDOUT;
	}
	return 0;
}

int kb_future_try(kb_future_t *f, void **value)
{
	if (!is_set(f))
		return EAGAIN;
	if (value)
		*value = f->value;
	return 0;
}

KBI_SWITCHER int kb_future_timedget(kb_future_t *f, void **value, uint64_t deadline)
{
	int e = await_future(f, deadline);

	return e ? e : kb_future_try(f, value);
}

KBI_SWITCHER int kb_future_get(kb_future_t *f, void **value)
{
	struct kbi_task *self = kbi_self();
	struct kbi_work w;

	if (!is_set(f) && (kbi_crew_take_newest(self, kbi_crew_tag(f), &w) ||
			kbi_crew_take_shared(kbi_crew_tag(f), &w)))
		w.fn(w.arg);
	return kb_future_timedget(f, value, KBI_FOREVER);
}
