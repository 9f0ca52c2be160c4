/* space/note.c - waiting for words in a space. Contract in note.h.
 * Callers: see note.h. Waits on the waiter's stack; a VP's look at boards runs where core/domain
 * polls. Only kbi_space_note_wait may switch. */
#include "space/note.h"

#include <errno.h>
#include <limits.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/boot.h"
#include "core/domain.h"
#include "core/timer.h"
#include "os/sys.h"
#include "space/file.h"

enum {
	MOST_VPS = 1024, /* limit of the option vps */
	MANY = 8,        /* waiters of a VP from which on a board is worth its two lines */
	/* number of waits for which a VP stays with the board after it had so many waiters */
	LINGER = 4096,
	VP_SHIFT = 14,   /* position of the VP's number in `how`, above a place on a board */
};

_Static_assert(KBI_MARKS == 1 << VP_SHIFT && KBI_SPACE_VPS << VP_SHIFT <= 1 << 20, "they fit in");

static aptr spaces[KBI_SPACE_NOTE_AT_ONCE];

/* A VP's knowledge of its waiters: under the keeper of its domain. */
static struct desk {
	uint32_t linger;
	a32 waiting[KBI_SPACE_NOTE_AT_ONCE]; /* waiters in each space; also read without the domain */
	bool barred[KBI_SPACE_NOTE_AT_ONCE]; /* there is no room for its board */
	struct kbi_watch **place; /* [KBI_MARKS]: waiters to be marked; several may share a place */
} desks[MOST_VPS];

/* ---- a VP sleeps ----------------------------------------------------------------------------- */

static void on_vp_doze(struct kbi_vp *vp, bool asleep)
{
	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++)
		/* the space stays attached as long as a thread waits there */
		if (a_load_rlx(&desks[vp->id].waiting[i]))
			a_store_rlx(&kbi_space_me(a_load_rlx(&spaces[i]))->asleep[vp->id % KBI_SPACE_VPS],
				asleep);
}

/* ---- boards ---------------------------------------------------------------------------------- */

struct found {
	struct kbi_vp *me, *dom;
};

static void on_board_marks(void *arg, uint32_t first, uint64_t bits)
{
	struct kbi_watch **place = desks[((struct found *)arg)->dom->id].place + first, *w, *next;

	for (uint64_t b = bits; b; b &= b - 1)
		__builtin_prefetch(place[__builtin_ctzll(b)]);
	for (uint64_t b = bits; b; b &= b - 1)
		for (w = place[__builtin_ctzll(b)]; w; w = next) {
			next = w->next;
			__builtin_prefetch((const void *)w->word);
			kbi_domain_watch_fire(((struct found *)arg)->me, ((struct found *)arg)->dom, w);
		}
}

static struct kbi_marks *board_of_vp(struct kb_space *s, uint32_t slot, uint32_t vp)
{
	/* acquire: pairs with the release in add_board */
	uint64_t at = a_load_acq(&kbi_space_proc(s, slot)->board[vp]);

	return at ? kbi_space_at(s, at, sizeof(struct kbi_marks)) : NULL;
}

static struct kbi_marks *own_board(struct kb_space *s, uint32_t vp)
{
	/* acquire: pairs with the release in add_board */
	return a_load_acq(&s->board[vp]);
}

static void poll_boards(struct kbi_vp *me, struct kbi_vp *dom)
{
	struct found f = { me, dom };

	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++) {
		struct kb_space *s = a_load_rlx(&spaces[i]);
		bool waits = a_load_rlx(&desks[dom->id].waiting[i]) && dom->id < KBI_SPACE_VPS;
		struct kbi_marks *m = waits ? own_board(s, dom->id) : NULL;

		if (m && kbi_marks_any(m))
			kbi_marks_take(m, on_board_marks, &f);
	}
}

static bool add_board(struct kb_space *s, uint32_t vp)
{
	uint64_t at;
	int e = kbi_space_file_lock(s);

	if (e)
		return false;
	e = kbi_space_file_alloc(s, sizeof(struct kbi_marks), &at);
	if (!e) {
		/* release: pairs with the acquire in board_of_vp, and in own_board */
		a_store_rel(&kbi_space_me(s)->board[vp], at);
		a_store_rel(&s->board[vp], kbi_space_place(s, at));
	}
	kbi_space_file_unlock(s);
	return e == 0;
}

void kbi_space_note_reset(struct kb_space *s)
{
	for (unsigned vp = 0; vp < KBI_SPACE_VPS; vp++)
		a_store_rlx(&s->board[vp], board_of_vp(s, s->slot, vp));
}

/* Returns whether a waiter should use the board: many threads wait on vp, or did so a moment ago,
 * and there is a board. Runs on vp. */
static bool use_board(struct kb_space *s, struct kbi_vp *vp)
{
	struct desk *d = &desks[vp->id];

	if (a_load_rlx(&vp->n_rung) >= MANY)
		d->linger = LINGER;
	else if (kbi_likely(!d->linger))
		return false;
	else
		d->linger--;
	if (kbi_unlikely(vp->id >= KBI_SPACE_VPS || d->barred[s->number]))
		return false;
	if (kbi_unlikely(!d->place) && !(d->place = kbi_sys_map(KBI_MARKS * sizeof *d->place)))
		return false;
	if (kbi_likely(own_board(s, vp->id)))
		return true;
	d->barred[s->number] = !add_board(s, vp->id);
	return !d->barred[s->number];
}

/* ---- spaces ---------------------------------------------------------------------------------- */

bool kbi_space_note_enter(struct kb_space *s)
{
	kbi_agent_dozes = on_vp_doze;
	kbi_domain_boards = poll_boards;
	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++) {
		if (a_load_rlx(&spaces[i]))
			continue;
		s->number = i;
		for (unsigned vp = 0; vp < MOST_VPS && vp < kbi_vp_n; vp++)
			desks[vp].barred[i] = false;
		/* release: pairs with the acquire in kbi_space_note_space */
		a_store_rel(&spaces[i], s);
		return true;
	}
	return false;
}

void kbi_space_note_leave(struct kb_space *s)
{
	for (unsigned vp = 0; vp < kbi_vp_n; vp++)
		/* in the child of fork the counts may tell of waiters that do not exist there */
		a_store_rlx(&desks[vp].waiting[s->number], 0);
	a_store_rlx(&spaces[s->number], NULL);
}

bool kbi_space_note_any(const struct kb_space *s)
{
	for (unsigned vp = 0; vp < kbi_vp_n; vp++)
		if (a_load_rlx(&desks[vp].waiting[s->number]))
			return true;
	return false;
}

struct kb_space *kbi_space_note_space(unsigned i)
{
	/* acquire: pairs with the release in kbi_space_note_enter */
	return i < KBI_SPACE_NOTE_AT_ONCE ? a_load_acq(&spaces[i]) : NULL;
}

/* ---- waking ---------------------------------------------------------------------------------- */

void kbi_space_note_ring(struct kbi_space_proc *p)
{
	/* release: pairs with the acquire of run_listener (member.c) before it sleeps on
	 * the bell */
	a_add_acqrel(&p->ring, 1);
	kbi_sys_futex_wake_shared(&p->ring, INT_MAX);
}

void kbi_space_note_rouse(void)
{
	a_fence_sc(); /* sc: pairs with the fence of a VP that goes to sleep in core/agent.c */
	if (!kbi_boot_has_vps())
		return; /* then no thread of a VP waits */
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (a_load_rlx(&kbi_vps[i]->n_rung))
			kbi_vp_rouse(kbi_vps[i]);
}

static void rouse_vp(struct kbi_space_proc *p, uint32_t vp)
{
	/* acquire and release: pairs with itself; a single waker rings */
	if (a_load_rlx(&p->asleep[vp]) && a_xchg_acqrel(&p->asleep[vp], 0))
		kbi_space_note_ring(p);
}

/* Wakes a kernel thread by the kernel, and all further sleepers there: a process that may only read
 * can sleep there, too. */
static void wake_sleeper(a32 *how, uint32_t h)
{
	/* acquire and release: pairs with itself; a single waker calls the kernel */
	if (a_cas_acqrel(how, &h, KBI_SPACE_HOW(KBI_SPACE_SELF, 0, 0)))
		kbi_sys_futex_wake_shared(how, INT_MAX);
}

/* Wakes a waiter of any kind but CHAINED. */
static void wake_unchained_waiter(struct kb_space *s, a32 *how, uint32_t h)
{
	struct kbi_space_proc *p = kbi_space_proc(s, h >> 20 & 63);
	struct kbi_marks *m;

	switch (h >> 28) {
	case KBI_SPACE_WATCHED:
		rouse_vp(p, h % KBI_SPACE_VPS);
		return;
	case KBI_SPACE_BOARDED:
		m = board_of_vp(s, h >> 20 & 63, h >> VP_SHIFT & 63);
		if (m)
			/* it contains a full fence, which pairs with that of a VP in core/agent.c */
			kbi_marks_add(m, h % KBI_MARKS);
		rouse_vp(p, h >> VP_SHIFT & 63);
		return;
	case KBI_SPACE_ASLEEP:
		wake_sleeper(how, h);
		return;
	default:
		return;
	}
}

/* A chain has a single link: the told record leads no further, whatever it contains. */
void kbi_space_note_wake(struct kb_space *s, a32 *how, uint32_t h)
{
	struct kbi_space_record *r;

	if (h >> 28 != KBI_SPACE_CHAINED) {
		wake_unchained_waiter(s, how, h);
		return;
	}
	r = kbi_space_record(s, ((h >> 20 & 63) + 1) << 16 | (h & 0xffff));
	if (!r)
		return;
	a_add_acqrel(&r->word, 1); /* release: pairs with the acquire in has_word_changed */
	/* sc: pairs with the fence in publish_waiter_how, and with that of a VP in core/agent.c */
	a_fence_after_rmw();
	wake_unchained_waiter(s, &r->how, a_load_rlx(&r->how));
}

void kbi_space_note_tell_again(struct kb_space *s, a32 *how)
{
	kbi_space_note_tell(s, how);
	/* a waker stores SELF before it calls the kernel. VPs: recover rings all bells */
	if (a_load_rlx(how) >> 28 == KBI_SPACE_SELF)
		kbi_sys_futex_wake_shared(how, INT_MAX);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool has_word_changed(const a64 *word, uint64_t old)
{
	/* acquire: pairs with the read-modify-write of the thread that changes the word */
	return a_load_acq(word) != old;
}

static void publish_waiter_how(a32 *how, uint32_t h)
{
	if (a_load_rlx(how) == h)
		return;
	a_store_rlx(how, h);
	/* sc: pairs with the fence in kbi_space_note_tell, after the waker's change of the word */
	a_fence_sc();
}

static int sleep_in_futex(a32 *how, uint64_t deadline)
{
	uint64_t now = deadline == KBI_FOREVER ? 0 : kbi_sys_now(), left = deadline - now;
	struct timespec ts = kbi_sys_timespec(left);

	if (now >= deadline)
		return ETIMEDOUT;
	kbi_sys_futex_wait_shared(how, KBI_SPACE_HOW(KBI_SPACE_ASLEEP, 0, 0),
		deadline == KBI_FOREVER ? NULL : &ts);
	return 0;
}

/* Waits in a kernel thread: polls, then sleeps. */
static int wait_in_kernel_thread(a64 *word, a32 *how, uint64_t old, uint64_t deadline)
{
	uint64_t until = 0;
	int e = 0;

	publish_waiter_how(how, KBI_SPACE_HOW(KBI_SPACE_SELF, 0, 0));
	for (unsigned i = 1; !has_word_changed(word, old); i++) {
		kbi_cpu_relax();
		if (i % 32)
			continue;
		if (!until)
			until = kbi_sys_now() + (uint64_t)kbi_options.spin_us * 1000;
		else if (kbi_sys_now() >= until || kbi_sys_now() >= deadline)
			break;
	}
	while (!has_word_changed(word, old) && !e) {
		publish_waiter_how(how, KBI_SPACE_HOW(KBI_SPACE_ASLEEP, 0, 0));
		if (has_word_changed(word, old))
			break;
		e = sleep_in_futex(how, deadline);
	}
	a_store_rlx(how, KBI_SPACE_HOW(KBI_SPACE_SELF, 0, 0));
	return has_word_changed(word, old) ? 0 : e;
}

/* Registers w where a waker tells of its word, and lets `how` name that place. On vp, np > 0. */
static void register_watch(struct kb_space *s, struct kbi_vp *vp, struct kbi_watch *w, a32 *how)
{
	uint32_t number = vp->id % KBI_SPACE_VPS, place = w->task->index % KBI_MARKS;

	w->counter = &desks[vp->id].waiting[s->number];
	w->boarded = use_board(s, vp);
	kbi_domain_watch_add(vp, w, w->boarded ? &desks[vp->id].place[place] : NULL);
	publish_waiter_how(how, w->boarded ?
		KBI_SPACE_HOW(KBI_SPACE_BOARDED, s->slot, number << VP_SHIFT | place) :
		KBI_SPACE_HOW(KBI_SPACE_WATCHED, s->slot, number));
}

int kbi_space_note_wait(struct kb_space *s, a64 *word, a32 *how, uint64_t old, uint64_t deadline)
{
	struct kbi_task *self = kbi_self();
	struct kbi_watch w = { .word = word, .old = old, .size = 8, .rung = true, .task = self };
	int e = 0;

	if (!self->vp)
		return wait_in_kernel_thread(word, how, old, deadline);
	while (!has_word_changed(word, old)) {
		if (e == ETIMEDOUT)
			return e;
		kbi_np_enter(self);
		register_watch(s, self->vp, &w, how);
		/* a mark may have been taken off the board before w stood there:
		 * then the word has changed */
		if (!w.boarded || !has_word_changed(word, old))
			e = kbi_timer_sleep(self, deadline);
		if (kbi_task_is(self, KBI_TASK_ARMED)) /* it did not sleep */
			kbi_domain_disarm(self->vp, kbi_thread_of(self));
		kbi_np_leave(self);
		kbi_wait_handle(self);
	}
	return 0;
}
