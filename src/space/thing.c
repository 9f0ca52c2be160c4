/* space/thing.c - objects by name. Contract in thing.h. Under the file's lock; an object is in the chain by one store,
 * when it is whole. */
#include "space/thing.h"

#include <string.h>

#include "core/wait.h"

static struct kbi_space_thing *find(struct kb_space *s, const char *name)
{
	uint64_t at = a_load_acq(&s->head->things);

	while (at) {
		struct kbi_space_thing *t = kbi_space_place(s, at);

		if (strcmp(t->name, name) == 0)
			return t;
		at = a_load_rlx(&t->next);
	}
	return NULL;
}

static int make(struct kb_space *s, const char *name, const struct kbi_space_wish *w, struct kbi_space_thing **out)
{
	struct kbi_space_head *h = s->head;
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
	a_store_rlx(&t->next, a_load_rlx(&h->things));
	a_store_rlx(&h->n_things, a_load_rlx(&h->n_things) + 1);
	/* release: partner is the acquire in find, and of who looks without the lock */
	a_store_rel(&h->things, at);
	*out = t;
	return 0;
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

int kbi_space_thing_open(struct kb_space *s, const char *name, const struct kbi_space_wish *w, struct kbi_space_thing **t)
{
	struct kbi_task *self = kbi_self();
	int e = 0;

	if (!name || !*name || strlen(name) >= KBI_SPACE_NAME)
		return EINVAL;
	kbi_np_enter(self);
	kbi_space_file_lock(s);
	*t = find(s, name);
	if (!*t)
		e = make(s, name, w, t);
	else if ((*t)->type != w->type || (*t)->size != w->size || (*t)->capacity != w->capacity)
		e = EEXIST;
	if (!e)
		open_ends(s, *t, w->ends);
	kbi_space_file_unlock(s);
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
		/* release: who sees it gone sees why */
		a_and_acqrel(&t->ends[i], ~bit);
	}
	return last;
}

void kbi_space_thing_wake(struct kb_space *s, struct kbi_space_thing *t)
{
	struct kbi_space_op op = { .s = s, .t = t };

	if (t->type == KBI_SPACE_EVENT) {
		/* the upper half: it is no notification */
		a_add_acqrel(&t->event.word, UINT64_C(1) << 32);
		kbi_space_note_tell(s, &t->how);
		return;
	}
	kbi_space_queue_lock(s, t);
	kbi_space_queue_call(&op, 0, UINT32_MAX);
	kbi_space_queue_call(&op, 1, UINT32_MAX);
	kbi_space_queue_unlock(t);
	kbi_space_queue_tell_called(&op);
}

int kbi_space_thing_leave(struct kbi_space_thing *t, unsigned ends)
{
	struct kb_space *s = kbi_space_of(t);
	struct kbi_task *self = kbi_self();

	if (!ends || ends & ~(unsigned)(KB_SPACE_RECV | KB_SPACE_SEND))
		return EINVAL;
	kbi_np_enter(self);
	kbi_space_file_lock(s);
	kbi_space_thing_close(t, s->slot, ends, false);
	kbi_space_file_unlock(s);
	/* our own threads that wait there, too, have no end any more */
	kbi_space_thing_wake(s, t);
	kbi_np_leave(self);
	return 0;
}
