/* space/thing.h - objects by name: found in the chain, or made; and their ends. The chain and the
 * ends change under the file's lock. Never switches.
 * Callers: the objects, select, space, recover. */
#ifndef KBI_SPACE_THING_H
#define KBI_SPACE_THING_H

#include <errno.h>

#include "space/file.h"
#include "space/queue.h"

struct kbi_space_wish {
	enum kbi_space_type type;
	uint32_t size;        /* as in struct kbi_space_thing */
	uint64_t capacity;
	uint64_t buffer;      /* bytes of the buffer */
	unsigned ends;        /* bits of the ends that this process is going to use */
	/* fills in a new object before any process sees it */
	void (*make)(struct kbi_space_thing *t, const void *arg);
	const void *arg;
};

/* Opens an object. Returns 0 or an errno value; EPROTO: the chain or the object is damaged. An
 * object has a single hold in a process. */
int kbi_space_thing_open(struct kb_space *s, const char *name, const struct kbi_space_wish *w,
	struct kbi_space_hold **h);
/* Frees the holds of this process, which is not attached any more. */
void kbi_space_thing_forget(struct kb_space *s);
/* Returns the object at a position of the chain. `below` is the position of the object before
 * (UINT64_MAX: none), which is newer and so lies above. NULL: the chain is damaged. */
static inline struct kbi_space_thing *kbi_space_thing_at(struct kb_space *s, uint64_t at,
	uint64_t below)
{
	const uint64_t bytes = sizeof(struct kbi_space_thing);

	return at < below && below - at >= bytes ? kbi_space_at(s, at, bytes) : NULL;
}
/* Closes those ends of this slot, by death or not. Under the file's lock. True:
 * an end has no process now. */
bool kbi_space_thing_close(struct kbi_space_thing *t, unsigned slot, unsigned ends, bool died);
/* Closes these ends of this process. Returns 0, EINVAL or EPROTO. */
int kbi_space_thing_leave(struct kbi_space_hold *h, unsigned ends);
/* Wakes all waiters of the object; each looks again. */
void kbi_space_thing_wake(struct kbi_space_hold *h);
void kbi_space_thing_wake_event(struct kb_space *s, struct kbi_space_thing *t);
/* Returns EPIPE or EOWNERDEAD if the end was open once and no process has it now; else 0. */
static inline int kbi_space_thing_gone(struct kbi_space_thing *t, unsigned end)
{
	uint32_t flags;

	/* acquire: pairs with the release in kbi_space_thing_close */
	if (kbi_likely(a_load_acq(&t->ends[end])))
		return 0;
	flags = a_load_rlx(&t->flags);
	return !(flags & KBI_SPACE_HAD << end) ? 0 : flags & KBI_SPACE_DIED << end ? EOWNERDEAD : EPIPE;
}

#endif
