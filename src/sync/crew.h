/* sync/crew.h - the threads that run tasks, and the lists of tasks, for each virtual processor: its post.
 *
 * Servers are lightweight threads, bound to their VP. Of a post's servers at most a single server stands by: it is
 * ready in the VP's queue, or runs and looks for a task. The rest are inside tasks, where they may be suspended, or
 * parked. A server that has found a task calls another to stand by before it runs the task: so if the task suspends,
 * the VP's next ready thread goes on with the tasks. Nothing is done at the suspension itself, which need not know of
 * tasks. A post with nobody standing by is off; each new task looks whether there are such posts, and calls there, an
 * idle VP first.
 * Laws
 *  1. Before its server parks, a post is said to be off; then, behind a barrier, all lists are looked at once more.
 *     Whoever puts a task into a list looks behind that, and behind the same barrier, whether posts are off. Either sees
 *     the other.
 *  2. While a server runs and looks for tasks (`looking`) no other is called to do so: if it stops without a task it
 *     does 1, if it stops with a task it calls the next. It does not look while other threads wait for its VP, and
 *     a called server does not count before it runs: its VP may have got another thread first.
 *  3. The server that stands by takes no task while another that runs tasks on its VP is ready and has only had to give
 *     another a turn: else each such turn would begin a further task.
 *  4. A list's bottom is touched by threads on its VP only, inside np brackets.
 * Model of the list: base/lane.h. Callers: group, future. Calls thread, run, yield. */
#ifndef KBI_CREW_H
#define KBI_CREW_H

#include "base/lane.h"
#include "core/run.h"
#include "core/solo.h"
#include "sync/group.h"

/* A task. whose: a group, or an object of another kind (kbi_crew_tag) with tasks that end by themselves. */
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
	a32 on KBI_ALIGNED(KBI_CACHE_LINE); /* 1: a server stands by or has been called; all, by CAS; that server */
	a32 called;                         /* it is ready and has not run since */
	aptr stands_by;                     /* struct kbi_server *: written by the thread that turned it on, and by it */
	a32 yielding;                       /* threads that run tasks and give up a turn */
	a32 lock;
	struct kbi_server *parked;          /* under the lock */
	aptr all;                           /* struct kbi_server *; grows under the lock, read by the VP's servers */
	uint32_t id;                        /* constant: of the VP */
};

struct kbi_crew {
	a32 off KBI_ALIGNED(KBI_CACHE_LINE); /* posts that are off */
	a32 looking;                         /* servers that look for a task */
	a32 n_shared;                        /* tasks that are in no lane */
	aptr posts;                          /* struct kbi_post *, an array over VPs; NULL: not yet */
};
extern KBI_HIDDEN struct kbi_crew kbi_crew;

/* Once more before tasks: 0, ENOMEM, EAGAIN. The runtime runs. */
int kbi_crew_setup(void);
/* A task for the crew, where kbi_crew_put_here cannot: errors as kb_group_run. */
int kbi_crew_put_slow(const struct kbi_work *w);
/* Something was put in: calls servers. Outside np brackets. */
void kbi_crew_call(struct kbi_post *post);
/* A task that is in no lane, of that group or object; NULL: of any. Outside np brackets. */
bool kbi_crew_take_shared(const void *whose, struct kbi_work *w);
/* A look at everything is due on self's VP: ready threads have their turn. In np brackets, which are left
 * meanwhile; self may be on another VP then. */
KBI_SWITCHES void kbi_crew_have_turns(struct kbi_task *self);

static inline struct kbi_post *kbi_crew_post(const struct kbi_vp *vp)
{
	/* acquire: partner is the release in kbi_crew_setup */
	struct kbi_post *posts = a_load_acq(&kbi_crew.posts);

	return kbi_likely(posts != NULL) ? &posts[vp->id] : NULL;
}

/* After something was put in: has a server to be called? Law 1. */
static inline bool kbi_crew_is_wanted(const struct kbi_post *post)
{
	if (kbi_likely(a_load_rlx(&kbi_solo.has_barrier)))
		kbi_compiler_barrier(); /* partner: kbi_solo_barrier in park (crew.c) */
	else
		a_fence_sc(); /* partner: the fence there */
	if (kbi_unlikely(!a_load_rlx(&post->on)))
		return true;
	return kbi_unlikely(a_load_rlx(&kbi_crew.off)) && !a_load_rlx(&kbi_crew.looking);
}

/* Puts a task into the list of the VP that self runs on. False: there is none, or it is full. */
static inline bool kbi_crew_put_here(struct kbi_task *self, int (*fn)(void *), void *arg, void *whose)
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

/* In np brackets, on the post's VP. */
static inline bool kbi_crew_take(struct kbi_post *post, struct kbi_task *self, struct kbi_record *r)
{
	bool got;

	if (kbi_solo_enter(self)) {
		got = kbi_lane_take(&post->lane, r, true);
		kbi_solo_leave();
		return got;
	}
	return kbi_lane_take(&post->lane, r, false);
}

/* The newest task here, if it is of that group or object. Now and then ready threads have their turn before. */
KBI_SWITCHES static inline bool kbi_crew_take_newest(struct kbi_task *self, const void *whose, struct kbi_work *w)
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
