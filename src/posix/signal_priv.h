/* posix/signal_priv.h - shared by the signal_* units and by sigwait, cputimer, deputy, fork and
 * other units that send or wait for signals.
 *
 * A signal to a thread that is on its way is always in exactly one place:
 *  - in the kernel, sent to the kernel thread on which the thread runs, with the thread's number in
 *    it. The handler of that signal, the relay (signal_action), finds out whether the thread is
 *    still there; if not, the relay passes the signal to the signal dispatcher;
 *  - in the pool, with a bit in the thread's `pending`: the thread takes the signal when it leaves
 *    a wait.
 * A signal to the process is taken by a kernel thread that lets it through, as in any program. That
 * is a VP that runs a thread with a suitable mask, or the signal dispatcher, which lets through
 * every signal that any thread lets through and chooses a thread.
 * All places of a signal, and who has it there: doc/states.md. Model: model/signal.pml. */
#ifndef KBI_SIGNAL_PRIV_H
#define KBI_SIGNAL_PRIV_H

#include "posix/posix.h"

#include "core/preempt.h"
#include "core/single_threaded.h"
#include "core/vp.h"
#include "libc/broadcast.h"
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

/* Tests for a real-time signal: each instance is delivered, and instances of a number come in the
 * order of sending. */
static inline bool kbi_signal_queues(int sig)
{
	return sig > KBI_LIBC_LAST;
}

/* Blocks all signals on the caller's kernel thread, the runtime's own signals included. Returns the
 * mask before. */
static inline uint64_t kbi_signal_block_all(void)
{
	uint64_t all = ~kbi_broadcast_bit(), old = 0;

	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, KBI_MASK_BYTES);
	return old;
}

/* Takes a lock that handlers take, too: signals are blocked while it is held. Returns the mask
 * before, for kbi_signal_leave. */
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

/* Returns the VP whose kernel thread is tid, or NULL. */
struct kbi_vp *kbi_signal_worker_of(int tid);

uint64_t kbi_signal_from_set(const sigset_t *set);
void kbi_signal_to_set(sigset_t *set, uint64_t m);

static inline bool kbi_signal_is_memory(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

/* ---- masks: signal.c ------------------------------------------------------------------------- */

/* Returns the signals that are never blocked in the kernel: libc's and the runtime's own. */
static inline uint64_t kbi_signal_never(void)
{
	return kbi_signal_bit(kbi_preempt_signal()) | kbi_signal_bit(KBI_LIBC_FIRST) |
		kbi_signal_bit(KBI_LIBC_LAST);
}
/* Signals that a VP without a thread blocks: all but faults, which would end the process anyway. */
extern const uint64_t kbi_signal_closed;
/* The mask of each VP's kernel thread, as far as it is known. Written on that kernel thread; read
 * by any. */
extern a64 kbi_signal_vp_mask[KBI_MAX_VPS];

static inline a64 *kbi_signal_mask(struct kbi_task *t)
{
	return &kbi_thread_of(t)->signals.mask;
}

/* Changes the caller's mask; takes effect at once. */
void kbi_signal_set_mask(struct kbi_task *self, uint64_t mask);
/* Closes the caller's kernel thread: it lets no signal through until a thread brings another
 * mask. */
void kbi_signal_close(struct kbi_vp *vp);
/* Tells the kernel self's mask: a handler of self was unwound, or is about to be, and the kernel
 * still has its mask. */
void kbi_signal_unwound(struct kbi_task *self);
/* Tests whether self has a signal in its list that it lets through. */
static inline bool kbi_signal_lets_in(struct kbi_task *self)
{
	/* acquire: partner is the release in kbi_signal_put */
	return a_load_acq(&kbi_thread_of(self)->signals.pending) & ~a_load_rlx(kbi_signal_mask(self));
}
/* Handles the signal at the end of a runtime's handler that may leave the thread there, with all
 * signals blocked: from here on the frame is this signal's frame, as if the kernel had called the
 * program's handler. May not return. */
void kbi_signal_handle_taken(siginfo_t *info, void *context);
/* Makes a handler return to this context on vp with this mask. */
void kbi_signal_returns(struct kbi_vp *vp, void *context, uint64_t mask);
/* For handlers. kbi_signal_idle_vp returns the VP of the caller's kernel thread if no thread runs
 * there, else NULL; self: kbi_self_raw(). kbi_signal_returns_idle closes the VP, which still has
 * the mask of its last thread: it lets nothing through until a thread brings its mask. */
struct kbi_vp *kbi_signal_idle_vp(const struct kbi_task *self);
void kbi_signal_returns_idle(struct kbi_vp *vp, void *context);
/* Notes that a handler begins on vp, for which the kernel blocks more signals: if the handler's
 * thread sleeps or is switched away, the next thread has to bring its own mask. Senders still see
 * the mask as it was, or delivery would take longer. */
void kbi_signal_grows(const struct kbi_vp *vp);
/* Notes that the tick has come to vp while the kernel's mask was `kernels`. */
void kbi_signal_interrupts(const struct kbi_vp *vp, uint64_t kernels);

/* Returns the signals that are pending for the caller's kernel thread itself. */
uint64_t kbi_signal_own_pending(void);
/* Take the signals that are pending before main is a lightweight thread; and give them to main
 * afterwards, or (NULL) back to the kernel. */
void kbi_signal_take_early(void);
void kbi_signal_give_early(struct kb_thread *main);
/* Takes the next signal of *left that is pending for the caller's kernel thread. False: none. */
bool kbi_signal_take_own(uint64_t *left, siginfo_t *info);

/* For a handler of self, which runs: tests whether self's own change of its mask has let the signal
 * in. */
bool kbi_signal_is_let_in(struct kbi_task *self);

/* Gives the VP's kernel thread self's mask regardless of kbi_signal_vp_mask: a handler was left in
 * the middle. */
void kbi_signal_open_again(struct kbi_task *self);
/* Sets the kernel thread's mask without regard to kbi_signal_vp_mask. */
void kbi_signal_kernel_mask(uint64_t mask);
/* Signals that cannot be blocked. */
#define kbi_signal_kept \
	(kbi_signal_bit(KBI_LIBC_FIRST) | kbi_signal_bit(KBI_LIBC_LAST) | kbi_signal_bit(SIGKILL) | \
		kbi_signal_bit(SIGSTOP))
/* Sets the caller's mask to `mask` without these. */
void kbi_signal_take_mask(struct kbi_task *self, uint64_t mask);

/* Alternate stacks, signal_stack.c. Called in the relay with the kernel's arguments: fn goes on, on
 * the stack of self where the kernel would have called a handler that wants an alternate stack, or
 * does not. */
void kbi_signal_go_on(bool on_alternate, siginfo_t *info, void *context,
	kbi_signal_frame_handler *fn);
/* Does this for a handler of the runtime, settled, whose frame may be on another stack
 * (core/preempt). */
void kbi_signal_go_on_from_apart(bool on_alternate, siginfo_t *info, void *context,
	kbi_signal_frame_handler *fn);
/* Calls call(arg); where frames do not move, on the alternate stack s if that is wanted and
 * exists. */
void kbi_signal_call(bool on_alternate, const stack_t *s, void (*call)(void *), void *arg);
/* Before a handler: writes the thread's alternate stack into its context. After it: the thread has
 * the alternate stack that the context then names, and the kernel thread gets its own again. */
void kbi_signal_show_stack(void *context);
void kbi_signal_take_stack(struct kbi_task *self, void *context);
/* Adjusts the context: self is on another worker than when the handler began. */
void kbi_signal_returns_on(struct kbi_task *self, void *context);
/* Tests whether the caller runs on its thread's alternate stack, as the kernel would answer. */
bool kbi_signal_on_alternate(void);
/* Returns the bytes of the caller's alternate stack below stack pointer sp; 0: it is not on an
 * alternate stack. */
size_t kbi_signal_room(uintptr_t sp);
/* Does the errands. Then an affinity that another thread has set is obeyed (kbi_signal_pins). */
void kbi_signal_run_errands(const struct kbi_signal_errand *errand);
static inline void kbi_signal_pin(void)
{
	/* acquire: partner is the release in posix/deputy.c */
	const struct kbi_signal_errand *errand = a_load_acq(&kbi_signal_errand);

	if (kbi_unlikely(a_load_rlx(&kbi_posix_me.pin_due) || errand))
		kbi_signal_run_errands(errand);
}

/* Leaves the section of core/single_threaded that a fault interrupted (a mutex at an invalid
 * address): the caller leaves the fault's handler for good, so no code returns to the section. Only
 * on a VP, so that the section is the caller's own: a thread that is alone runs no other thread's
 * section. */
static inline void kbi_signal_leaves_section(void)
{
	const struct kbi_task *self = kbi_self_raw();

	if (kbi_unlikely(a_load_rlx(&kbi_single_threaded.busy)) && self && self->vp &&
		kbi_posix_me.in_handler) kbi_single_threaded_leave();
}

/* ---- signals of timers on their way: signal_overrun.c ---------------------------------------- */

/* Called before the signal is sent on through the kernel, to kernel thread `to`. True: a signal of
 * this timer is already on its way, and counts this one as an overrun. */
bool kbi_signal_is_overrun(const siginfo_t *info, int to);
/* Called when the signal has come that way: its overruns are complete. */
void kbi_signal_has_arrived(siginfo_t *info);
void kbi_signal_add_overruns(siginfo_t *info, uint64_t more);
/* Records that the program gets the signal now. */
void kbi_signal_tells_overruns(const siginfo_t *info);
/* Returns the overruns that the program was told with the timer's last signal; -1: none, or the
 * timer was set anew. */
int kbi_signal_overruns(int id);
void kbi_signal_forget_overruns(int id);
void kbi_signal_overruns_after_fork(void);

/* ---- the pool -------------------------------------------------------------------------------- */

/* Closes t's list: t takes no more signals. True: some are there already. */
bool kbi_signal_over(struct kb_thread *t);
/* Tests whether t's list is closed. */
static inline bool kbi_signal_is_over(const struct kb_thread *t)
{
	return a_load_rlx(&t->signals.pending) & kbi_signal_bit(KBI_LIBC_FIRST);
}
/* Empties the pool in the child of fork. */
void kbi_signal_pool_after_fork(void);
/* Puts a signal for a thread into the pool and sets its bit. Returns 0, EAGAIN, or ESRCH: the
 * thread ends or has ended. shared: the signal was sent to the process. */
int kbi_signal_put(struct kbi_signal_to to, const siginfo_t *info, bool shared);
/* Takes the oldest signal of t in the set: returns its number, or 0. Clears the bit with the last
 * one. */
int kbi_signal_get(struct kb_thread *t, uint64_t set, siginfo_t *info);
/* Takes the oldest signal of the set that was sent to the process and is in the list of a thread
 * that does not take it now. Returns its number, or 0. */
int kbi_signal_get_left(uint64_t set, siginfo_t *info);
/* Takes a signal of t in the set that was sent to the process, one in each call; 0: none is left.
 * all: drops the rest. */
int kbi_signal_get_back(struct kb_thread *t, uint64_t set, bool all, siginfo_t *info);

/* ---- which thread takes a signal: signal_taker.c --------------------------------------------- */

/* Returns those signals of the set that are given to threads: no faults, no signals of libc or of
 * the runtime. */
uint64_t kbi_signal_deliverable(uint64_t set);
/* Tests whether a signal may be given to t. And: returns the signals that t lets through or waits
 * for. */
bool kbi_signal_is_there(const struct kb_thread *t);
uint64_t kbi_signal_accepts(const struct kb_thread *t);
/* Returns the same for signals to the program. A thread that waits for several signals is given one
 * after another. If all were given at once, those that t does not come to take would have to go
 * back, behind later ones. */
uint64_t kbi_signal_takes(const struct kb_thread *t);
bool kbi_signal_anybody_takes(uint64_t bit);
/* Note that t is in a handler and blocks the real-time signals of `set` until the handler returns;
 * and that t blocks its present mask for longer, which the handler's end also notes. */
void kbi_signal_blocks_for_now(const struct kb_thread *t, uint64_t set);
void kbi_signal_blocks_for_good(const struct kb_thread *t);
uint64_t kbi_signal_blocked_for_now(const struct kb_thread *t);
/* Returns a thread that blocks a real-time signal for the time of a handler, main first; or
 * NULL. */
struct kb_thread *kbi_signal_taker_soon(int sig);
/* Returns those signals of the set that only t lets through or waits for. Threads that are leaving
 * do not count. */
uint64_t kbi_signal_only_for(const struct kb_thread *t, uint64_t set);
/* The rule for a signal to the process: main; if main does not take it, the thread `near`, which
 * has the signal on its kernel thread, or sends it (or NULL); then a thread in sigwait for it, then
 * any thread. NULL: no thread takes it. */
struct kb_thread *kbi_signal_taker(int sig, struct kb_thread *near);
/* Returns a thread that runs at this moment and takes the signal, or NULL. */
struct kb_thread *kbi_signal_computing(int sig);
bool kbi_signal_is_for(struct kb_thread *t, int sig);
/* Tests whether main blocks the signal only for the time of a handler, which most often is over
 * soon. And: notes that this handler takes longer. */
bool kbi_signal_main_is_soon(int sig);
void kbi_signal_main_is_slow(void);
/* Tests whether the holder of the signal may wait for t: the signal is for t, and not for main in a
 * moment. */
bool kbi_signal_is_for_now(struct kb_thread *t, int sig);
/* Tells which thread main is, once. */
void kbi_signal_main_is(struct kb_thread *t);

/* ---- the signal dispatcher ------------------------------------------------------------------- */

/* Puts the address into a signal on its way to a kernel thread. */
void kbi_signal_pack(siginfo_t *info, struct kbi_signal_to to);
/* LATE: the thread to which it was addressed has ended. */
enum kbi_signal_address { KBI_SIGNAL_PLAIN, KBI_SIGNAL_PACKED, KBI_SIGNAL_LATE };
enum kbi_signal_address kbi_signal_unpack(siginfo_t *info, struct kbi_signal_to *to);
bool kbi_signal_is_packed(const siginfo_t *info);
/* Tests that the address would hide no field of the signal. */
bool kbi_signal_is_plain(const siginfo_t *info);
#define KBI_SIGNAL_TO_PROCESS ((struct kbi_signal_to){ NULL, 0 })
/* Sends the signal to kernel thread `on`, where t is, with the address of `whom`. Returns 0 or an
 * errno value. EBUSY: a signal of its number is on its way there, and the kernel would drop this
 * one. */
int kbi_signal_send_to(int on, const struct kb_thread *t, const siginfo_t *info,
	struct kbi_signal_to whom);
/* Called in the handler of a signal that was sent in this way. */
void kbi_signal_has_come(int sig);
/* Called on b, the caller's kernel thread, after its mask has changed: a signal that was sent to it
 * and came too late goes to the signal dispatcher. If a handler has run in between and moved the
 * caller to another kernel thread, the old one has been looked after, or is so now. */
void kbi_signal_look_after_slow(void);
static inline void kbi_signal_look_after(const struct kbi_worker *b)
{
	a_fence_sc(); /* partner: the fence in kbi_signal_send_to; the mask has been stored before */
	if (kbi_unlikely(b && a_load_rlx(&b->posted)))
		kbi_signal_look_after_slow();
}
bool kbi_signal_has_dispatcher(void);
/* Starts the signal dispatcher; not in handlers. */
void kbi_signal_need_dispatcher(void);
/* Notes that some thread now lets these through, or waits for them. */
void kbi_signal_opened(uint64_t set);
/* Passes the signal to the dispatcher, from a handler or any other place. */
void kbi_signal_forward(const siginfo_t *info, struct kbi_signal_to to);
/* Sends it to the caller's kernel thread, which still blocks it. */
void kbi_signal_send_here(siginfo_t *info, struct kbi_signal_to to);
/* Called when t lets less through, or waits for less, than before: signals to the process in t's
 * list that t does not take any more go to other threads. */
void kbi_signal_give_back(struct kb_thread *t);
/* Sends a signal to a thread, from any place but handlers. Returns 0 or EAGAIN. shared: it was sent
 * to the process. */
int kbi_signal_send(struct kbi_signal_to to, const siginfo_t *info, bool shared);
/* Gives a signal to a thread that takes it, without the dispatcher; even_soon: or a real-time
 * signal to a thread that will take it when a handler has returned. False: there is no thread. */
bool kbi_signal_give(const siginfo_t *info, bool even_soon);
/* Called at the end of a handler of self: a signal that was put into the pool meanwhile, and is let
 * through again, comes when the handler has returned, and interrupts the code that it returns
 * to. */
void kbi_signal_let_in(struct kbi_task *self);
/* Send a signal to the caller itself, which lets it through; _inside: within brackets
 * (kbi_np_enter). */
int kbi_signal_raise(const siginfo_t *info);
int kbi_signal_raise_inside(struct kbi_task *self, const siginfo_t *info);
bool kbi_signal_is_dispatcher(int tid);
/* Tests whether the dispatcher is not waiting for signals at this moment. And: returns the signals
 * of the set that the dispatcher takes when they come. */
bool kbi_signal_dispatcher_is_at_work(void);
uint64_t kbi_signal_dispatcher_takes(uint64_t set);
/* Called before self sends a signal that queues to the program. A signal that no thread lets
 * through must be taken neither by the dispatcher nor by a VP that no thread has closed yet: it
 * would come back behind later ones. */
void kbi_signal_close_all(const struct kbi_task *self, int sig);
/* Waits until the dispatcher has given away all signals that it had, and all that waited for it.
 * Not in handlers. */
void kbi_signal_drain_dispatcher(void);
/* Does this before t executes a program; where VPs are processes, t's list then contains what no
 * thread lets through. */
void kbi_signal_dispatcher_empty(struct kb_thread *t);
/* Where VPs are processes: sends a signal for the program to the dispatcher. False: there is no
 * dispatcher yet. */
bool kbi_signal_dispatcher_program(const siginfo_t *info);
/* Where VPs are processes: returns the signals to the program that wait because no thread lets them
 * through. 0 where workers are kernel threads. */
uint64_t kbi_signal_at_dispatcher(void);
/* Returns the mask in that line of a file of /proc; 0: not found. */
uint64_t kbi_signal_listed(const char *path, const char *line);

/* ---- threads that keep a kernel thread of their own: signal_bound.c -------------------------- */

/* A bit in the signals that a thread waits for, of a signal that is libc's own: the thread is
 * bound, that is it keeps a kernel thread of its own. */
#define KBI_SIGNAL_BOUND kbi_signal_bit(KBI_LIBC_FIRST)
static inline bool kbi_signal_is_bound(const struct kb_thread *t)
{
	return a_load_rlx(&t->signals.wanted) & KBI_SIGNAL_BOUND;
}
/* Tests whether a bound thread has signals in its list that are to go to its kernel thread, also
 * blocked ones. */
static inline bool kbi_signal_is_to_push(const struct kb_thread *t)
{
	return kbi_unlikely(kbi_signal_is_bound(t)) && a_load_rlx(&t->signals.pending);
}
/* Returns the caller if it is a bound thread, or NULL. */
static inline struct kbi_task *kbi_signal_bound_self(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self && !self->vp && kbi_signal_is_bound(kbi_thread_of(self)) && !kbi_posix_forked ?
		self : NULL;
}
/* Records that the kernel has that mask for self. */
void kbi_signal_note_kernel_mask(struct kbi_task *self, uint64_t mask);
/* Sends the signals in self's list to its kernel thread, where they wait or come at once. */
void kbi_signal_push(struct kbi_task *self);
/* sigtimedwait and sigsuspend of a bound thread. */
int kbi_signal_bound_wait(struct kbi_task *self, const sigset_t *set, siginfo_t *info,
	const struct timespec *timeout);
int kbi_signal_bound_suspend(struct kbi_task *self, const sigset_t *set);
/* Drops the signals that wait at the kernel thread of self, which ends. */
void kbi_signal_bound_ends(struct kbi_task *self);

/* ---- signals in flight: signal_settle.c ------------------------------------------------------ */

/* A bit in the signals that a thread waits for, of a signal that is libc's own: the thread is about
 * to let fewer signals through. */
#define KBI_SIGNAL_LEAVES kbi_signal_bit(KBI_LIBC_LAST)
static inline bool kbi_signal_is_last(const struct kb_thread *t)
{
	return a_load_rlx(&t->signals.wanted) & KBI_SIGNAL_LEAVES;
}
/* Notes that these have been sent to the program, to a thread not yet known; also in handlers. */
void kbi_signal_note_sent(uint64_t set);
/* Called when the caller is about to let these through. The real-time signals among them that wait
 * for the process come to the caller's list, all and in the kernel's order, before the dispatcher,
 * or the kernel by the caller's mask, can each take some. */
void kbi_signal_take_queued(struct kbi_task *self, uint64_t set);
/* Waits until the dispatcher holds none of these signals that were sent to the program from inside
 * before this call. False: it held none. */
bool kbi_signal_settle(uint64_t set);
/* Does this for one number: a signal that was sent to the program has come, or is in a thread's
 * list. False: some of it may wait in the kernel, or come from there. Not in handlers. */
bool kbi_signal_is_settled(int sig);
/* kbi_signal_leaves: self is about to end, or to block these; signals that no other thread would
 * take are handled now. kbi_signal_left: called afterwards, unless self ends. */
void kbi_signal_leaves(struct kbi_task *self, uint64_t set);
void kbi_signal_left(struct kbi_task *self);
void kbi_signal_await_own(struct kbi_task *self, int sig, uint32_t before);

/* ---- actions --------------------------------------------------------------------------------- */

/* Tests whether the signal has no effect: it is ignored, explicitly or by default. */
bool kbi_signal_ignored(int sig);
/* Tests whether the program has a handler of sig, so that the kernel calls our relay. */
bool kbi_signal_has_handler(int sig);
/* Tests whether the program has a handler of any signal. */
bool kbi_signal_any_handler(void);
/* Puts our relay in front of the handlers that libc has from before the runtime. */
void kbi_signal_adopt_handlers(void);

#endif
