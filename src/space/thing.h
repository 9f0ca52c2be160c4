/* space/thing.h - objects by name: found in the chain, or made. And their ends. Callers: the objects, recover. */
#ifndef KBI_SPACE_THING_H
#define KBI_SPACE_THING_H

#include <errno.h>

#include "space/file.h"
#include "space/queue.h"

struct kbi_space_wish {
	enum kbi_space_type type;
	uint32_t size;        /* as in struct kbi_space_thing */
	uint64_t capacity;
	uint64_t buffer;      /* bytes of it */
	unsigned ends;        /* bits, which this process is going to use */
	void (*make)(struct kbi_space_thing *t, const void *arg); /* before others see it */
	const void *arg;
};

/* Errno value. EPROTO: the chain or the object is damaged. The same object has the same hold. */
int kbi_space_thing_open(struct kb_space *s, const char *name, const struct kbi_space_wish *w, struct kbi_space_hold **h);
/* This process is not attached any more: its holds are gone. */
void kbi_space_thing_forget(struct kb_space *s);
/* The object at a position of the chain, `below` that of the object before (UINT64_MAX: none), which is newer and so lies
 * above: NULL: the chain is damaged. */
static inline struct kbi_space_thing *kbi_space_thing_at(struct kb_space *s, uint64_t at, uint64_t below)
{
	const uint64_t bytes = sizeof(struct kbi_space_thing);

	return at < below && below - at >= bytes ? kbi_space_at(s, at, bytes) : NULL;
}
/* Under the file's lock: this slot's ends of those bits are closed, by death or not. True: one of them has nobody now. */
bool kbi_space_thing_close(struct kbi_space_thing *t, unsigned slot, unsigned ends, bool died);
/* This process closes these ends: 0, EINVAL, EPROTO. */
int kbi_space_thing_leave(struct kbi_space_hold *h, unsigned ends);
/* Everybody who waits at it is woken, and is to look again. */
void kbi_space_thing_wake(struct kbi_space_hold *h);
void kbi_space_thing_wake_event(struct kb_space *s, struct kbi_space_thing *t);
/* Once open, it has nobody now: EPIPE, EOWNERDEAD; else 0. */
static inline int kbi_space_thing_gone(struct kbi_space_thing *t, unsigned end)
{
	uint32_t flags;

	/* acquire: partner is the release in kbi_space_thing_close */
	if (kbi_likely(a_load_acq(&t->ends[end])))
		return 0;
	flags = a_load_rlx(&t->flags);
	return !(flags & KBI_SPACE_HAD << end) ? 0 : flags & KBI_SPACE_DIED << end ? EOWNERDEAD : EPIPE;
}

#endif
