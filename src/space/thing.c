/* space/thing.c - objects by name. Contract in thing.h.
 * Callers: the objects, space, recover. Runs under the file's lock; a single store puts a complete
 * object into the chain. */
#include "space/thing.h"

#include <string.h>

#include "core/wait.h"
#include "os/sys.h"

enum { PAGE = 65536 }; /* bytes of holds mapped at a time */

/* ---- objects as this process knows them ------------------------------------------------------ */

static struct kbi_space_hold **hold_bucket(struct kb_space *s, uint64_t at)
{
	return &s->hold[at / KBI_CACHE_LINE * UINT64_C(0x9e3779b97f4a7c15) >> 32 &
		(KBI_SPACE_BUCKETS - 1)];
}

static struct kbi_space_hold *find_known_hold(struct kb_space *s, uint64_t at)
{
	struct kbi_space_hold *h = *hold_bucket(s, at);

	while (h && h->at != at)
		h = h->next;
	return h;
}

static bool add_page(struct kb_space *s)
{
	struct kbi_space_hold *page = kbi_sys_map(PAGE);

	if (!page)
		return false;
	page->next = s->holds; /* the first hold of a page is the link to the next page */
	s->holds = page;
	for (unsigned i = 1; i < PAGE / sizeof *page; i++) {
		page[i].next = s->free_holds;
		s->free_holds = &page[i];
	}
	return true;
}

void kbi_space_thing_forget(struct kb_space *s)
{
	struct kbi_space_hold *next;

	for (struct kbi_space_hold *page = s->holds; page; page = next) {
		next = page->next;
		kbi_sys_unmap(page, PAGE);
	}
	s->holds = NULL;
}

static struct kbi_space_hold *ensure_free_hold(struct kb_space *s)
{
	return s->free_holds || add_page(s) ? s->free_holds : NULL;
}

static struct kbi_space_hold *add_hold(struct kb_space *s, struct kbi_space_thing *t,
	const struct kbi_space_wish *w, uint64_t at, char *buffer)
{
	struct kbi_space_hold *h = s->free_holds;

	s->free_holds = h->next;
	*h = (struct kbi_space_hold){ .s = s, .t = t, .at = at, .buffer = buffer, .type = w->type,
		.size = w->size, .capacity = w->capacity, .next = *hold_bucket(s, at) };
	*hold_bucket(s, at) = h;
	return h;
}

/* ---- finding and making ---------------------------------------------------------------------- */

/* Finds an object by name. Stores its position in *found, 0: there is none. Returns 0 or EPROTO. */
static int find_thing(struct kb_space *s, const char *name, uint64_t *found)
{
	/* acquire: pairs with the release in make_thing */
	uint64_t at = a_load_acq(&s->head->things), below = UINT64_MAX;

	for (; at; below = at,
			at = a_load_rlx(&((struct kbi_space_thing *)kbi_space_place(s, at))->next)) {
		struct kbi_space_thing *t = kbi_space_thing_at(s, at, below);

		if (!t)
			return EPROTO;
		if (strncmp(t->name, name, KBI_SPACE_NAME) == 0)
			break;
	}
	*found = at;
	return 0;
}

static int make_thing(struct kb_space *s, const char *name, const struct kbi_space_wish *w,
	struct kbi_space_hold **h)
{
	struct kbi_space_thing *t;
	uint64_t at, buffer = 0;
	int e = kbi_space_file_alloc(s, sizeof *t, &at);

	if (!e && w->buffer)
		e = kbi_space_file_alloc(s, w->buffer, &buffer);
	if (e)
		return e;
	t = kbi_space_place(s, at);
	t->at = at;
	t->type = w->type;
	strcpy(t->name, name);
	t->size = w->size;
	t->capacity = w->capacity;
	t->buffer = buffer;
	if (w->make)
		w->make(t, w->arg);
	a_store_rlx(&t->next, a_load_rlx(&s->head->things));
	a_store_rlx(&s->head->n_things, a_load_rlx(&s->head->n_things) + 1);
	/* release: pairs with the acquire in find_thing, and in each_thing (recover.c) */
	a_store_rel(&s->head->things, at);
	*h = add_hold(s, t, w, at, buffer ? kbi_space_place(s, buffer) : NULL);
	return 0;
}

/* Opens an existing object. Any process may have written to it since: its measures are read once,
 * and must be as requested. */
static int open_existing_thing(struct kb_space *s, uint64_t at, const struct kbi_space_wish *w,
	struct kbi_space_hold **h)
{
	struct kbi_space_thing *t = kbi_space_place(s, at);
	char *buffer = NULL;

	if ((*h = find_known_hold(s, at)))
		return (*h)->type != w->type || (*h)->size != w->size ||
			(*h)->capacity != w->capacity ? EEXIST : 0;
	if (KBI_SPACE_ONCE(t->type) != w->type || KBI_SPACE_ONCE(t->size) != w->size ||
	    KBI_SPACE_ONCE(t->capacity) != w->capacity)
		return EEXIST;
	if (w->buffer && !(buffer = kbi_space_at(s, KBI_SPACE_ONCE(t->buffer), w->buffer)))
		return EPROTO;
	*h = add_hold(s, t, w, at, buffer);
	return 0;
}

static int open_or_make_thing(struct kb_space *s, const char *name, const struct kbi_space_wish *w,
	struct kbi_space_hold **h)
{
	uint64_t at;
	int e = find_thing(s, name, &at);

	if (e)
		return e;
	if (!ensure_free_hold(s))
		return ENOMEM;
	return at ? open_existing_thing(s, at, w, h) : make_thing(s, name, w, h);
}

static void open_ends(struct kb_space *s, struct kbi_space_thing *t, unsigned ends)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!(ends & 1u << i))
			continue;
		a_or_rlx(&t->ends[i], UINT64_C(1) << s->slot);
		a_or_rlx(&t->flags, KBI_SPACE_HAD << i);
		a_and_rlx(&t->flags, ~(uint32_t)(KBI_SPACE_DIED << i));
	}
}

int kbi_space_thing_open(struct kb_space *s, const char *name, const struct kbi_space_wish *w,
	struct kbi_space_hold **h)
{
	struct kbi_task *self = kbi_self();
	int e;

	if (!name || !*name || strlen(name) >= KBI_SPACE_NAME)
		return EINVAL;
	kbi_np_enter(self);
	e = kbi_space_file_lock(s);
	if (!e) {
		e = open_or_make_thing(s, name, w, h);
		if (!e)
			open_ends(s, (*h)->t, w->ends);
		kbi_space_file_unlock(s);
	}
	kbi_np_leave(self);
	return e;
}

bool kbi_space_thing_close(struct kbi_space_thing *t, unsigned slot, unsigned ends, bool died)
{
	uint64_t bit = UINT64_C(1) << slot;
	bool last = false;

	for (unsigned i = 0; i < 2; i++) {
		if (!(ends & 1u << i) || !(a_load_rlx(&t->ends[i]) & bit))
			continue;
		if (a_load_rlx(&t->ends[i]) == bit) {
			last = true;
			if (died)
				a_or_rlx(&t->flags, KBI_SPACE_DIED << i);
		}
		/* release: pairs with the acquire in kbi_space_thing_gone; the flags
		 * tell why the end is gone */
		a_and_acqrel(&t->ends[i], ~bit);
	}
	return last;
}

void kbi_space_thing_wake_event(struct kb_space *s, struct kbi_space_thing *t)
{
	/* release: pairs with the acquire in kbi_space_event_take. The upper half is no notification */
	a_add_acqrel(&t->event.word, UINT64_C(1) << 32);
	kbi_space_note_tell(s, &t->how);
}

void kbi_space_thing_wake(struct kbi_space_hold *h)
{
	struct kbi_space_op op = { .s = h->s, .t = h->t };

	if (h->type == KBI_SPACE_EVENT) {
		kbi_space_thing_wake_event(h->s, h->t);
		return;
	}
	if (kbi_space_queue_lock(h->s, h->t, 0))
		return;
	kbi_space_queue_call(&op, 0, UINT32_MAX);
	kbi_space_queue_call(&op, 1, UINT32_MAX);
	kbi_space_queue_unlock(h->t);
	kbi_space_queue_tell_called(&op);
}

int kbi_space_thing_leave(struct kbi_space_hold *h, unsigned ends)
{
	struct kb_space *s = h->s;
	struct kbi_task *self = kbi_self();
	int e;

	if (!ends || ends & ~(unsigned)(KB_SPACE_RECV | KB_SPACE_SEND))
		return EINVAL;
	kbi_np_enter(self);
	e = kbi_space_file_lock(s);
	if (!e) {
		kbi_space_thing_close(h->t, s->slot, ends, false);
		kbi_space_file_unlock(s);
		/* this process's own threads that wait there have no end any more, either */
		kbi_space_thing_wake(h);
	}
	kbi_np_leave(self);
	return e;
}
