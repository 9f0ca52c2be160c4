/* posix/signal_priv.h - shared by the units signal, signal_pool, signal_sent, signal_post, signal_action, signal_send.
 *
 * Where a signal to a thread is on its way, always in exactly one place:
 *  - in the kernel, sent to the kernel thread that the thread runs on, with the thread's number in it. Its handler,
 *    the relay, finds out whether that thread is still there; if not, the signal goes on to the postman;
 *  - in the pool, with a bit in the thread's `pending`: the thread takes it when it leaves a wait.
 * A signal to the process is taken by a kernel thread that lets it through, as ever. That is a virtual processor
 * that runs a thread which does, or the postman, who lets through what any thread does and chooses one. */
#ifndef KBI_SIGNAL_PRIV_H
#define KBI_SIGNAL_PRIV_H

#include "posix/posix.h"

#include "core/preempt.h"
#include "core/solo.h"
#include "core/vp.h"
#include "os/everywhere.h"
#include "os/lock.h"
#include "os/signal_frame.h"
#include "os/sys.h"
#include "posix/kaction.h"

enum { KBI_SIGNALS = 64, KBI_LIBC_FIRST = 32, KBI_LIBC_LAST = 33, KBI_MASK_BYTES = 8 };

static inline uint64_t kbi_signal_bit(int sig)
{
	return (uint64_t)1 << (sig - 1);
}

static inline bool kbi_signal_ok(int sig)
{
	return sig > 0 && sig <= KBI_SIGNALS && sig != KBI_LIBC_FIRST && sig != KBI_LIBC_LAST;
}

/* A real-time signal: each comes, and signals of the same number come in the order of sending. */
static inline bool kbi_signal_queues(int sig)
{
	return sig > KBI_LIBC_LAST;
}

/* On the caller's kernel thread, the runtime's own, too: the mask before. */
static inline uint64_t kbi_signal_block_all(void)
{
	uint64_t all = ~kbi_everywhere_bit(), old = 0;

	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, KBI_MASK_BYTES);
	return old;
}

/* A lock that handlers take, too: no signal comes in between. The mask before, for leave. */
static inline uint64_t kbi_signal_enter(a32 *lock)
{
	uint64_t old = kbi_signal_block_all();

	kbi_lock_take(lock);
	return old;
}

static inline void kbi_signal_leave(a32 *lock, uint64_t old)
{
	kbi_lock_leave(lock);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, KBI_MASK_BYTES);
}

static inline int kbi_signal_tid(const struct kbi_vp *vp)
{
	return (int)a_load_rlx(&vp->tid);
}

/* The virtual processor whose kernel thread this is, or NULL. */
struct kbi_vp *kbi_signal_body_of(int tid);

uint64_t kbi_signal_from_set(const sigset_t *set);
void kbi_signal_to_set(sigset_t *set, uint64_t m);

static inline bool kbi_signal_is_memory(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

/* ---- masks: signal.c ---------------------------------------------------------------------------------- */

/* Never blocked in the kernel: what libc and the runtime keep for themselves. */
static inline uint64_t kbi_signal_never(void)
{
	return kbi_signal_bit(kbi_preempt_signal()) | kbi_signal_bit(KBI_LIBC_FIRST) | kbi_signal_bit(KBI_LIBC_LAST);
}
/* What a virtual processor without a thread blocks: all but faults, which would end the process anyway. */
extern const uint64_t kbi_signal_closed;
/* The mask of each virtual processor's kernel thread, as far as it is known. */
extern a64 kbi_signal_vp_mask[KBI_MAX_VPS];

static inline a64 *kbi_signal_mask(struct kbi_task *t)
{
	return &kbi_thread_of(t)->signals.mask;
}

/* The caller's mask is now this one. It takes effect at once. */
void kbi_signal_set_mask(struct kbi_task *self, uint64_t mask);
/* The caller's kernel thread lets nothing through until a thread brings another mask. */
void kbi_signal_close(struct kbi_vp *vp);
/* A handler of self was unwound, or is about to be: the kernel has its mask still. */
void kbi_signal_unwound(struct kbi_task *self);
/* Has self a signal in its list that it lets through? */
static inline bool kbi_signal_lets_in(struct kbi_task *self)
{
	/* acquire: partner is the release in kbi_signal_put */
	return a_load_acq(&kbi_thread_of(self)->signals.pending) & ~a_load_rlx(kbi_signal_mask(self));
}
/* At the end of a handler of the runtime's that may leave the thread there, with all signals blocked: its frame is that of
 * this signal from here on, as if the kernel had called the program's handler. May not return. */
void kbi_signal_handle_taken(siginfo_t *info, void *context);
/* A handler returns to this context on this virtual processor, with this mask. */
void kbi_signal_returns(struct kbi_vp *vp, void *context, uint64_t mask);
/* In a handler: the virtual processor that the caller's kernel thread is, if no thread runs there; NULL. self:
 * kbi_self_raw(). And it lets through what the last thread did: nothing any more, until one brings its mask. */
struct kbi_vp *kbi_signal_idle_vp(const struct kbi_task *self);
void kbi_signal_returns_idle(struct kbi_vp *vp, void *context);
/* A handler begins there, for which the kernel has blocked more: who runs there meanwhile, if it sleeps or is switched
 * away, is to bring its own mask. Those who send see the mask as it was, or it would take them longer. */
void kbi_signal_grows(const struct kbi_vp *vp);
/* The tick has come there, where the kernel's mask was this. */
void kbi_signal_interrupts(const struct kbi_vp *vp, uint64_t kernels);

/* What waits at the caller's kernel thread, and was sent to that one. */
uint64_t kbi_signal_own_pending(void);
/* Before main is a lightweight thread; and afterwards, to main, or (NULL) back to the kernel. */
void kbi_signal_take_early(void);
void kbi_signal_give_early(struct kb_thread *main);
/* The next signal of *left that waits there, taken from there. False: none. */
bool kbi_signal_take_own(uint64_t *left, siginfo_t *info);

/* In a handler of self's, which runs: has self's own change of its mask let the signal in? */
bool kbi_signal_is_let_in(struct kbi_task *self);

/* The virtual processor's kernel thread has self's mask, whatever the books say: a handler was left in the middle. */
void kbi_signal_open_again(struct kbi_task *self);
/* The kernel thread's mask, whatever the books say. */
void kbi_signal_kernel_mask(uint64_t mask);
/* What cannot be blocked. */
#define kbi_signal_kept \
	(kbi_signal_bit(KBI_LIBC_FIRST) | kbi_signal_bit(KBI_LIBC_LAST) | kbi_signal_bit(SIGKILL) | kbi_signal_bit(SIGSTOP))
/* The caller's mask is this one, without that. */
void kbi_signal_take_mask(struct kbi_task *self, uint64_t mask);

/* Alternate stacks, signal_stack.c. In the relay, which the kernel has called with these: fn goes on, on the stack of
 * self's where the kernel would have called a handler that wants an alternate one, or does not. */
void kbi_signal_go_on(bool on_alternate, siginfo_t *info, void *context, kbi_signal_frame_handler *fn);
/* The same in a handler of the runtime's own, settled, whose frame may be apart (core/preempt). */
void kbi_signal_go_on_from_apart(bool on_alternate, siginfo_t *info, void *context, kbi_signal_frame_handler *fn);
/* call(arg); where frames do not move, on the alternate stack s if that is wanted and is one. */
void kbi_signal_call(bool on_alternate, const stack_t *s, void (*call)(void *), void *arg);
/* Before a handler: its context says which alternate stack the thread has. And after it: the thread has what the context
 * says then, and the kernel thread its own. */
void kbi_signal_show_stack(void *context);
void kbi_signal_take_stack(struct kbi_task *self, void *context);
/* self is on another body than when the handler began. */
void kbi_signal_returns_on(struct kbi_task *self, void *context);
/* Tells whether the caller runs on its thread's alternate stack, as the kernel would answer. */
bool kbi_signal_on_alternate(void);
/* Bytes of the alternate stack that the caller is on below this stack pointer; 0: it is on none. */
size_t kbi_signal_room(uintptr_t sp);
/* After it: an affinity that another thread has set is obeyed (kbi_signal_pins). */
void kbi_signal_run_errands(const struct kbi_signal_errand *errand);
static inline void kbi_signal_pin(void)
{
	/* acquire: partner is the release in posix/deputy.c */
	const struct kbi_signal_errand *errand = a_load_acq(&kbi_signal_errand);

	if (kbi_unlikely(a_load_rlx(&kbi_posix_me.pin_due) || errand))
		kbi_signal_run_errands(errand);
}

/* The caller leaves the handler of a fault for good: if that was in the midst of a section of core/solo (a mutex where
 * none can be), nobody returns to it. On a virtual processor, so that it is no other's: who is alone runs no others. */
static inline void kbi_signal_leaves_section(void)
{
	const struct kbi_task *self = kbi_self_raw();

	if (kbi_unlikely(a_load_rlx(&kbi_solo.busy)) && self && self->vp && kbi_posix_me.in_handler)
		kbi_solo_leave();
}

/* ---- signals of timers on their way: signal_overrun.c ----------------------------------------------------- */

/* Before it is sent on through the kernel, there. True: one of this timer is on its way already, and counts this one. */
bool kbi_signal_is_overrun(const siginfo_t *info, int to);
/* It has come that way: its overruns are all known. */
void kbi_signal_has_arrived(siginfo_t *info);
void kbi_signal_add_overruns(siginfo_t *info, uint64_t more);
/* The program gets it now. */
void kbi_signal_tells_overruns(const siginfo_t *info);
/* What it was told of the timer's last signal; -1: nothing, or the timer was set anew. */
int kbi_signal_overruns(int id);
void kbi_signal_forget_overruns(int id);
void kbi_signal_overruns_after_fork(void);

/* ---- the pool ----------------------------------------------------------------------------------------- */

/* t takes no more. True: some are there already. */
bool kbi_signal_over(struct kb_thread *t);
/* Does it take no more? */
static inline bool kbi_signal_is_over(const struct kb_thread *t)
{
	return a_load_rlx(&t->signals.pending) & kbi_signal_bit(KBI_LIBC_FIRST);
}
/* In the child of fork: none is there. */
void kbi_signal_pool_after_fork(void);
/* For a thread, or EAGAIN, or ESRCH: it ends or has; sets the bit. shared: it was sent to the process. */
int kbi_signal_put(struct kbi_signal_to to, const siginfo_t *info, bool shared);
/* The oldest signal of t's in the set: its number or 0. Clears the bit with the last one. */
int kbi_signal_get(struct kb_thread *t, uint64_t set, siginfo_t *info);
/* The oldest of the set that was sent to the process and is in the list of a thread that does not take it now; 0. */
int kbi_signal_get_left(uint64_t set, siginfo_t *info);
/* Takes all of t's that were sent to the process and are in the set, one a call; all: the others, too, to drop. */
int kbi_signal_get_back(struct kb_thread *t, uint64_t set, bool all, siginfo_t *info);

/* ---- who takes what: signal_taker.c ---------------------------------------------------------------------- */

/* Of these, those that are given to threads: no faults, nothing of libc's or the runtime's own. */
uint64_t kbi_signal_deliverable(uint64_t set);
/* May a signal be given to it? And the ones that it lets through or waits for. */
bool kbi_signal_is_there(const struct kb_thread *t);
uint64_t kbi_signal_accepts(const struct kb_thread *t);
/* The same, of those for the program: one after the other where they are waited for. Given all at once, those that it does
 * not come to take would have to go back, behind others. */
uint64_t kbi_signal_takes(const struct kb_thread *t);
bool kbi_signal_anybody_takes(uint64_t bit);
/* t is in a handler and blocks these, as far as they are real-time signals, until that returns; and: its present mask it
 * blocks for longer. The handler's end, too. */
void kbi_signal_blocks_for_now(const struct kb_thread *t, uint64_t set);
void kbi_signal_blocks_for_good(const struct kb_thread *t);
uint64_t kbi_signal_blocked_for_now(const struct kb_thread *t);
/* A thread that blocks a real-time signal for the time of a handler, main first; NULL. */
struct kb_thread *kbi_signal_taker_soon(int sig);
/* Of these, what no other thread than t lets through or waits for; those that leave do not count. */
uint64_t kbi_signal_only_for(const struct kb_thread *t, uint64_t set);
/* The rule, for a signal to the process: main; if it does not take it, the thread that is near: it has the signal on its
 * kernel thread, or sends it, or NULL; then one in sigwait for it, then any. NULL: nobody takes it. */
struct kb_thread *kbi_signal_taker(int sig, struct kb_thread *near);
/* One that runs at this moment and takes it; NULL. */
struct kb_thread *kbi_signal_computing(int sig);
bool kbi_signal_is_for(struct kb_thread *t, int sig);
/* Main blocks it for the time of a handler only, which most often is over soon; and: this time it is not. */
bool kbi_signal_main_is_soon(int sig);
void kbi_signal_main_is_slow(void);
/* The holder of the signal may wait: it is for t, and not for main in a moment. */
bool kbi_signal_is_for_now(struct kb_thread *t, int sig);
/* Who main is, once. */
void kbi_signal_main_is(struct kb_thread *t);

/* ---- the postman -------------------------------------------------------------------------------------- */

/* Puts the address into a signal on its way to a kernel thread. */
void kbi_signal_pack(siginfo_t *info, struct kbi_signal_to to);
/* LATE: the thread that it was for has ended. */
enum kbi_signal_address { KBI_SIGNAL_PLAIN, KBI_SIGNAL_PACKED, KBI_SIGNAL_LATE };
enum kbi_signal_address kbi_signal_unpack(siginfo_t *info, struct kbi_signal_to *to);
bool kbi_signal_is_packed(const siginfo_t *info);
/* The address hides nothing of it. */
bool kbi_signal_is_plain(const siginfo_t *info);
#define KBI_SIGNAL_TO_PROCESS ((struct kbi_signal_to){ NULL, 0 })
/* To the kernel thread `on`, where t is, with whom's address: 0 or an errno value. EBUSY: a signal of its number is on its
 * way there, and the kernel would drop this. */
int kbi_signal_send_to(int on, const struct kb_thread *t, const siginfo_t *info, struct kbi_signal_to whom);
/* In the handler of a signal that was sent so. */
void kbi_signal_has_come(int sig);
/* On b, the caller's kernel thread, whose mask has changed: what was sent to it and came too late is the postman's. A
 * handler may have come in between and moved the caller; then its kernel thread has been looked after, or is so now. */
void kbi_signal_look_after_slow(void);
static inline void kbi_signal_look_after(const struct kbi_body *b)
{
	a_fence_sc(); /* partner: the fence in kbi_signal_send_to; the mask has been stored */
	if (kbi_unlikely(b && a_load_rlx(&b->posted)))
		kbi_signal_look_after_slow();
}
bool kbi_signal_has_post(void);
/* Starts him; not in handlers. */
void kbi_signal_need_post(void);
/* Some thread lets these through, or waits for them. */
void kbi_signal_opened(uint64_t set);
/* Gives it to him, from a handler or anywhere. */
void kbi_signal_forward(const siginfo_t *info, struct kbi_signal_to to);
/* To the caller's kernel thread, which blocks it still. */
void kbi_signal_send_here(siginfo_t *info, struct kbi_signal_to to);
/* t lets less through than it did, or waits for less: what came for the process and it does not take is for others. */
void kbi_signal_give_back(struct kb_thread *t);
/* To a thread, from anywhere but handlers: 0 or EAGAIN. shared: as above. */
int kbi_signal_send(struct kbi_signal_to to, const siginfo_t *info, bool shared);
/* To a thread that takes it, without the postman; even_soon: or, a real-time signal, will when a handler has returned.
 * False: there is none. */
bool kbi_signal_give(const siginfo_t *info, bool even_soon);
/* At the end of a handler of self: a signal that was put into the pool meanwhile, and is let through again, comes when it
 * has returned, and interrupts the code that it returns to. */
void kbi_signal_let_in(struct kbi_task *self);
/* To the caller itself, which lets it through; and the same, inside brackets. */
int kbi_signal_raise(const siginfo_t *info);
int kbi_signal_raise_inside(struct kbi_task *self, const siginfo_t *info);
bool kbi_signal_is_postman(int tid);
/* He does not wait for signals at this moment. And the ones of the set that he takes when they come. */
bool kbi_signal_post_is_at_work(void);
uint64_t kbi_signal_post_takes(uint64_t set);
/* Before self sends one that queues to the program: what nobody lets through is taken neither by him nor by a virtual
 * processor that no thread has closed yet, for it would come back behind those that were sent meanwhile. */
void kbi_signal_close_all(const struct kbi_task *self, int sig);
/* Waits until he has given away what he had, and what waited for him. Not in handlers. */
void kbi_signal_ask_post(void);
/* The same before t executes; and where virtual processors are processes t has in its list what nobody lets through. */
void kbi_signal_post_empty(struct kb_thread *t);
/* Where virtual processors are processes: for the program, as who sends it wants; false: there is no postman yet. */
bool kbi_signal_post_program(const siginfo_t *info);
/* The same: signals to the program that wait because nobody lets them through. 0 where bodies are kernel threads. */
uint64_t kbi_signal_at_post(void);
/* The mask that a file of /proc has in a line that begins so; 0: not told. */
uint64_t kbi_signal_listed(const char *path, const char *line);

/* ---- threads that keep a kernel thread of their own: signal_bound.c ------------------------------------- */

/* In what a thread waits for, the bit of another signal that is libc's own: it is such a thread. */
#define KBI_SIGNAL_BOUND kbi_signal_bit(KBI_LIBC_FIRST)
static inline bool kbi_signal_is_bound(const struct kb_thread *t)
{
	return a_load_rlx(&t->signals.wanted) & KBI_SIGNAL_BOUND;
}
/* It has some in its list, blocked ones, too, that are the kernel thread's. */
static inline bool kbi_signal_is_to_push(const struct kb_thread *t)
{
	return kbi_unlikely(kbi_signal_is_bound(t)) && a_load_rlx(&t->signals.pending);
}
/* The caller, if it is such a thread; NULL. */
static inline struct kbi_task *kbi_signal_bound_self(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self && !self->vp && kbi_signal_is_bound(kbi_thread_of(self)) && !kbi_posix_forked ? self : NULL;
}
/* The kernel has that mask for self. */
void kbi_signal_note_kernel_mask(struct kbi_task *self, uint64_t mask);
/* The signals in self's list wait at its kernel thread from here on, or have come. */
void kbi_signal_push(struct kbi_task *self);
/* sigtimedwait and sigsuspend of self's. */
int kbi_signal_bound_wait(struct kbi_task *self, const sigset_t *set, siginfo_t *info, const struct timespec *timeout);
int kbi_signal_bound_suspend(struct kbi_task *self, const sigset_t *set);
/* self ends: the signals that wait there are dropped. */
void kbi_signal_bound_ends(struct kbi_task *self);

/* ---- what is in somebody's hands: signal_settle.c ------------------------------------------------------ */

/* In what a thread waits for, the bit of a signal that is libc's own: it is about to let less through. */
#define KBI_SIGNAL_LEAVES kbi_signal_bit(KBI_LIBC_LAST)
static inline bool kbi_signal_is_last(const struct kb_thread *t)
{
	return a_load_rlx(&t->signals.wanted) & KBI_SIGNAL_LEAVES;
}
/* These have been sent to the program, nobody knows to whom; also in handlers. */
void kbi_signal_note_sent(uint64_t set);
/* The caller is about to let these through. The real-time signals among them that wait for the process come to its list,
 * all and in the kernel's order, before the postman, or the kernel by the caller's mask, can each take some. */
void kbi_signal_take_queued(struct kbi_task *self, uint64_t set);
/* None of these that were sent to the program from inside, before this, is in the postman's hands. False: none was. */
bool kbi_signal_settle(uint64_t set);
/* The same of one number: what was sent to the program has come, or is in a thread's list. False: some of it may wait in
 * the kernel, or come from there. Not in handlers. */
bool kbi_signal_is_settled(int sig);
/* self is about to end, or to block these: what nobody else would take is handled now. Then, unless it ends: */
void kbi_signal_leaves(struct kbi_task *self, uint64_t set);
void kbi_signal_left(struct kbi_task *self);
void kbi_signal_await_own(struct kbi_task *self, int sig, uint32_t before);

/* ---- actions ------------------------------------------------------------------------------------------- */

/* Nobody would notice it: ignored, or by default. */
bool kbi_signal_ignored(int sig);
/* Has the program a handler of it, so that the kernel calls our relay? */
bool kbi_signal_has_handler(int sig);
/* Has the program a handler of any signal? */
bool kbi_signal_any_handler(void);
/* The handlers that libc has from before the runtime get our relay. */
void kbi_signal_adopt_handlers(void);

#endif
