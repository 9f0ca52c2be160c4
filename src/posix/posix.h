/* posix/posix.h - the inside of the drop-in: what every unit of this room needs. libkochab-posix defines the
 * names of the thread functions that libc exports, takes the objects of this process over and leaves those
 * that other programs may share to libc's own code (names.def says which and why).
 * Callers: the units of this room, of which it is the one door. Runs on the program's threads. Rules:
 *  - one family of objects is interposed as a whole: a name left out would mix two implementations;
 *  - whether an object is ours or libc's is read from the object, at the place where libc keeps the mark;
 *  - libc originals are called through kbi_libc() only, never by name, where the name is ours. */
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

/* A name that programs see. Everything else in this room is hidden. */
#define KBI_POSIX_API __attribute__((visibility("default")))
/* A second name of a function defined in the same file; libc's headers may have redirected that name. */
#if __has_attribute(copy) /* gcc wants an alias to say all that its target says */
#define KBI_POSIX_COPY(of) __attribute__((copy(of)))
#else
#define KBI_POSIX_COPY(of)
#endif
#define KBI_POSIX_ALIAS(alias_, of) \
	extern __typeof__(of) kbi_alias_##alias_ __asm__(#alias_) KBI_POSIX_COPY(of) \
		__attribute__((alias(#of), visibility("default")))

/* ---- libc's originals -------------------------------------------------------------------------- */

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int capset(void *header, const void *data); /* no header of libc's has it */
int ioperm(unsigned long from, unsigned long n, int on); /* not every machine has these */
int iopl(int level);
void __longjmp_chk(struct __jmp_buf_tag env[1], int value) KBI_NORETURN;

/* One pointer for each row of names.def that says BOTH. */
struct kbi_libc {
#define OURS(name, ...)
#define PASS(name, ...)
#define BOTH(name, ...) __typeof__(&name) name;
#include "posix/names.def"
};

extern struct kbi_libc kbi_libc_table;
extern a32 kbi_libc_ready;
/* Looks all of them up: in our constructor, or before it when another library's constructor needs one. */
void kbi_libc_resolve(void);
/* For units with a table of their own: all rows, NULL for what this libc does not have; then *ready. */
struct kbi_libc_row {
	const char *name;
	void **slot;
};
void kbi_libc_look_up(const struct kbi_libc_row *row, size_t n, a32 *ready);
/* One row, for a call before our constructor, which looks all up: later it would wipe out what dlerror is to tell, and
 * could meet a thread that holds the loader's lock. */
void *kbi_libc_original(const char *name, void **slot);
void kbi_stdio_resolve(void);
void kbi_call_resolve(void);
/* A system call by its number that may block the caller, a lightweight thread; *r: the kernel's result. False: none of
 * these, or the caller is none. */
KBI_SWITCHES bool kbi_call_by_number(long n, const long a[6], long *r);
/* pause, rt_sigsuspend, rt_sigtimedwait and clock_nanosleep by their numbers: no cancellation points; the kernel's
 * result. A lightweight thread only; clock: CLOCK_REALTIME or CLOCK_MONOTONIC. */
KBI_SWITCHES long kbi_posix_pause_by_number(void);
KBI_SWITCHES long kbi_posix_sigsuspend_by_number(uint64_t mask);
KBI_SWITCHES long kbi_posix_sigwait_by_number(uint64_t wanted, siginfo_t *info, const struct timespec *timeout);
KBI_SWITCHES long kbi_posix_sleep_by_number(clockid_t clock, int flags, const struct timespec *t, struct timespec *left);
void kbi_unsafe_resolve(void);
void kbi_path_resolve(void);
void kbi_listing_resolve(void);
/* The caller's results of functions that are not thread-safe, at its end. */
void kbi_unsafe_thread_ends(void);

static inline const struct kbi_libc *kbi_libc(void)
{
	/* acquire: partner is the release in kbi_libc_look_up */
	if (kbi_unlikely(!a_load_acq(&kbi_libc_ready)))
		kbi_libc_resolve();
	return &kbi_libc_table;
}

/* Our constructor has begun, and so have the libraries that a sanitizer put before us. */
extern bool kbi_posix_started;

struct link_map;
struct link_map *kbi_place_object(const void *address);
/* Does that code come before us where the loader looks names up? */
bool kbi_place_before_us(const void *address);
/* Does libc's? Then the program's calls go there. */
bool kbi_place_behind_libc(void);
enum { KBI_POSIX_CANNOT_RUN = 126 /* as the command, and shells, have it */ };
/* Some libraries have to be before us, some behind. Called once, before main; may start the program anew, or end it. */
void kbi_order(char **argv, char **envp);

/* ---- who calls --------------------------------------------------------------------------------- */

/* The drop-in's own record of a thread, in the thread's own TLS: zero when the thread is made. */
/* In order of use, so that a creation, and a call, touch few lines. */
struct kbi_posix_thread {
	/* the thread itself; at its start and end */
	pthread_t self;       /* 0: not asked yet */
	void *exit_value;     /* what it gave pthread_exit */
	struct __jmp_buf_tag *frame; /* where its first function was called */
	struct kbi_task *hidden; /* its descriptor, from its first vfork to its end; */
	uint8_t forks, vforks;   /* it is in libc's fork, so is its child; how many children have its place, nested */
	uint8_t exiting;      /* it has called pthread_exit, or was cancelled; */
	uint8_t at_once;      /* or ends by the system call exit: nothing of the program's runs */
	uint8_t c11;          /* made by thrd_create: the result is an int */
	uint8_t system_scope; /* made with PTHREAD_SCOPE_SYSTEM, and lightweight all the same */
	uint8_t process_scope; /* made with PTHREAD_SCOPE_PROCESS */
	a8 owns;              /* posix/bind: descriptors send it signals */
	bool lets_in;         /* it sets the kernel's mask, in brackets */
	a32 bound;            /* posix/bind: why it keeps its kernel thread, enum kbi_bind_why; 0: it does not */
	a32 pin_due;          /* posix/affinity: another thread has set its affinity, and it has not heard of that yet */
	int policy;           /* only remembered, for the functions that ask */
	int priority;
	uint32_t in_handler;  /* handlers of the program on it that have not returned; */
	uint32_t handled;     /* that have run on it; */
	/* calls that may block */
	uint32_t ending;      /* of these, without SA_RESTART; */
	uint32_t seen;        /* handled, when a blocking call last looked */
	uint32_t settled;     /* kbi_call_changes, 0: none, when it last asked for the mode and time limit */
	int settled_fd;       /* of this */
	struct kbi_hold *held; /* what its call holds: a handler of the program's ends that; NULL: nothing */
	size_t n_held;
	a32 talk;             /* io/talk: with which number */
	int drained;          /* descriptor + 1 of its last receive, if that got less than it had room for */
	uint8_t yields;       /* how many, for the next time that the kernel's other threads have their turn */
	uint8_t ring_told;    /* posix/issuer: the flags of the ring that it maps next were seen */
	uint8_t short_waits;  /* the last one for a descriptor was */
	uint8_t luck;         /* calls that found something after others had run: 0 if hardly any; */
	uint8_t waits;        /* and how many calls had to wait */
	int libcs_held;       /* libc's mutexes that it holds */
	struct kbi_guardian *guardian; /* stands in for it where such a mutex is robust and shared */
	/* handlers */
	const siginfo_t *raises; /* a signal that it sends itself, in brackets: handled at once when it comes */
	uint64_t mask_outside; /* its mask before the first handler that has not returned */
	bool apart;            /* such a handler has interrupted a frame of the runtime's that was apart (core/preempt) */
	stack_t alternate;     /* its alternate signal stack; no ss_sp: none */
	stack_t entered;       /* the one that a handler was last called on */
	/* a kernel thread that our pthread_create made by libc's */
	kb_sem_t ended;       /* posted at its end, so that a lightweight joiner need not block in libc */
	a32 kernel;
	/* seldom */
	uint32_t sentry_seen;
	struct kbi_sentry *sentry; /* where it sleeps, and for what */
	void *robust;         /* the list of libc's mutexes that it has given the kernel itself */
	char *strtok_at;      /* where strtok goes on */
	struct kbi_unsafe_own *own; /* results of posix/unsafe, or NULL */
	a64 own_timers;       /* posix/bind: timers of its own that send it signals */
};

extern __thread struct kbi_posix_thread kbi_posix_me __attribute__((tls_model("initial-exec")));

/* The caller is the child of a vfork of ours. */
static inline bool kbi_posix_in_vfork(void)
{
	return kbi_unlikely(kbi_posix_me.vforks > 0);
}

/* pthread_self() for little: the drop-in needs it at every wait. */
static inline pthread_t kbi_posix_self(void)
{
	if (kbi_unlikely(!kbi_posix_me.self))
		kbi_posix_me.self = pthread_self();
	return kbi_posix_me.self;
}

/* true: this process was forked from one whose runtime ran; it goes on with libc's kernel threads. */
extern bool kbi_posix_forked;
/* Some thread has had a deputy, or a file for its name: each that ends looks whether it has. */
extern a32 kbi_posix_helped;
/* In such a process, before an object is waited for or its waiters are woken. */
void kbi_orphan_mutex(kb_mutex_t *m);
void kbi_orphan_cond(kb_cond_t *c);
void kbi_orphan_sem(kb_sem_t *s);
void kbi_orphan_rwlock(kb_rwlock_t *l);
void kbi_orphan_once(kb_once_t *o);
void kbi_orphan_barrier(kb_barrier_t *b);
void kbi_orphan_all(void);
/* A kernel thread was made by libc at our request. */
extern bool kbi_posix_made_kernel;

/* The caller if it is a lightweight thread, else NULL: then the kernel thread itself may block. */
static inline struct kbi_task *kbi_posix_light(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self && (kbi_likely(self->vp != NULL) || kbi_handoff_end_found(self)) ? self : NULL;
}

/* The record of any thread whose pthread_t is known and that has not been joined. */
struct kbi_posix_thread *kbi_posix_record(pthread_t t);
/* Its descriptor if it is a lightweight thread; NULL: a kernel thread, or (*gone) one that has been joined. */
struct kb_thread *kbi_posix_thread(pthread_t t, bool *gone);
/* Is it a lightweight thread's of the program, which has a number and has not ended? */
bool kbi_posix_lives(const struct kb_thread *t);
/* The lightweight thread that has the number; NULL: none (a kernel thread's, or nobody's). */
struct kb_thread *kbi_posix_find(long number);
/* Any thread that has used our objects, also a kernel thread; NULL: it has not. */
struct kbi_task *kbi_posix_task(pthread_t t);
/* Signals on their way to the caller for a cancellation have arrived. It has been unwound or has returned. */
void kbi_posix_settle(void);
/* The number that libc's mutexes take for their owner, of the caller. */
int kbi_posix_owner_tid(void);

/* ---- time -------------------------------------------------------------------------------------- */

/* What the program gets for the kernel's result, an int. */
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

/* Where libc looks at nanoseconds when it is about to wait: what is before 1970 is over whatever they are. */
static inline bool kbi_posix_time_ok_or_over(const struct timespec *t)
{
	return t->tv_sec < 0 || kbi_posix_time_ok(t);
}

static inline bool kbi_posix_clock_ok(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* The deadline of a wait of that length; NULL: none. */
static inline uint64_t kbi_posix_after(const struct timespec *t)
{
	return t ? kbi_timer_after(kbi_timer_ns(t->tv_sec, t->tv_nsec)) : KBI_FOREVER;
}

/* For waits by sync's objects. */
static inline uint64_t kbi_posix_deadline(clockid_t clock, const struct timespec *abstime)
{
	if (clock == CLOCK_REALTIME)
		return kbi_waitq_real(abstime->tv_sec, abstime->tv_nsec);
	return kbi_timer_deadline(clock, abstime->tv_sec, abstime->tv_nsec);
}

/* ---- suspension points --------------------------------------------------------------------------- */

/* Why a wait should end early: ECANCELED (only for functions that are cancellation points), EINTR (a signal
 * is there for this thread), 0. Used as kbi_until.stop. */
int kbi_posix_stop(struct kbi_task *self);
int kbi_posix_stop_signal(struct kbi_task *self);

static inline struct kbi_until kbi_posix_until(uint64_t deadline)
{
	return (struct kbi_until){ deadline, kbi_posix_stop_signal };
}

/* For waits that a signal does not end: its handler runs while the thread keeps its place. */
int kbi_posix_stop_in_place(struct kbi_task *self);
static inline struct kbi_until kbi_posix_until_granted(uint64_t deadline)
{
	return (struct kbi_until){ deadline, kbi_posix_stop_in_place };
}

static inline struct kbi_until kbi_posix_until_cancelled(uint64_t deadline)
{
	return (struct kbi_until){ deadline, kbi_posix_stop };
}

/* What kbi_posix_stop_signal would say of a thread to which no signal was sent, in line. */
static inline bool kbi_posix_calm(void)
{
	struct kbi_task *self = kbi_self_raw();

	return kbi_likely(!self || !a_load_rlx(&kbi_thread_of(self)->signals.pending));
}

/* Acts on a pending pthread_cancel of the caller: at the beginning of a cancellation point, and at its end if
 * the wait stopped for that. May unwind the caller. */
void kbi_cancel_act(void);
/* Where libc's mark is, from the thread's pthread_t; 0: unknown. And the bytes of its state and type, if they are not in
 * the mark's word. */
extern ptrdiff_t kbi_cancel_at, kbi_cancel_state_at;
/* The bits of glibc's word. */
enum {
	KBI_CANCEL_DISABLED = 1,
	KBI_CANCEL_ASYNC = 2, /* by the program, or by libc around a system call */
	KBI_CANCEL_CANCELING = 4,
	KBI_CANCEL_CANCELED = 8,
	KBI_CANCEL_EXITING = 16,
};

static inline a32 *kbi_cancel_word(pthread_t t)
{
	return (a32 *)(void *)((char *)t + kbi_cancel_at);
}

/* The thread's word, with the bits of state and type in any libc. */
static inline uint32_t kbi_cancel_bits(pthread_t t)
{
	const volatile uint8_t *two = (const volatile uint8_t *)(void *)((char *)t + kbi_cancel_state_at);
	uint32_t word = a_load_rlx(kbi_cancel_word(t));

	if (kbi_unlikely(kbi_cancel_state_at))
		word |= (two[0] ? KBI_CANCEL_DISABLED : 0u) | (two[1] ? KBI_CANCEL_ASYNC : 0u);
	return word;
}

static inline bool kbi_cancel_pending(void)
{
	enum { LOOKED_AT = KBI_CANCEL_DISABLED | KBI_CANCEL_CANCELED | KBI_CANCEL_EXITING };
	pthread_t self = kbi_posix_self();

	return kbi_cancel_at && kbi_unlikely((a_load_rlx(kbi_cancel_word(self)) & LOOKED_AT) == KBI_CANCEL_CANCELED) &&
	       !(kbi_cancel_bits(self) & KBI_CANCEL_DISABLED);
}

/* The same, and it is to act anywhere. */
static inline bool kbi_cancel_async(void)
{
	return kbi_cancel_pending() && (kbi_cancel_bits(kbi_posix_self()) & KBI_CANCEL_ASYNC);
}

/* From 2.41 on libc's system calls do not say in the word that they may be cancelled: its handler looks where the thread
 * is. */
bool kbi_cancel_goes_by_place(void);

static inline void kbi_cancel_test(void)
{
	if (kbi_unlikely(kbi_cancel_pending()))
		kbi_cancel_act();
}

/* The block of a new thread, which may have served one that was cancelled. */
void kbi_cancel_fresh(pthread_t t);
void kbi_cancel_find(void);
/* Before destructors of an ending thread run. */
void kbi_cancel_over(void);

/* After a suspension: signals that were sent meanwhile and the thread's own signal mask take effect on the
 * kernel thread it came back on. true: a handler without SA_RESTART ran: the call returns EINTR where it may.
 * errno is kept. */
bool kbi_signal_resumed_slow(void);
extern a32 kbi_signal_watch; /* some thread has a mask of its own, or a signal was sent to one */
/* What a thread is to do before it goes on, beside its signals: has it, and does it. */
struct kbi_signal_errand {
	bool (*has)(void);
	void (*run)(void);
};
extern aptr kbi_signal_errand; /* const struct kbi_signal_errand; NULL: nobody has any */
static inline bool kbi_signal_resumed(void)
{
	return kbi_unlikely(a_load_rlx(&kbi_signal_watch)) && kbi_signal_resumed_slow();
}
/* The first half of that, where no handler may run yet: the kernel thread that the caller has come back on has its mask. */
void kbi_signal_bring_mask(void);
/* Called there where the caller's pin_due says so; it may keep its kernel thread afterwards. posix/affinity. */
extern void (*kbi_signal_pins)(void);
/* What the kernel has sent the caller's kernel thread for a call of the caller's, such as SIGPIPE, and the caller blocks:
 * the kernel thread is about to be another's. */
void kbi_signal_claim(int sig);
/* self keeps its kernel thread from here on, which has its signals; and does not any more. Idempotent. */
void kbi_signal_bound_begins(struct kbi_task *self);
void kbi_signal_bound_undone(struct kbi_task *self);
/* self's turn is over, core/quantum says, and it may be suspended here: others run. Handlers may run, too. */
KBI_SWITCHES void kbi_posix_end_turn(struct kbi_task *self);
/* The caller is a lightweight thread that may be suspended here: not a handler, which may have interrupted our own
 * library or libc with a lock held. */
static inline bool kbi_call_is_outside(const struct kbi_task *self)
{
	return self && self->vp && a_load_rlx(&self->np) <= 0 && !kbi_posix_me.in_handler;
}
/* The same, when a turn that is over has ended. */
static inline bool kbi_call_may_wait(void)
{
	struct kbi_task *self = kbi_self_raw();

	if (!kbi_call_is_outside(self))
		return false;
	if (kbi_quantum_is_over(self)) {
		kbi_posix_end_turn(self);
		return self->vp != NULL; /* it may keep its kernel thread from then on (posix/affinity) */
	}
	return true;
}
/* Of a function of ours that suspends nobody, and so is where no thread is left: a turn that is over ends here. Before any
 * thread is looked up. */
static inline void kbi_posix_let_turn_end(void)
{
	(void)kbi_call_may_wait();
}
/* From now on a thread that runs looks up when its kernel thread is sent libc's signal for cancellation. */
void kbi_signal_listen(void);
/* Sends that. EAGAIN: the user has as many signals queued as he may (RLIMIT_SIGPENDING). */
int kbi_signal_knock(int tid);
/* kbi_preempt_is_apart from now on: its handler follows. */
void kbi_signal_attention_apart(void);
/* The same to the caller's own, soon. */
void kbi_signal_knock_later(void);
/* Whom a signal is for. A descriptor serves now this thread, now that one: what is on its way to one that has ended is
 * not the next one's. t NULL: the process. */
struct kbi_signal_to {
	struct kb_thread *t;
	uint32_t number;
};
static inline struct kbi_signal_to kbi_signal_to(struct kb_thread *t)
{
	return (struct kbi_signal_to){ t, t ? a_load_rlx(&t->number) : 0 };
}
/* As pthread_kill, to a lightweight thread, which may have ended: 0, EINVAL, EAGAIN. */
int kbi_signal_kill(struct kbi_signal_to to, int sig);
/* As the kernel's rt_tgsigqueueinfo, to a lightweight thread: 0, EPERM, EINVAL, EAGAIN. */
int kbi_signal_queue(struct kbi_signal_to to, int sig, const siginfo_t *given);
/* In the child of fork, self or NULL: nothing is pending, and nobody else holds a lock of theirs. */
void kbi_signal_after_fork(struct kbi_task *self);
/* What a new thread gets from its creator. */
void kbi_signal_inherit(struct kb_thread *child, const sigset_t *given);
/* Before the runtime starts, and after it. */
void kbi_signal_start(void);
void kbi_signal_started(void);
/* Native waits run handlers from here on. */
void kbi_signal_native_start(void);
/* Instead of that: it does not start. */
void kbi_signal_not_started(void);
/* syscall(SYS_execve or SYS_execveat): what has come and is blocked goes along. -errno. */
long kbi_signal_exec_by_number(long n, const long a[6]);
/* The thread ends: handlers of what has come for it run. */
void kbi_signal_last(void);
/* At the end of a thread: what was sent to it and not handled. */
void kbi_signal_thread_ends(void);
/* In the child of fork: the caller's alternate stack is its kernel thread's. */
void kbi_signal_stack_after_fork(void);

/* 0, EINVAL, EPERM: as the kernel would answer sched_setscheduler. */
int kbi_about_may_schedule(int policy, int priority);
/* Is its real-time policy the kernel's affair? Of a thread that asked for PTHREAD_SCOPE_SYSTEM, unless
 * the user has said that this means nothing. */
bool kbi_about_is_kernels(bool system_scope);
/* A thread is about to have this policy: with a real-time one it waits before those of a lower priority, everywhere, from
 * now on. */
void kbi_about_expect(int policy);
/* What the kernel says of the caller's kernel thread. */
void kbi_about_scheduling(int *policy, int *priority);
/* t's name. 0, or an errno. */
int kbi_about_name(struct kb_thread *t, char buf[16]);
/* The caller keeps its kernel thread, and has just got the policy that this has. */
void kbi_about_adopted(void);

/* ---- between the units ------------------------------------------------------------------------------ */

/* Explicit PTHREAD_SCOPE_PROCESS, PTHREAD_SCOPE_SYSTEM; and whether that makes a kernel thread at once. */
bool kbi_attr_is_process(const pthread_attr_t *attr);
bool kbi_attr_is_system(const pthread_attr_t *attr);
/* It may have processors or a signal mask: libc tells. */
bool kbi_attr_has_more(const pthread_attr_t *attr);
bool kbi_attr_wants_kernel_thread(const pthread_attr_t *attr);
/* Destructors of thread_local objects and of thread-specific data, on the thread at its end. */
void kbi_key_run_destructors(void);
void kbi_key_find(void);
/* Marks the robust mutexes that the ending thread holds: their next owner gets EOWNERDEAD. */
void kbi_delegate_thread_ends(void);
/* The calling lightweight thread's list of robust mutexes: the one it has set, or libc's; NULL: unknown. */
void *kbi_delegate_robust_list(void);
/* Another's. */
void *kbi_delegate_robust_list_of(const struct kb_thread *t);
/* 0 or EINVAL. NULL: libc's again. */
int kbi_delegate_set_robust_list(void *head, size_t size);
/* Before the runtime starts, on a kernel thread of libc's: where its block has the list of robust mutexes. */
void kbi_delegate_find(void);
/* Lock of a libc mutex without blocking the virtual processor: 0, ETIMEDOUT, or libc's error. */
KBI_SWITCHES int kbi_delegate_mutex_lock(pthread_mutex_t *m, clockid_t clock, const struct timespec *abstime);
/* Tries until it is not EBUSY. word: NULL, or 32 bits that change when it is worth another attempt. */
KBI_SWITCHES int kbi_delegate_wait(int (*attempt)(void *), void *object, const void *word, clockid_t clock,
				   const struct timespec *abstime);
/* The same; a long wait is stand_in's: -1, it cannot now; or the wait's result. */
KBI_SWITCHES int kbi_delegate_wait_long(int (*attempt)(void *),
					int (*stand_in)(void *, clockid_t, const struct timespec *), void *object,
					const void *word, clockid_t clock, const struct timespec *abstime);
/* The same for cancellation points, which handlers end, too: EINTR. So may stand_in: the caller has to look at signals and
 * cancellation. */
KBI_SWITCHES int kbi_delegate_wait_ending(int (*attempt)(void *),
					  int (*stand_in)(void *, clockid_t, const struct timespec *), void *object,
					  const void *word, clockid_t clock, const struct timespec *abstime);
/* The word has been changed: n of those in this process that sleep for it try again. It may be gone. */
void kbi_delegate_tell(const void *word, unsigned n);
/* Does anybody in this process sleep so? About. */
bool kbi_delegate_has_sleepers(void);
/* Robust, with priority inheritance or protection, or process-shared: libc's. */
static inline bool kbi_mutex_is_libcs(const pthread_mutex_t *m)
{
	return kbi_unlikely(m->__data.__kind & (16 | 32 | 64 | 128));
}
/* libc's word of flags in a condition variable. None of ours is shared. */
enum { KBI_COND_SHARED = 1, KBI_COND_MONOTONIC = 2, KBI_COND_FLAGS_UNKNOWN = 24 /* where, in bytes */ };
extern KBI_HIDDEN uint32_t kbi_cond_flags_at;
static inline uint32_t kbi_cond_flags(const pthread_cond_t *c)
{
	return *(const uint32_t *)(const void *)((const char *)c + kbi_cond_flags_at);
}
/* Finds where it is, by libc's own. In the constructor. */
void kbi_cond_learn(void);
/* An object that processes share is libc's; is its inside as it is used here? Learnt in the constructor, after the
 * condition variables' flags. Constant afterwards. */
enum kbi_shared { KBI_SHARED_MUTEX, KBI_SHARED_COND, KBI_SHARED_RWLOCK, KBI_SHARED_BARRIER, KBI_SHARED_SEM };
enum { KBI_SHARED_BARRIER_AT = 12, KBI_SHARED_SEM_AT = 8 }; /* the marks of these two, in bytes */
extern KBI_HIDDEN uint32_t kbi_shared_unknown; /* a bit for each kind that is not */
void kbi_shared_learn(void);
/* Tells it, once. ENOTSUP. */
int kbi_shared_refuse(enum kbi_shared kind);
static inline bool kbi_shared_is_known(enum kbi_shared kind)
{
	return kbi_likely(!(kbi_shared_unknown >> kind & 1));
}
/* A process-shared condition variable or barrier of libc's, for a lightweight thread. -1: no thread for that. */
KBI_SWITCHES int kbi_proxy_cond(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *abstime);
KBI_SWITCHES int kbi_proxy_barrier(pthread_barrier_t *b);
/* libc's function for a wait at its condition variable. clock -1: that which c has. */
int kbi_proxy_cond_in_libc(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *abstime);
/* The same for a semaphore: as sem_wait, sem_clockwait, but returns the error. EINTR: the caller was sent a signal, or is
 * cancelled, and has not got it; who looks once more leaves nobody asleep whom a post should have woken. */
KBI_SWITCHES int kbi_proxy_sem(void *s, clockid_t clock, const struct timespec *abstime);
/* The same for a readers-writer lock, without EINTR. */
KBI_SWITCHES int kbi_proxy_read(void *l, clockid_t clock, const struct timespec *abstime);
KBI_SWITCHES int kbi_proxy_write(void *l, clockid_t clock, const struct timespec *abstime);
/* From now on the kernel marks the calling lightweight thread's robust mutexes when the process is killed, and their
 * owner is a kernel thread's number. It holds none of libc's mutexes. */
KBI_SWITCHES void kbi_guardian_begin(void *robust_head);
void kbi_guardian_end(void);
/* A kernel thread for such a purpose, nobody's to join; it blocks all signals first. */
int kbi_guardian_start(pthread_t *id, void *(*body)(void *), void *arg);
void kbi_guardian_block_signals(void);
/* With its process, which has a successor. */
bool kbi_guardian_may_be_lost(void);
/* Bits of who is parked at a word: a sentry wakes only its own, who know that others may have missed that wake-up. */
enum { KBI_PARKED_FOR_A_WHILE = 1, KBI_PARKED_WITH_SENTRY = 2 };
/* A kernel thread waits at a word, which other processes change and ask the kernel to wake for, in the place of the
 * lightweight threads that sleep there. NULL: it cannot. */
KBI_SWITCHES struct kbi_sentry *kbi_sentry_begin(const uint32_t *word);
/* got: what the caller slept for; else somebody else may have it. */
void kbi_sentry_end(struct kbi_sentry *s, bool got);
/* While the word is `seen`, in which there is a mark for who changes it: until somebody does, here (kbi_delegate_tell) or
 * elsewhere, or a signal or `until` comes. Perhaps for nothing. */
KBI_SWITCHES void kbi_sentry_sleep(struct kbi_sentry *s, uint32_t seen, uint64_t until);
/* trylock and unlock of a libc mutex by libc. */
KBI_SWITCHES int kbi_delegate_mutex_trylock(pthread_mutex_t *m);
int kbi_delegate_mutex_unlock(pthread_mutex_t *m);
/* The jump of libc's unwinders. pthread.h shows the three to code without exceptions only, and the fourth under a name
 * that changes with its version. */
void __pthread_register_cancel(__pthread_unwind_buf_t *buf);
void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf);
void __pthread_unwind_next(__pthread_unwind_buf_t *buf) KBI_NORETURN;
int kbi_posix_setjmp(void *jump, int keeps_mask) __asm__("__sigsetjmp") __attribute__((returns_twice, nothrow));

/* The frame of a thread's first function; runs fn(arg) and returns its result, or pthread_exit's. */
void *kbi_posix_frame(void *(*fn)(void *), void *arg);
/* As the system call exit ends a kernel thread: no cleanup handlers, no destructors, the result is NULL. */
void kbi_posix_exit_by_number(void) KBI_NORETURN;
/* A thread that is a kernel thread of libc's. bound: what it has of its creator, enum kbi_bind_why. */
int kbi_kernel_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg, bool c11,
		      uint32_t bound);
/* A lightweight thread waits here until libc's join is short: 0, ETIMEDOUT. Or it has been made: *joined, or its error. */
KBI_SWITCHES int kbi_kernel_join(pthread_t id, void **result, uint64_t deadline, bool *joined);
void kbi_fork_init(void);
/* The end of the thread that came through fork and is now a kernel thread's only one. */
void kbi_fork_thread_ends(void) KBI_NORETURN;

#endif
