/* sync/crew.c - the threads that run tasks. Contract and laws in crew.h. A server runs on its own
 * stack, on its VP. Locks guard the lists of servers and the list of tasks that are in no lane;
 * they are held for some instructions inside np brackets.
 * Callers: group, future, loop. Servers and kbi_crew_have_turns may switch. */
#include "sync/crew.h"

#include <errno.h>
#include <stdlib.h>

#include "base/option.h"
#include "core/boot.h"
#include "core/live_threads.h"
#include "core/preempt.h"
#include "core/run.h"
#include "core/thread.h"
#include "core/yield.h"
#include "os/lock.h"
#include "os/sys.h"

enum {
	STACK = 256 * 1024,  /* bytes of a server's stack, at least */
	CHUNK = 64,          /* servers in a mapping */
	LOOKS_A_CLOCK = 16,  /* rounds of looking between two readings of the clock */
};

struct kbi_server {
	struct kbi_task *task; /* constant once the server has run */
	struct kbi_post *post; /* constant */
	struct kbi_server *next;  /* the next parked server; under the post's lock */
	struct kbi_server *older; /* constant: the next of the post's servers */
	a32 go;                /* the server has been called; cleared by the server */
	uint32_t victim;       /* owner only: the post to look at next */
	a32 inside; /* the server runs a task; written by the server, read by servers of its VP */
	bool looks;            /* owner only: the server is counted in kbi_crew.looking */
};

struct kbi_crew kbi_crew;

/* ---- tasks that are in no lane: the lane was full, or a kernel thread made them -------------- */

struct shared {
	struct kbi_work w;
	struct shared *next;
};

static struct {
	a32 lock;
	/* under the lock; last: NULL as long as the list has never been used */
	struct shared *first, **last;
} list;

static void put_shared(struct kbi_task *self, struct shared *s)
{
	s->next = NULL;
	kbi_np_enter(self);
	kbi_lock_take(&list.lock);
	if (!list.first)
		list.last = &list.first;
	*list.last = s;
	list.last = &s->next;
	a_add_rlx(&kbi_crew.n_shared, 1);
	kbi_lock_leave(&list.lock);
	kbi_np_leave(self);
}

static struct shared *unlink_shared(const void *whose)
{
	struct shared **at = &list.first, *s;

	while (*at && whose && (*at)->w.whose != whose)
		at = &(*at)->next;
	s = *at;
	if (!s)
		return NULL;
	*at = s->next;
	if (list.last == &s->next)
		list.last = at;
	a_sub_rlx(&kbi_crew.n_shared, 1);
	return s;
}

bool kbi_crew_take_shared(const void *whose, struct kbi_work *w)
{
	struct kbi_task *self = kbi_self();
	struct shared *s;

	if (kbi_likely(!a_load_rlx(&kbi_crew.n_shared)))
		return false;
	kbi_np_enter(self);
	kbi_lock_take(&list.lock);
	s = unlink_shared(whose);
	kbi_lock_leave(&list.lock);
	kbi_np_leave(self);
	if (!s)
		return false;
	*w = s->w;
	free(s);
	return true;
}

/* ---- calling servers ------------------------------------------------------------------------- */

static struct kbi_post *post_at(unsigned i)
{
	/* acquire: pairs with the release in set_up_posts */
	return (struct kbi_post *)a_load_acq(&kbi_crew.posts) + i;
}

static struct kbi_server *unpark_server(struct kbi_post *p)
{
	struct kbi_task *self = kbi_self();
	struct kbi_server *s;

	kbi_np_enter(self);
	kbi_lock_take(&p->lock);
	s = p->parked;
	if (s)
		p->parked = s->next;
	kbi_lock_leave(&p->lock);
	kbi_np_leave(self);
	return s;
}

static void *run_crew_server(void *server);

/* Returns memory for a server, which is never freed; NULL: no memory. */
static struct kbi_server *make_server(struct kbi_post *p)
{
	static a32 lock;
	static struct kbi_server *fresh, *end;
	struct kbi_task *self = kbi_self();
	struct kbi_server *s = NULL;

	kbi_np_enter(self);
	kbi_lock_take(&lock);
	if (fresh == end) {
		fresh = kbi_sys_map(CHUNK * sizeof *fresh);
		end = fresh ? fresh + CHUNK : NULL;
	}
	if (fresh)
		s = fresh++;
	kbi_lock_leave(&lock);
	if (s) {
		s->post = p;
		kbi_lock_take(&p->lock);
		s->older = a_load_rlx(&p->all);
		a_store_rel(&p->all, s); /* release: pairs with the acquire in has_runner */
		kbi_lock_leave(&p->lock);
	}
	kbi_np_leave(self);
	return s;
}

/* Creates the thread of a new server, which has been called. Returns an errno value. */
static int create_server_thread(struct kbi_server *s, unsigned vp)
{
	struct kbi_thread_attr a = {
		.stack_size = kbi_options.stack_size > STACK ? kbi_options.stack_size : STACK,
		.bound = (int)vp, .detached = true, .own_tls = true, .name = KBI_PREEMPT_SERVER
	};
	struct kb_thread *t;
	int e = kbi_thread_create(&t, &a, run_crew_server, s);

	if (e == ENOTSUP) {
		a.own_tls = false;
		e = kbi_thread_create(&t, &a, run_crew_server, s);
	}
	return e;
}

/* Calls a server to stand by at p, which the caller has turned on. False: no server
 * can be had, and p is off. */
static bool send_server(struct kbi_post *p)
{
	struct kbi_server *s = unpark_server(p);
	bool parked = s;

	if (!s)
		s = make_server(p);
	if (s) {
		a_store_rlx(&p->stands_by, s);
		a_store_rlx(&p->called, 1);
		a_store_rel(&s->go, 1); /* release: pairs with the acquire in park_server */
		if (parked) {
			kbi_wait_wake(s->task);
			return true;
		}
		if (!create_server_thread(s, p->id))
			return true;
		a_store_rlx(&s->go, 0); /* the memory of the server is lost */
	}
	a_store_rlx(&p->called, 0);
	a_store_rlx(&p->stands_by, NULL);
	a_add_rlx(&kbi_crew.off, 1);
	a_store_rel(&p->on, 0); /* release: pairs with the acquire in turn_on */
	return false;
}

/* Turns a post on. True: the post was off, and the caller must call a server. acquire: pairs with
 * the release in send_server and leave_place, which turn a post off. */
static bool turn_on(struct kbi_post *p)
{
	uint32_t off = 0;

	if (!a_cas_acqrel(&p->on, &off, 1))
		return false;
	a_sub_rlx(&kbi_crew.off, 1);
	return true;
}

static bool is_idle_post(const struct kbi_post *p)
{
	return a_load_rlx(&kbi_vps[p->id]->s->idle) != KBI_IDLE_BUSY;
}

/* Calls a server of another post, preferably of an idle VP. */
static void call_other_server(const struct kbi_post *me)
{
	struct kbi_post *chosen = NULL;

	for (unsigned i = 1; i < kbi_vp_n; i++) {
		struct kbi_post *p = post_at((me->id + i) % kbi_vp_n);

		if (a_load_rlx(&p->on))
			continue;
		if (!chosen || is_idle_post(p))
			chosen = p;
		if (is_idle_post(p))
			break;
	}
	if (chosen && turn_on(chosen))
		send_server(chosen);
}

void kbi_crew_call(struct kbi_post *post)
{
	if (!a_load_rlx(&post->on) && turn_on(post))
		send_server(post);
	if (a_load_rlx(&kbi_crew.off) && !a_load_rlx(&kbi_crew.looking))
		call_other_server(post);
}

/* ---- looking for a task ---------------------------------------------------------------------- */

static bool is_work_anywhere(void)
{
	if (a_load_rlx(&kbi_crew.n_shared))
		return true;
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (!kbi_lane_is_empty(&post_at(i)->lane))
			return true;
	return false;
}

static bool take_own_work(struct kbi_server *s, struct kbi_task *self, struct kbi_record *r)
{
	bool got;

	kbi_np_enter(self);
	got = !kbi_lane_is_empty(&s->post->lane) && kbi_crew_take(s->post, self, r);
	kbi_np_leave(self);
	return got;
}

/* Tries to steal from each other post, the last victim first. */
static bool steal_from_posts(struct kbi_server *s, struct kbi_task *self, struct kbi_record *r)
{
	bool got = false;

	for (unsigned i = 0; i < kbi_vp_n && !got; i++) {
		struct kbi_post *p = post_at(s->victim);

		kbi_np_enter(self);
		got = p != s->post && !kbi_lane_is_empty(&p->lane) && kbi_lane_steal(&p->lane, r);
		kbi_np_leave(self);
		if (!got)
			s->victim = (s->victim + 1) % kbi_vp_n;
	}
	return got;
}

static bool find_work(struct kbi_server *s, struct kbi_task *self, struct kbi_work *w)
{
	struct kbi_record r = { 0 };

	if (!take_own_work(s, self, &r)) {
		if (kbi_crew_take_shared(NULL, w))
			return true;
		if (!steal_from_posts(s, self, &r))
			return false;
	}
	*w = kbi_crew_work(&r);
	return true;
}

static bool stands_by(const struct kbi_server *s)
{
	return a_load_rlx(&s->post->stands_by) == s;
}

/* Returns whether a thread is ready on the VP besides the server that stands by, which need not
 * run. In np brackets. */
static bool has_other_ready_thread(const struct kbi_vp *vp)
{
	const struct kbi_post *post = kbi_crew_post(vp);

	return kbi_vp_backlog(vp) > (post ? a_load_rlx(&post->called) : 0);
}

/* As has_other_ready_thread, after a look at all sources if that is due. */
static bool poll_other_ready_thread(struct kbi_task *self)
{
	bool others = false;

	kbi_np_enter(self);
	if (kbi_likely(self->vp != NULL)) {
		kbi_run_look_if_due(self->vp);
		others = has_other_ready_thread(self->vp);
	}
	kbi_np_leave(self);
	return others;
}

static void stop_looking(struct kbi_server *s)
{
	if (s->looks)
		a_sub_rlx(&kbi_crew.looking, 1);
	s->looks = false;
}

/* Returns how long a server without a task goes on looking, ns. */
static uint64_t crew_patience(void)
{
	return kbi_vp_n == 1 || a_load_rlx(&kbi_idle_stats.oversubscribed) ? 0 :
		(uint64_t)kbi_options.spin_us * 1000;
}

/* Looks for a task for a while, in the server that stands by and has found none. Stops while
 * threads wait for its VP: the server would be counted as looking, and not run. */
static bool look_for_work(struct kbi_server *s, struct kbi_task *self, struct kbi_work *w)
{
	uint64_t until = kbi_sys_now() + crew_patience();

	s->looks = true;
	a_add_rlx(&kbi_crew.looking, 1);
	for (unsigned n = 0; !find_work(s, self, w); n++) {
		if (poll_other_ready_thread(self) ||
				(n % LOOKS_A_CLOCK == 0 && kbi_sys_now() >= until))
			return false;
		kbi_cpu_relax();
	}
	return true;
}

/* ---- a server -------------------------------------------------------------------------------- */

/* Replaces the server that stood by and has found a task: calls another server, and
 * perhaps a third to help. */
static void give_place(struct kbi_server *s)
{
	stop_looking(s);
	send_server(s->post);
	if (a_load_rlx(&kbi_crew.off) && !a_load_rlx(&kbi_crew.looking) && is_work_anywhere())
		call_other_server(s->post);
}

/* Gives threads of self's VP a turn. */
KBI_SWITCHES static void give_turn(struct kbi_task *self)
{
	struct kbi_vp *vp = self->vp; /* perhaps the VP of a moment ago */
	struct kbi_post *post = vp ? kbi_crew_post(vp) : NULL;

	if (post)
		a_add_rlx(&post->yielding, 1);
	kbi_yield_now();
	if (post)
		a_sub_rlx(&post->yielding, 1);
}

KBI_SWITCHER void kbi_crew_have_turns(struct kbi_task *self)
{
	kbi_run_look(self->vp);
	if (!has_other_ready_thread(self->vp))
		return;
	kbi_np_leave(self);
	give_turn(self);
	kbi_np_enter(self);
}

KBI_SWITCHER static void serve_found_work(struct kbi_server *s, struct kbi_task *self)
{
	struct kbi_work w;

	/* this server may stand by since, or another server may have got its place */
	while (find_work(s, self, &w) || (stands_by(s) && look_for_work(s, self, &w))) {
		if (stands_by(s))
			give_place(s);
		a_store_rlx(&s->inside, 1);
		kbi_crew_run(&w, self);
		a_store_rlx(&s->inside, 0);
		if (poll_other_ready_thread(self))
			give_turn(self); /* they have waited for the task's end */
	}
}

/* Returns whether another thread that runs tasks is ready on this VP. Law 3. */
static bool has_runner(const struct kbi_server *s)
{
	if (a_load_rlx(&s->post->yielding))
		return true;
	/* acquire: pairs with the release in make_server */
	for (const struct kbi_server *o = a_load_acq(&s->post->all); o; o = o->older)
		if (a_load_rlx(&o->inside) && kbi_state_kind(a_load_rlx(&o->task->state)) == KBI_TASK_READY)
			return true;
	return false;
}

/* Leaves the place of the server that stands by empty. Law 1. */
static void leave_place(struct kbi_server *s)
{
	struct kbi_post *p = s->post;

	a_store_rlx(&p->stands_by, NULL);
	stop_looking(s);
	a_add_rlx(&kbi_crew.off, 1);
	a_store_rel(&p->on, 0); /* release: pairs with the acquire in turn_on */
	if (kbi_vp_n > 1 && a_load_rlx(&kbi_single_threaded.has_barrier))
		kbi_single_threaded_barrier(); /* pairs with the compiler barrier in
		                                * kbi_crew_is_wanted, after a put */
	else
		a_fence_sc(); /* sc: pairs with the fences in kbi_crew_is_wanted and kbi_crew_put_slow */
	if (is_work_anywhere())
		kbi_crew_call(p);
}

KBI_SWITCHER static void park_server(struct kbi_server *s, struct kbi_task *self)
{
	struct kbi_post *p = s->post;
	bool stood_by = stands_by(s);

	a_store_rlx(&s->go, 0);
	kbi_np_enter(self);
	kbi_lock_take(&p->lock);
	s->next = p->parked;
	p->parked = s;
	kbi_lock_leave(&p->lock);
	kbi_np_leave(self);
	if (stood_by)
		leave_place(s);
	/* acquire: pairs with the release in send_server */
	while (!a_load_acq(&s->go))
		kbi_wait_sleep(self);
}

/* Begins the turn of the server that stands by, or waits for a later
 * turn where law 3 demands it. */
KBI_SWITCHES static void begin_turn(struct kbi_server *s, struct kbi_task *self)
{
	a32 *called = &s->post->called;

	if (!stands_by(s))
		return;
	a_store_rlx(called, 0);
	while (has_runner(s) && poll_other_ready_thread(self)) {
		a_store_rlx(called, 1);
		kbi_yield_now();
		a_store_rlx(called, 0);
	}
}

static void *run_crew_server(void *server)
{
	struct kbi_server *s = server;
	struct kbi_task *self = kbi_self();

	s->task = self;
	s->victim = (s->post->id + 1) % kbi_vp_n;
	kbi_live_threads_serves(kbi_vps[s->post->id]);
	for (;;) {
		begin_turn(s, self);
		serve_found_work(s, self);
		park_server(s, self);
	}
	return NULL;
}

/* ---- putting in ------------------------------------------------------------------------------ */

static void set_up_posts(struct kbi_post *posts)
{
	for (unsigned i = 0; i < kbi_vp_n; i++)
		posts[i].id = i;
	a_store_rlx(&kbi_crew.off, kbi_vp_n);
	/* release: pairs with the acquire in kbi_crew_post and post_at */
	a_store_rel(&kbi_crew.posts, posts);
}

int kbi_crew_setup(void)
{
	static a32 lock;
	struct kbi_task *self;
	struct kbi_post *posts;
	int e = kbi_boot();

	if (e || a_load_acq(&kbi_crew.posts)) /* acquire: pairs with the release in set_up_posts */
		return e;
	self = kbi_self();
	kbi_np_enter(self);
	kbi_lock_take(&lock);
	if (!a_load_rlx(&kbi_crew.posts)) {
		posts = kbi_sys_map(kbi_vp_n * sizeof *posts);
		if (posts)
			set_up_posts(posts);
		else
			e = ENOMEM;
	}
	kbi_lock_leave(&lock);
	kbi_np_leave(self);
	return e;
}

/* Returns whether a server exists anywhere; creates a server if none does. */
static bool has_servers(struct kbi_post *post)
{
	static a32 yes;

	if (kbi_likely(a_load_rlx(&yes)))
		return true;
	if (turn_on(post) && !send_server(post))
		return false;
	a_store_rlx(&yes, 1);
	return true;
}

int kbi_crew_put_slow(const struct kbi_work *w)
{
	int e = kbi_crew_setup();
	struct kbi_task *self = kbi_self();
	struct kbi_post *post;
	struct shared *s;

	if (e)
		return e;
	post = post_at(self->vp ? self->vp->id : 0);
	if (!has_servers(post))
		return EAGAIN;
	if (kbi_crew_put_here(self, w->fn, w->arg, w->whose))
		return 0;
	s = malloc(sizeof *s);
	if (!s)
		return ENOMEM;
	s->w = *w;
	put_shared(self, s);
	a_fence_sc(); /* sc: pairs with the barrier in leave_place */
	kbi_crew_call(post);
	return 0;
}
