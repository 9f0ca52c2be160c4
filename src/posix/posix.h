/* posix/posix.h - the internal interface of the drop-in library. libkochab-posix defines the names
 * of the thread functions that libc exports. It takes over the objects of this process, and leaves
 * objects that processes may share to libc's own code (names.def says which names and why).
 * Callers: the units of this room; this is the room's only common door. Runs on the program's
 * threads. Rules:
 *  - One family of objects is interposed as a whole: an omitted name would mix two implementations.
 *  - The object itself says whether it is ours or libc's, at the place where libc keeps the mark.
 *  - libc's originals are called through kbi_libc() only, never by name, if we define the name. */
#ifndef KBI_POSIX_H
#define KBI_POSIX_H

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <kochab/kochab.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atom.h"
#include "core/handoff.h"
#include "core/quantum.h"
#include "core/thread.h"
#include "core/timer.h"
#include "io/hold.h"
#include "sync/waitq.h"

/* Marks a name that programs see. All other names in this room are hidden. */
#define KBI_POSIX_API __attribute__((visibility("default")))
/* Defines a second name of a function in the same file; libc's headers may have redirected that
 * name. */
#if __has_attribute(copy) /* gcc wants an alias to repeat all attributes of its target */
#define KBI_POSIX_COPY(of) __attribute__((copy(of)))
#else
#define KBI_POSIX_COPY(of)
#endif
#define KBI_POSIX_ALIAS(alias_, of) \
	extern __typeof__(of) kbi_alias_##alias_ __asm__(#alias_) KBI_POSIX_COPY(of) \
		__attribute__((alias(#of), visibility("default")))

/* ---- libc's originals ------------------------------------------------------------------------ */

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int capset(void *header, const void *data); /* in no header of libc */
int ioperm(unsigned long from, unsigned long n, int on); /* not on every machine */
int iopl(int level);
void __longjmp_chk(struct __jmp_buf_tag env[1], int value) KBI_NORETURN;

/* One pointer for each row of names.def that says BOTH. Constant after start. */
struct kbi_libc {
#define OURS(name, ...)
#define PASS(name, ...)
#define BOTH(name, ...) __typeof__(&name) name;
#include "posix/names.def"
};

extern struct kbi_libc kbi_libc_table;
extern a32 kbi_libc_ready;
/* Looks all originals up: in our constructor, or earlier if another library's constructor needs an
 * original. */
void kbi_libc_resolve(void);
/* Looks up the n rows of a unit's own table, then sets *ready. An entry is NULL if this libc lacks
 * the function. */
struct kbi_libc_row {
	const char *name;
	void **slot;
};
void kbi_libc_look_up(const struct kbi_libc_row *row, size_t n, a32 *ready);
/* Looks up a single name, for a call before our constructor, and stores the address in *slot. Our
 * constructor looks all names up: a later look-up would clear the message that dlerror is to
 * return, and could meet a thread that holds the loader's lock. */
void *kbi_libc_original(const char *name, void **slot);
void kbi_stdio_resolve(void);
void kbi_call_resolve(void);
/* Performs system call n, which may block the caller. *r: the kernel's result. False: n is no
 * system call of that kind, or the caller is no lightweight thread. */
KBI_SWITCHES bool kbi_call_by_number(long n, const long a[6], long *r);
/* Perform pause, rt_sigsuspend, rt_sigtimedwait and clock_nanosleep called by number; return the
 * kernel's result. They are no cancellation points. For lightweight threads only; clock:
 * CLOCK_REALTIME or CLOCK_MONOTONIC. */
KBI_SWITCHES long kbi_posix_pause_by_number(void);
KBI_SWITCHES long kbi_posix_sigsuspend_by_number(uint64_t mask);
KBI_SWITCHES long kbi_posix_sigwait_by_number(uint64_t wanted, siginfo_t *info,
	const struct timespec *timeout);
KBI_SWITCHES long kbi_posix_sleep_by_number(clockid_t clock, int flags, const struct timespec *t,
	struct timespec *left);
void kbi_unsafe_resolve(void);
void kbi_path_resolve(void);
void kbi_listing_resolve(void);
/* Frees the ending thread's results of functions that are not thread-safe (posix/unsafe). */
void kbi_unsafe_thread_ends(void);

static inline const struct kbi_libc *kbi_libc(void)
{
	/* acquire: partner is the release in kbi_libc_look_up */
	if (kbi_unlikely(!a_load_acq(&kbi_libc_ready)))
		kbi_libc_resolve();
	return &kbi_libc_table;
}

/* True once our constructor has begun; the libraries that a sanitizer puts before us have begun by
 * then, too. */
extern bool kbi_posix_started;

struct link_map;
struct link_map *kbi_link_order_object(const void *address);
/* Tests whether the code at that address comes before us in the loader's look-up order. */
bool kbi_link_order_before_us(const void *address);
/* Tests whether libc comes before us. The program's calls then go to libc. */
bool kbi_link_order_behind_libc(void);
enum { KBI_POSIX_CANNOT_RUN = 126 /* exit status, as of the command and of shells */ };
/* Checks that the libraries are in the order that we need. Called once, before main. May start the
 * program anew, or end the process. */
void kbi_preload_order(char **argv, char **envp);

/* ---- who calls ------------------------------------------------------------------------------- */

/* The drop-in's record of a thread, in the thread's own TLS; all zero when the thread is made.
 * Written by the thread itself unless noted. Fields are in order of use, so that a creation and a
 * call touch few cache lines. */
struct kbi_posix_thread {
	/* at the start and the end of the thread */
	pthread_t self;       /* 0: not asked yet */
	void *exit_value;     /* argument of pthread_exit */
	struct __jmp_buf_tag *frame; /* jump buffer of its first function */
	/* its descriptor, set from its first vfork until its end; read by other threads
	 * (posix/posix.c) */
	struct kbi_task *hidden;
	/* forks: > 0: the thread, and so its child, is in libc's fork; vforks: number of nested vfork
	 * children that run in its place */
	uint8_t forks, vforks;
	uint8_t exiting;      /* it has called pthread_exit, or was cancelled */
	uint8_t at_once;      /* it ends by the system call exit: no code of the program runs */
	uint8_t c11;          /* made by thrd_create: the result is an int */
	uint8_t system_scope; /* made with PTHREAD_SCOPE_SYSTEM, and lightweight nevertheless */
	uint8_t process_scope; /* made with PTHREAD_SCOPE_PROCESS */
	a8 owns;              /* posix/bind: descriptors send it signals */
	bool lets_in;         /* true while it sets the kernel's mask, in brackets (kbi_np_enter) */
	/* posix/bind: why it keeps its kernel thread, a set of enum kbi_bind_why; 0: it does not */
	a32 bound;
	/* posix/affinity: another thread has set its affinity, and it has not obeyed yet */
	a32 pin_due;
	int policy;           /* only remembered, for functions that report it */
	int priority;
	uint32_t in_handler;  /* program's handlers on it that have not returned */
	uint32_t handled;     /* program's handlers that have run on it */
	/* calls that may block */
	uint32_t ending;      /* handlers without SA_RESTART that have run on it */
	uint32_t seen;        /* `handled` when a blocking call last looked */
	/* kbi_call_changes when a call last asked for the mode and time limit of settled_fd; 0:
	 * never */
	uint32_t settled;
	int settled_fd;       /* descriptor */
	/* what its call holds, n_held entries; the end of a program's handler ends the holds
	 * (posix/signal_action); NULL: nothing */
	struct kbi_hold *held;
	size_t n_held;
	a32 talk;             /* io/talk: the number of its conversation */
	/* 1 + descriptor of its last receive, if that got less than it had room for; 0: none */
	int drained;
	/* counts sched_yield: now and then the kernel's other threads get a turn */
	uint8_t yields;
	uint8_t ring_told;    /* posix/uring_owner: the flags of the ring that it maps next were seen */
	uint8_t short_waits;  /* its last wait for a descriptor was short */
	/* rises if a second attempt succeeded after other threads had run, falls if it failed; 0: such
	 * attempts hardly ever help */
	uint8_t luck;
	uint8_t waits;        /* counts calls that had to wait */
	int libcs_held;       /* number of libc's mutexes that it holds */
	/* kernel thread that stands in for it if such a mutex is robust and shared
	 * (posix/standin_robust); NULL: none */
	struct kbi_standin_robust *standin_robust;
	/* handlers */
	/* the signal that it is sending itself, in brackets; the relay handles this signal at once;
	 * NULL: none */
	const siginfo_t *raises;
	uint64_t mask_outside; /* its mask before the first handler that has not returned */
	/* true: such a handler has interrupted a frame of the runtime that was on another stack
	 * (core/preempt) */
	bool apart;
	stack_t alternate;     /* its alternate signal stack; ss_sp NULL: none */
	stack_t entered;       /* the alternate stack on which a handler was last called */
	/* kernel threads that our pthread_create made by libc's */
	kb_sem_t ended; /* posted at its end, so that a lightweight joiner need not block in libc */
	a32 kernel;
	/* rarely used */
	uint32_t standin_seen;
	/* the futex stand-in of the word at which it sleeps; standin_seen: the word's value */
	struct kbi_standin_futex *standin_futex;
	/* list of libc's mutexes that it has given the kernel itself; NULL: libc's list */
	void *robust;
	char *strtok_at;      /* where strtok goes on */
	struct kbi_unsafe_own *own; /* results of posix/unsafe, or NULL */
	a64 own_timers;       /* posix/bind: signals that its own timers send it */
};

extern __thread struct kbi_posix_thread kbi_posix_me __attribute__((tls_model("initial-exec")));

/* Tests whether the caller is the child of a vfork of ours. */
static inline bool kbi_posix_in_vfork(void)
{
	return kbi_unlikely(kbi_posix_me.vforks > 0);
}

/* Returns pthread_self() from a cache: the drop-in needs the value at every wait. */
static inline pthread_t kbi_posix_self(void)
{
	if (kbi_unlikely(!kbi_posix_me.self))
		kbi_posix_me.self = pthread_self();
	return kbi_posix_me.self;
}

/* True: this process was forked from a process whose runtime ran; it continues with libc's kernel
 * threads. */
extern bool kbi_posix_forked;
/* Set once a thread has had a deputy, or a file for its name. Each ending thread then looks whether
 * it has either. */
extern a32 kbi_posix_helped;
/* In a forked process (kbi_posix_forked): make an object forget the parent's threads, before a
 * thread waits for it or wakes its waiters. */
void kbi_orphan_mutex(kb_mutex_t *m);
void kbi_orphan_cond(kb_cond_t *c);
void kbi_orphan_sem(kb_sem_t *s);
void kbi_orphan_rwlock(kb_rwlock_t *l);
void kbi_orphan_once(kb_once_t *o);
void kbi_orphan_barrier(kb_barrier_t *b);
void kbi_orphan_all(void);
/* True once libc has made a kernel thread at our request. */
extern bool kbi_posix_made_kernel;

/* Returns the caller if it is a lightweight thread on a VP. NULL: a kernel thread, which may block
 * itself. */
static inline struct kbi_task *kbi_posix_light(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self && (kbi_likely(self->vp != NULL) || kbi_handoff_end_found(self)) ? self : NULL;
}

/* Returns the record of any thread whose pthread_t is known and that has not been joined. */
struct kbi_posix_thread *kbi_posix_record(pthread_t t);
/* Returns the descriptor of a lightweight thread. NULL: a kernel thread, or (*gone) a thread that
 * has been joined. */
struct kb_thread *kbi_posix_thread(pthread_t t, bool *gone);
/* Tests whether t is a lightweight thread of the program that has a number and has not ended. */
bool kbi_posix_lives(const struct kb_thread *t);
/* Returns the lightweight thread that has this number. NULL: none (the number is a kernel thread's,
 * or unused). */
struct kb_thread *kbi_posix_find(long number);
/* Returns the descriptor of any thread that has used our objects, also of a kernel thread. NULL: it
 * has not. */
struct kbi_task *kbi_posix_task(pthread_t t);
/* Waits until signals on their way to the caller for a cancellation have arrived. Called when the
 * caller has been unwound or has returned. */
void kbi_posix_settle(void);
/* Returns the number that libc's mutexes record as the owner if the caller locks them. */
int kbi_posix_owner_tid(void);

/* ---- time ------------------------------------------------------------------------------------ */

/* Converts the kernel's result to libc's form: an int, or -1 with errno set. */
static inline int kbi_posix_answer(long r)
{
	if (r >= 0)
		return (int)r;
	errno = (int)-r;
	return -1;
}

static inline bool kbi_posix_time_ok(const struct timespec *t)
{
	return t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* Tests nanoseconds as libc does before it waits: a time before 1970 has passed, whatever its
 * nanoseconds are. */
static inline bool kbi_posix_time_ok_or_over(const struct timespec *t)
{
	return t->tv_sec < 0 || kbi_posix_time_ok(t);
}

static inline bool kbi_posix_clock_ok(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* Returns the deadline of a wait of length t; t NULL: KBI_FOREVER. */
static inline uint64_t kbi_posix_after(const struct timespec *t)
{
	return t ? kbi_timer_after(kbi_timer_ns(t->tv_sec, t->tv_nsec)) : KBI_FOREVER;
}

/* Returns the deadline of a wait at an object of `sync`. */
static inline uint64_t kbi_posix_deadline(clockid_t clock, const struct timespec *abstime)
{
	if (clock == CLOCK_REALTIME)
		return kbi_waitq_real(abstime->tv_sec, abstime->tv_nsec);
	return kbi_timer_deadline(clock, abstime->tv_sec, abstime->tv_nsec);
}

/* ---- suspension points ----------------------------------------------------------------------- */

/* Used as kbi_until.stop: return why a wait should end early. ECANCELED (kbi_posix_stop only, for
 * cancellation points), EINTR (a signal is there for this thread), 0: it should not. */
int kbi_posix_stop(struct kbi_task *self);
int kbi_posix_stop_signal(struct kbi_task *self);

static inline struct kbi_until kbi_posix_until(uint64_t deadline)
{
	return (struct kbi_until){ deadline, kbi_posix_stop_signal };
}

/* For waits that a signal does not end: the handler runs while the thread keeps its place in the
 * queue. */
int kbi_posix_stop_in_place(struct kbi_task *self);
static inline struct kbi_until kbi_posix_until_granted(uint64_t deadline)
{
	return (struct kbi_until){ deadline, kbi_posix_stop_in_place };
}

static inline struct kbi_until kbi_posix_until_cancelled(uint64_t deadline)
{
	return (struct kbi_until){ deadline, kbi_posix_stop };
}

/* Tests inline that kbi_posix_stop_signal would find no signal: no signal was sent to the
 * caller. */
static inline bool kbi_posix_calm(void)
{
	struct kbi_task *self = kbi_self_raw();

	return kbi_likely(!self || !a_load_rlx(&kbi_thread_of(self)->signals.pending));
}

/* Acts on a pending pthread_cancel of the caller: at the beginning of a cancellation point, and at
 * its end if the wait stopped for the cancellation. May unwind the caller. */
void kbi_cancel_act(void);
/* Offset of libc's cancellation word from the thread's pthread_t; 0: unknown. And the offset of the
 * bytes of state and type if they are not in that word, else 0. Constant after start. */
extern ptrdiff_t kbi_cancel_at, kbi_cancel_state_at;
/* Bits of glibc's word. */
enum {
	KBI_CANCEL_DISABLED = 1,
	KBI_CANCEL_ASYNC = 2, /* set by the program, or by libc around a system call */
	KBI_CANCEL_CANCELING = 4,
	KBI_CANCEL_CANCELED = 8,
	KBI_CANCEL_EXITING = 16,
};

static inline a32 *kbi_cancel_word(pthread_t t)
{
	return (a32 *)(void *)((char *)t + kbi_cancel_at);
}

/* Returns the thread's word with the bits of state and type, in any libc. */
static inline uint32_t kbi_cancel_bits(pthread_t t)
{
	const volatile uint8_t *two =
		(const volatile uint8_t *)(void *)((char *)t + kbi_cancel_state_at);
	uint32_t word = a_load_rlx(kbi_cancel_word(t));

	if (kbi_unlikely(kbi_cancel_state_at))
		word |= (two[0] ? KBI_CANCEL_DISABLED : 0u) | (two[1] ? KBI_CANCEL_ASYNC : 0u);
	return word;
}

static inline bool kbi_cancel_pending(void)
{
	enum { LOOKED_AT = KBI_CANCEL_DISABLED | KBI_CANCEL_CANCELED | KBI_CANCEL_EXITING };
	pthread_t self = kbi_posix_self();

	return kbi_cancel_at &&
	       kbi_unlikely((a_load_rlx(kbi_cancel_word(self)) & LOOKED_AT) == KBI_CANCEL_CANCELED) &&
	       !(kbi_cancel_bits(self) & KBI_CANCEL_DISABLED);
}

/* Tests whether the caller is cancelled with asynchronous type: the cancellation acts at any
 * place. */
static inline bool kbi_cancel_async(void)
{
	return kbi_cancel_pending() && (kbi_cancel_bits(kbi_posix_self()) & KBI_CANCEL_ASYNC);
}

/* From glibc 2.41 on, system calls do not set a bit in the word when they may be cancelled: libc's
 * handler looks at the interrupted address. Returns true for these versions. */
bool kbi_cancel_goes_by_place(void);

static inline void kbi_cancel_test(void)
{
	if (kbi_unlikely(kbi_cancel_pending()))
		kbi_cancel_act();
}

/* Clears the word in the block of a new thread; the block may have served a cancelled thread. */
void kbi_cancel_fresh(pthread_t t);
void kbi_cancel_find(void);
/* Marks the ending caller as exiting in libc's word, so that its destructors are not cancelled.
 * Called before these run. */
void kbi_cancel_over(void);

/* Called after a suspension: signals sent meanwhile and the thread's own signal mask take effect on
 * the kernel thread on which the thread resumed. Returns true if a handler without SA_RESTART ran:
 * the call returns EINTR if it may. Keeps errno. */
bool kbi_signal_resumed_slow(void);
extern a32 kbi_signal_watch; /* set: some thread has its own mask, or a signal was sent to one */
/* Work beside signals that a thread does before it goes on: `has` tests for it, `run` does it. */
struct kbi_signal_errand {
	bool (*has)(void);
	void (*run)(void);
};
extern aptr kbi_signal_errand; /* const struct kbi_signal_errand; NULL: no thread has any */
static inline bool kbi_signal_resumed(void)
{
	return kbi_unlikely(a_load_rlx(&kbi_signal_watch)) && kbi_signal_resumed_slow();
}
/* Does the first half of kbi_signal_resumed, where no handler may run yet: gives the kernel thread
 * on which the caller resumed the caller's mask. */
void kbi_signal_bring_mask(void);
/* Called after a resumption if the caller's pin_due is set. The caller may keep its kernel thread
 * afterwards. Set by posix/affinity when it first leaves a set for another thread. */
extern void (*kbi_signal_pins)(void);
/* Moves a signal that the kernel has sent to the caller's kernel thread for a call of the caller
 * (SIGPIPE), and that the caller blocks, to the caller's list: another thread is about to run on
 * the kernel thread. */
void kbi_signal_claim(int sig);
/* Start and end the time in which self keeps its kernel thread, which receives self's signals
 * meanwhile. Idempotent. */
void kbi_signal_bound_begins(struct kbi_task *self);
void kbi_signal_bound_undone(struct kbi_task *self);
/* Ends self's turn, which is over according to core/quantum; self may be suspended here. Other
 * threads run; handlers may run, too. */
KBI_SWITCHES void kbi_posix_end_turn(struct kbi_task *self);
/* Tests whether the caller is a lightweight thread that may be suspended here. A handler may not:
 * it may have interrupted our own library or libc while a lock was held. */
static inline bool kbi_call_is_outside(const struct kbi_task *self)
{
	return self && self->vp && a_load_rlx(&self->np) <= 0 && !kbi_posix_me.in_handler;
}
/* Returns the same as kbi_call_is_outside, after ending a turn that is over. */
static inline bool kbi_call_may_wait(void)
{
	struct kbi_task *self = kbi_self_raw();

	if (!kbi_call_is_outside(self))
		return false;
	if (kbi_quantum_is_over(self)) {
		kbi_posix_end_turn(self);
		return self->vp != NULL; /* self may keep its kernel thread from then on (posix/affinity) */
	}
	return true;
}
/* Ends a turn that is over, in a function that suspends no thread and so would never end it. Called
 * before the function looks any thread up. */
static inline void kbi_posix_let_turn_end(void)
{
	(void)kbi_call_may_wait();
}
/* Installs our handler of libc's signal for cancellation. From then on a running thread looks for
 * signals and cancellation when its kernel thread gets this signal. */
void kbi_signal_listen(void);
/* Sends that signal to kernel thread tid. Returns 0, or EAGAIN: the user's limit of queued signals
 * is reached (RLIMIT_SIGPENDING). */
int kbi_signal_kick(int tid);
/* Adapts that handler: kbi_preempt_is_apart is true from now on. */
void kbi_signal_sigcancel_apart(void);
/* Sends that signal to the caller's own kernel thread, a short time later. */
void kbi_signal_kick_later(void);
/* The addressee of a signal. A descriptor serves several threads in turn, so the number tells the
 * threads apart: a signal on its way to a thread that has ended does not go to the descriptor's
 * next thread. t NULL: the process. */
struct kbi_signal_to {
	struct kb_thread *t;
	uint32_t number;
};
static inline struct kbi_signal_to kbi_signal_to(struct kb_thread *t)
{
	return (struct kbi_signal_to){ t, t ? a_load_rlx(&t->number) : 0 };
}
/* Performs pthread_kill for a lightweight thread, which may have ended. Returns 0, EINVAL,
 * EAGAIN. */
int kbi_signal_kill(struct kbi_signal_to to, int sig);
/* Performs rt_tgsigqueueinfo for a lightweight thread. Returns 0, EPERM, EINVAL, EAGAIN. */
int kbi_signal_queue(struct kbi_signal_to to, int sig, const siginfo_t *given);
/* Resets the units of signals in the child of fork: nothing is pending, and no thread holds their
 * locks. self: the caller, or NULL. */
void kbi_signal_after_fork(struct kbi_task *self);
/* Gives a new thread its creator's mask, or `given`. */
void kbi_signal_inherit(struct kb_thread *child, const sigset_t *given);
/* Called before the runtime starts, and after it has started. */
void kbi_signal_start(void);
void kbi_signal_started(void);
/* Makes native waits run handlers from here on. */
void kbi_signal_native_start(void);
/* Called instead of kbi_signal_started: the runtime does not start. */
void kbi_signal_not_started(void);
/* Performs syscall(SYS_execve or SYS_execveat): pending blocked signals go along to the new
 * program. Returns -errno. */
long kbi_signal_exec_by_number(long n, const long a[6]);
/* Runs the handlers of signals that have come for the ending thread. */
void kbi_signal_last(void);
/* Drops or passes on what was sent to the ending thread and not handled. */
void kbi_signal_thread_ends(void);
/* In the child of fork: the caller's alternate stack becomes its kernel thread's. */
void kbi_signal_stack_after_fork(void);

/* Returns 0, EINVAL or EPERM, as the kernel would answer sched_setscheduler. */
int kbi_thread_attrs_may_schedule(int policy, int priority);
/* Tests whether the kernel is to apply the thread's real-time policy: the thread asked for
 * PTHREAD_SCOPE_SYSTEM, and option `scope` does not say that this means nothing. */
bool kbi_thread_attrs_is_kernels(bool system_scope);
/* A thread is about to have this policy. With a real-time policy, waiters are from now on queued by
 * priority at all objects. */
void kbi_thread_attrs_expect(int policy);
/* Asks the kernel for the policy of the caller's kernel thread. */
void kbi_thread_attrs_scheduling(int *policy, int *priority);
/* Returns the name of t in buf. 0, or an errno value. */
int kbi_thread_attrs_name(struct kb_thread *t, char buf[16]);
/* The caller keeps its kernel thread and has just taken that kernel thread's policy. */
void kbi_thread_attrs_adopted(void);

/* ---- between the units ----------------------------------------------------------------------- */

/* Test for an explicit PTHREAD_SCOPE_PROCESS or PTHREAD_SCOPE_SYSTEM. */
bool kbi_attr_is_process(const pthread_attr_t *attr);
bool kbi_attr_is_system(const pthread_attr_t *attr);
/* Tests whether attr may hold processors or a signal mask; libc knows which. */
bool kbi_attr_has_more(const pthread_attr_t *attr);
bool kbi_attr_wants_kernel_thread(const pthread_attr_t *attr);
/* Runs the destructors of thread_local objects and of thread-specific data, on the ending
 * thread. */
void kbi_key_run_destructors(void);
void kbi_key_find(void);
/* Marks the robust mutexes that the ending thread holds: their next owner gets EOWNERDEAD. */
void kbi_libc_mutex_thread_ends(void);
/* Returns the calling lightweight thread's list of robust mutexes: the list that it has set, or
 * libc's; NULL: unknown. */
void *kbi_libc_mutex_robust_list(void);
/* Returns the list of thread t. */
void *kbi_libc_mutex_robust_list_of(const struct kb_thread *t);
/* Sets the caller's list; NULL: libc's list again. Returns 0 or EINVAL. */
int kbi_libc_mutex_set_robust_list(void *head, size_t size);
/* Finds the offset of the list of robust mutexes in libc's block. Called before the runtime starts,
 * on a kernel thread of libc's. */
void kbi_libc_mutex_find(void);
/* Locks a libc mutex without blocking the VP. Returns 0, ETIMEDOUT, or libc's error. */
KBI_SWITCHES int kbi_libc_mutex_lock(pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime);
/* Calls `attempt` until the result is not EBUSY. word: NULL, or 32 bits whose change makes another
 * attempt worthwhile. */
KBI_SWITCHES int kbi_libc_mutex_wait(int (*attempt)(void *), void *object, const void *word,
				     clockid_t clock, const struct timespec *abstime);
/* As kbi_libc_mutex_wait; a long wait is left to stand_in, which returns the wait's result, or -1:
 * it cannot wait now. */
KBI_SWITCHES int kbi_libc_mutex_wait_long(int (*attempt)(void *),
					  int (*stand_in)(void *, clockid_t, const struct timespec *), void *object,
					  const void *word, clockid_t clock, const struct timespec *abstime);
/* As kbi_libc_mutex_wait_long, for cancellation points, which handlers end, too: EINTR. stand_in
 * may also return EINTR; the caller has to look for signals and cancellation. */
KBI_SWITCHES int kbi_libc_mutex_wait_ending(int (*attempt)(void *),
					    int (*stand_in)(void *, clockid_t, const struct timespec *), void *object,
					    const void *word, clockid_t clock, const struct timespec *abstime);
/* Tells n threads of this process that sleep for the word to try again, after the word has been
 * changed. The word's memory may be gone. */
void kbi_libc_mutex_tell(const void *word, unsigned n);
/* Tells approximately whether a thread of this process sleeps for a word. */
bool kbi_libc_mutex_has_sleepers(void);
/* Tests for a robust, priority-inheriting, priority-protected or process-shared mutex: these are
 * libc's. */
static inline bool kbi_mutex_is_libcs(const pthread_mutex_t *m)
{
	return kbi_unlikely(m->__data.__kind & (16 | 32 | 64 | 128));
}
/* libc's word of flags in a condition variable. A condition variable of ours is never shared. */
enum { KBI_COND_SHARED = 1, KBI_COND_MONOTONIC = 2, KBI_COND_FLAGS_UNKNOWN = 24 /* bytes */ };
extern KBI_HIDDEN uint32_t kbi_cond_flags_at;
static inline uint32_t kbi_cond_flags(const pthread_cond_t *c)
{
	return *(const uint32_t *)(const void *)((const char *)c + kbi_cond_flags_at);
}
/* Finds that offset with the help of libc's functions. Called in the constructor. */
void kbi_cond_learn(void);
/* Objects that processes share are libc's. A bit of kbi_shared_unknown tells that libc's layout of
 * a kind is not as this room uses it. Learnt in the constructor, after the flags of condition
 * variables; constant afterwards. */
enum kbi_shared { KBI_SHARED_MUTEX, KBI_SHARED_COND, KBI_SHARED_RWLOCK, KBI_SHARED_BARRIER,
	KBI_SHARED_SEM };
/* offsets of the marks in these two kinds, in bytes */
enum { KBI_SHARED_BARRIER_AT = 12, KBI_SHARED_SEM_AT = 8 };
extern KBI_HIDDEN uint32_t kbi_shared_unknown; /* a bit for each kind whose layout is unknown */
void kbi_shared_learn(void);
/* Reports the unknown kind, once for each kind. Returns ENOTSUP. */
int kbi_shared_refuse(enum kbi_shared kind);
static inline bool kbi_shared_is_known(enum kbi_shared kind)
{
	return kbi_likely(!(kbi_shared_unknown >> kind & 1));
}
/* Wait at a process-shared condition variable or barrier of libc's, for a lightweight thread. -1:
 * there is no kernel thread that could wait for it. */
KBI_SWITCHES int kbi_standin_libc_cond(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime);
KBI_SWITCHES int kbi_standin_libc_barrier(pthread_barrier_t *b);
/* Calls libc's function for a wait at the condition variable. clock -1: the clock of c. */
int kbi_standin_libc_call_cond(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime);
/* Waits at a semaphore as sem_wait and sem_clockwait do, but returns the error. -1 as above. EINTR:
 * the caller was sent a signal, or is cancelled, and has not got the semaphore; if the caller tries
 * once more, no thread that a post should have woken stays asleep. */
KBI_SWITCHES int kbi_standin_libc_sem(void *s, clockid_t clock, const struct timespec *abstime);
/* Wait at a readers-writer lock in the same way, without EINTR. */
KBI_SWITCHES int kbi_standin_libc_read(void *l, clockid_t clock, const struct timespec *abstime);
KBI_SWITCHES int kbi_standin_libc_write(void *l, clockid_t clock, const struct timespec *abstime);
/* From now on the kernel marks the calling lightweight thread's robust mutexes if the process is
 * killed, and the owner recorded in these mutexes is a kernel thread's number. The caller must hold
 * none of libc's mutexes. */
KBI_SWITCHES void kbi_standin_robust_begin(void *robust_head);
void kbi_standin_robust_end(void);
/* Starts a detached kernel thread that stands in for lightweight threads. Its body must call
 * kbi_standin_block_signals first. */
int kbi_standin_start(pthread_t *id, void *(*body)(void *), void *arg);
void kbi_standin_block_signals(void);
/* Tests whether a stand-in may be lost together with its process, which has a successor (option
 * contain). */
bool kbi_standin_may_be_lost(void);
/* Bits that tell how a thread is parked at a word. A futex stand-in wakes only threads parked with
 * the futex stand-in: these know that a wake-up meant for another thread may have reached them, and
 * pass it on. */
enum { KBI_PARKED_FOR_A_WHILE = 1, KBI_PARKED_WITH_STANDIN = 2 };
/* Starts or joins the futex stand-in of the word: a kernel thread that waits in the kernel in place
 * of the lightweight threads that sleep at the word. Processes that change the word ask the kernel
 * to wake. Returns NULL if there is none. */
KBI_SWITCHES struct kbi_standin_futex *kbi_standin_futex_begin(const uint32_t *word);
/* Leaves the futex stand-in. got: the caller got what it slept for; false: a wake-up is passed on
 * to another sleeper. */
void kbi_standin_futex_end(struct kbi_standin_futex *s, bool got);
/* Sleeps while the word is `seen`, which contains a mark for processes that change the word: until
 * a thread here (kbi_libc_mutex_tell) or another process changes it, or a signal or the deadline
 * `until` comes. May return early. */
KBI_SWITCHES void kbi_standin_futex_sleep(struct kbi_standin_futex *s, uint32_t seen,
	uint64_t until);
/* Performs trylock and unlock of a libc mutex by libc. */
KBI_SWITCHES int kbi_libc_mutex_trylock(pthread_mutex_t *m);
int kbi_libc_mutex_unlock(pthread_mutex_t *m);
/* The jump of libc's unwinders. pthread.h declares the first three only for code without
 * exceptions, and the fourth under a name that changes with the version. */
void __pthread_register_cancel(__pthread_unwind_buf_t *buf);
void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf);
void __pthread_unwind_next(__pthread_unwind_buf_t *buf) KBI_NORETURN;
int kbi_posix_setjmp(void *jump, int keeps_mask) __asm__("__sigsetjmp")
	__attribute__((returns_twice, nothrow));

/* Calls fn(arg) in the frame of a thread's first function. Returns fn's result, or the argument of
 * pthread_exit. */
void *kbi_posix_frame(void *(*fn)(void *), void *arg);
/* Ends the thread as the system call exit ends a kernel thread: no cleanup handlers, no
 * destructors; the result is NULL. */
void kbi_posix_exit_by_number(void) KBI_NORETURN;
/* Creates a thread that is a kernel thread of libc's. bound: what it inherits from its creator, a
 * set of enum kbi_bind_why. */
int kbi_kernel_thread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
			     void *arg, bool c11, uint32_t bound);
/* Waits, as a lightweight thread, until libc's join would be short: returns 0 or ETIMEDOUT. Or
 * performs the join: *joined is set, or libc's error is returned. */
KBI_SWITCHES int kbi_kernel_thread_join(pthread_t id, void **result, uint64_t deadline,
	bool *joined);
void kbi_fork_init(void);
/* Ends the thread that came through fork, which is now its kernel thread's only thread. */
void kbi_fork_thread_ends(void) KBI_NORETURN;

#endif
