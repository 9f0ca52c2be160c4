/* sync/once.c - a function that runs once; further callers wait for its end, which may take long
 * and suspend. A single word, at which the sleepers are parked.
 * Callers: all rooms above. Calls park. Takes no lock of its own. May switch. */
#include "sync/once.h"

#include "sync/park.h"

/* States. NEW -> RUNNING or CROWDED (running, with sleepers) -> DONE; abort: back to NEW. */
enum { NEW, RUNNING, DONE, CROWDED };

static inline a32 *once_word(kb_once_t *o) { return (a32 *)&o->word; }

static KBI_NOINLINE bool begin_slow(kb_once_t *o)
{
	for (;;) {
		uint32_t old = NEW;

		/* acquire: pairs with the release in finish_once, for DONE as for NEW */
		if (a_cas_acq(once_word(o), &old, RUNNING))
			return true;
		/* acquire: pairs with the release in finish_once */
		if (a_load_acq(once_word(o)) == DONE)
			return false;
		old = RUNNING;
		if (a_cas_rlx(once_word(o), &old, CROWDED) || old == CROWDED)
			kbi_park_wait(&o->word, CROWDED, KBI_PARK_ANY, KBI_FOREVER);
	}
}

bool kbi_once_begin(kb_once_t *o)
{
	/* acquire: pairs with the release in finish_once */
	return kbi_likely(a_load_acq(once_word(o)) == DONE) ? false : begin_slow(o);
}

static void finish_once(kb_once_t *o, uint32_t state)
{
	/* release: pairs with the acquire in kbi_once_begin and begin_slow */
	if (a_xchg_acqrel(once_word(o), state) == CROWDED)
		kbi_park_wake(&o->word, UINT32_MAX, KBI_PARK_ANY);
}

void kbi_once_done(kb_once_t *o)
{
	finish_once(o, DONE);
}

void kbi_once_abort(kb_once_t *o)
{
	finish_once(o, NEW);
}

void kbi_once_orphan(kb_once_t *o)
{
	if (a_load_rlx(once_word(o)) != DONE)
		a_store_rlx(once_word(o), NEW);
}

int kb_once(kb_once_t *o, void (*fn)(void))
{
	if (kbi_once_begin(o)) {
		fn();
		kbi_once_done(o);
	}
	return 0;
}
