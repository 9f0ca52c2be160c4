/* sync/crew.h - the threads that run tasks, and the lists of tasks, for each
 * virtual processor: its post.
 *
 * Servers are lightweight threads, bound to their VP. At most one of a post's servers stands by: it
 * is ready in the VP's queue, or runs and looks for a task. All further servers are inside tasks,
 * where they may be suspended, or parked. A server that has found a task calls another server to
 * stand by before it runs the task: so if the task suspends, the VP's next ready thread goes on
 * with the tasks. Nothing is done at the suspension itself, which need not know of tasks. A post
 * where no server stands by is off; each new task checks for posts that are off, and calls a server
 * there, at an idle VP first.
 *
 * Laws
 *  1. Before its server parks, a post is marked off; then, after a barrier, the server looks at all
 *     lists once more. A thread that puts a task into a list checks afterwards, behind a barrier,
 *     too, for posts that are off. One side sees the other's step.
 *  2. While a server runs and looks for tasks (`looking`), no further server is called to look: if
 *     the server stops without a task it obeys law 1, if it stops with a task it calls the next
 *     server. A server does not look while threads wait for its VP, and a called server does not
 *     count before it runs: its VP may have got a different thread first.
 *  3. The server that stands by takes no task while a thread that runs tasks on its VP is ready and
 *     has only given up its turn: else each such turn would begin a further task.
 *  4. Only threads on its VP touch the bottom of a list, inside np brackets.
 * Callers: group, future, loop. Calls thread, run, yield. Model of the list: base/lane.h. */
#ifndef KBI_CREW_H
#define KBI_CREW_H

#include "base/lane.h"
#include "core/run.h"
#include "core/single_threaded.h"
#include "sync/group.h"

/* A task. whose: a group, or a tagged object of another kind (kbi_crew_tag), with
 * tasks that end by themselves. */
struct kbi_work {
	int (*fn)(void *);
	void *arg;
	void *whose;
};

static inline void *kbi_crew_tag(void *object)
{
	return (char *)object + 1;
}

KBI_SWITCHES static inline void kbi_crew_run(const struct kbi_work *w, struct kbi_task *self)
{
	if (kbi_unlikely((uintptr_t)w->whose & 1))
		w->fn(w->arg);
	else
		kbi_group_do(w->whose, self, w->fn, w->arg);
}

struct kbi_server;

struct kbi_post {
	struct kbi_lane lane;
	/* 1: a server stands by or has been called; set by any thread, by
	 * CAS; cleared by that server */
	a32 on KBI_ALIGNED(KBI_CACHE_LINE);
	a32 called;                         /* that server is ready and has not run since the call */
	/* struct kbi_server *: written by the thread that turned the post on, and by that server */
	aptr stands_by;
	a32 yielding;                       /* number of threads that run tasks and give up a turn */
	a32 lock;
	struct kbi_server *parked;          /* under the lock */
	aptr all; /* struct kbi_server *; grows under the lock, read by the VP's servers */
	uint32_t id;                        /* constant: number of the VP */
};

struct kbi_crew {
	a32 off KBI_ALIGNED(KBI_CACHE_LINE); /* number of posts that are off */
	a32 looking;                         /* number of servers that look for a task */
	a32 n_shared;                        /* number of tasks that are in no lane */
	aptr posts; /* struct kbi_post *, an array over VPs; NULL: not set up yet */
};
extern KBI_HIDDEN struct kbi_crew kbi_crew;

/* Sets up the posts and boots the runtime; needed once before tasks.
 * Returns 0, ENOMEM or EAGAIN. */
int kbi_crew_setup(void);
/* Gives a task to the crew where kbi_crew_put_here cannot. Errors as kb_group_run. */
int kbi_crew_put_slow(const struct kbi_work *w);
/* Calls servers after a task was put in. Outside np brackets. */
void kbi_crew_call(struct kbi_post *post);
/* Takes a task of that group or object (NULL: of any) that is in no lane. False: there is none.
 * Outside np brackets. */
bool kbi_crew_take_shared(const void *whose, struct kbi_work *w);
/* Looks at all sources of self's VP, which is due, and lets ready threads have a turn. Called
 * inside np brackets, which the function leaves meanwhile; self may be on another VP afterwards. */
KBI_SWITCHES void kbi_crew_have_turns(struct kbi_task *self);

static inline struct kbi_post *kbi_crew_post(const struct kbi_vp *vp)
{
	/* acquire: pairs with the release in set_up_posts (crew.c) */
	struct kbi_post *posts = a_load_acq(&kbi_crew.posts);

	return kbi_likely(posts != NULL) ? &posts[vp->id] : NULL;
}

/* Returns whether a server must be called, after a task was put in. Law 1. */
static inline bool kbi_crew_is_wanted(const struct kbi_post *post)
{
	if (kbi_likely(a_load_rlx(&kbi_single_threaded.has_barrier)))
		kbi_compiler_barrier(); /* pairs with kbi_single_threaded_barrier in leave_place (crew.c) */
	else
		a_fence_sc(); /* sc: pairs with the fence in leave_place */
	if (kbi_unlikely(!a_load_rlx(&post->on)))
		return true;
	return kbi_unlikely(a_load_rlx(&kbi_crew.off)) && !a_load_rlx(&kbi_crew.looking);
}

/* Puts a task into the list of the VP on which self runs. False: there
 * is no list, or it is full. */
static inline bool kbi_crew_put_here(struct kbi_task *self, int (*fn)(void *), void *arg,
	void *whose)
{
	struct kbi_post *post = NULL;
	bool wanted = false;

	kbi_np_enter(self);
	if (kbi_likely(self->vp != NULL))
		post = kbi_crew_post(self->vp);
	if (kbi_unlikely(!post || !kbi_lane_put(&post->lane, (void *)(uintptr_t)fn, arg, whose)))
		post = NULL;
	else
		wanted = kbi_crew_is_wanted(post);
	kbi_np_leave(self);
	if (kbi_unlikely(wanted))
		kbi_crew_call(post);
	return post != NULL;
}

static inline struct kbi_work kbi_crew_work(const struct kbi_record *r)
{
	return (struct kbi_work){ (int (*)(void *))(uintptr_t)r->word[0], r->word[1], r->word[2] };
}

/* Takes the newest task of the post. In np brackets, on the post's VP. */
static inline bool kbi_crew_take(struct kbi_post *post, struct kbi_task *self, struct kbi_record *r)
{
	bool got;

	if (kbi_single_threaded_enter(self)) {
		got = kbi_lane_take(&post->lane, r, true);
		kbi_single_threaded_leave();
		return got;
	}
	return kbi_lane_take(&post->lane, r, false);
}

/* Takes the newest task here, if it belongs to that group or object. Sometimes ready threads have
 * their turn before. */
KBI_SWITCHES static inline bool kbi_crew_take_newest(struct kbi_task *self, const void *whose,
	struct kbi_work *w)
{
	struct kbi_post *post = NULL;
	struct kbi_record r;
	bool got = false;

	kbi_np_enter(self);
	if (kbi_likely(self->vp != NULL)) {
		if (kbi_run_is_look_due(self->vp))
			kbi_crew_have_turns(self);
		if (kbi_likely(self->vp != NULL))
			post = kbi_crew_post(self->vp);
	}
	if (kbi_likely(post && kbi_lane_newest(&post->lane) == whose))
		got = kbi_crew_take(post, self, &r);
	kbi_np_leave(self);
	if (got)
		*w = kbi_crew_work(&r);
	return got;
}

#endif
