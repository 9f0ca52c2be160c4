/* posix/call_priv.h - shared by the units call, call_wait, _queue, _rw, _poll, _child,
 * _blocking, _close and call_number: calls that may block in the kernel, made so that they block a
 * single lightweight thread and not its virtual processor.
 *
 *  1. Try without blocking, by a system call of our own. In the common case this is all. A thread
 *    that took all data the last time begins with 2, which usually saves a system call that finds
 *    nothing.
 *  2. If nothing is there: let other ready threads run once; try again.
 *  3. Sleep until the descriptor is ready (io/ready); try again.
 *  4. A call without a non-blocking form is libc's call; meanwhile the virtual processor is left to
 *    other threads.
 *
 * A handler of the program that has run on the thread ends the call with EINTR where it would on
 * libc; if bytes were moved by then, their number is the result instead. A cancellation is acted
 * upon while the call waits. A descriptor is never made non-blocking: other processes may share it.
 * Results are the kernel's: 0 or more, or a negative errno. */
#ifndef KBI_CALL_PRIV_H
#define KBI_CALL_PRIV_H

#include "posix/posix.h"

#include <aio.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <fcntl.h>

#include "core/slice.h"
#include "io/talk.h"

/* ---- libc's originals --------------------------------------------------------------------- */

struct kbi_call_originals {
#define TRANSFER(result, name, parameters, ...) result (*name) parameters;
#define POLL(result, name, parameters, ...) result (*name) parameters;
#define APART(result, name, parameters, ...) result (*name) parameters;
#define LENT(result, name, parameters, ...) result (*name) parameters;
#define OPENS(result, name, parameters, ...) result (*name) parameters;
#define DISK(result, name, number, parameters, ...) result (*name) parameters;
#define GIVEN(result, name, parameters, ...) result (*name) parameters;
#define AT_ONCE(result, name, parameters, ...) result (*name) parameters;
#define HAND(result, name, parameters, ...) result (*name) parameters;
#include "posix/call.def"
};
extern struct kbi_call_originals kbi_call_originals;

#define KBI_CALL_REAL(name) \
	((__typeof__(kbi_call_originals.name))(kbi_likely(kbi_call_originals.name) \
		? (void *)kbi_call_originals.name \
		: kbi_libc_original(#name, (void **)&kbi_call_originals.name)))

/* Defines a second name of a wrapper, whose own name in C is `function`. */
#define KBI_CALL_ALIAS(alias_, of, function) \
	extern __typeof__(function) kbi_alias_##alias_ __asm__(#alias_) KBI_POSIX_COPY(function) \
		__attribute__((alias(#of), visibility("default")))

/* Claims the signal that the kernel sends the caller with this result; the signal waits if the
 * caller blocks it. Returns r. */
static inline long kbi_call_told(long r)
{
	if (kbi_unlikely(r == -EPIPE || r == -EFBIG))
		kbi_signal_claim(r == -EPIPE ? SIGPIPE : SIGXFSZ);
	return r;
}

/* Turns the kernel's result into the program's, when the call is over. A handler of a signal that
 * the call has raised runs before the call returns. */
static inline long kbi_call_answer(long r)
{
	if (kbi_likely(r >= 0))
		return r;
	if (kbi_call_told(r) == -EPIPE || r == -EFBIG)
		kbi_signal_resumed();
	errno = (int)-r;
	return -1;
}

/* Turns the result of libc's function into the kernel's. */
static inline long kbi_call_result(long r)
{
	return r < 0 ? -errno : r;
}

/* True if the caller may be suspended and its turn is not over (kbi_call_may_wait without ending a
 * turn). */
static inline bool kbi_call_may_go_on(void)
{
	struct kbi_task *self = kbi_self_raw();

	return kbi_call_is_outside(self) && !kbi_quantum_is_over(self);
}

/* ---- what a descriptor is: call.c --------------------------------------------------------- */

/* The kind of a descriptor, as of the last look: a guess, which is right or is found wrong without
 * harm. Written by any thread. */
enum kbi_call_kind {
	KBI_CALL_UNKNOWN,
	KBI_CALL_FILE,   /* never waits: regular files, /dev/null and similar devices */
	KBI_CALL_SOCKET, /* MSG_DONTWAIT works */
	KBI_CALL_STREAM, /* RWF_NOWAIT works: pipes, and many files that libc's functions create */
	KBI_CALL_OTHER,  /* poll, then read or write */
	KBI_CALL_TTY,    /* like OTHER; a terminal */
	KBI_CALL_DISK,   /* a FILE with O_DSYNC, O_SYNC or O_DIRECT: a write waits for the disk */
	KBI_CALL_OPENED, /* not looked at yet, but no DISK: opened without these flags */
	KBI_CALL_KINDS = 7,
	KBI_CALL_WAITS = 8,  /* had neither O_NONBLOCK nor a receive time limit at the last look */
	KBI_CALL_NO_NOWAIT_READ = 16, /* a STREAM without RWF_NOWAIT for reading */
	KBI_CALL_NO_NOWAIT_WRITE = 32,
	KBI_CALL_NONBLOCK = 64, /* had O_NONBLOCK at the last look */
	KBI_CALL_DIRECT = 128,  /* a DISK with O_DIRECT: reads wait, too */
};
enum { KBI_CALL_DESCRIPTORS = 1 << 20 };
extern a8 kbi_call_kinds[KBI_CALL_DESCRIPTORS];

/* Asks the kernel and remembers the kind. A closed descriptor is a FILE, so that libc reports the
 * error. */
unsigned kbi_call_look_up(int fd);

static inline unsigned kbi_call_known(int fd)
{
	return (unsigned)fd < KBI_CALL_DESCRIPTORS ? a_load_rlx(&kbi_call_kinds[fd]) : KBI_CALL_UNKNOWN;
}

/* True if the kind is neither UNKNOWN (0) nor OPENED (7). */
static inline bool kbi_call_was_looked_at(unsigned flags)
{
	return (flags + 1) & (KBI_CALL_KINDS - 1);
}

static inline unsigned kbi_call_flags(int fd)
{
	unsigned k = kbi_call_known(fd);

	return kbi_likely(kbi_call_was_looked_at(k)) ? k : kbi_call_look_up(fd);
}

static inline void kbi_call_note(int fd, unsigned flags)
{
	if ((unsigned)fd < KBI_CALL_DESCRIPTORS)
		a_store_rlx(&kbi_call_kinds[fd], (uint8_t)flags);
}

/* True if neither reads nor writes of it wait. */
static inline bool kbi_call_is_file(int fd)
{
	return (kbi_call_flags(fd) & KBI_CALL_KINDS) == KBI_CALL_FILE;
}

/* The same, but only if remembered. */
static inline bool kbi_call_was_file(int fd)
{
	return (kbi_call_known(fd) & KBI_CALL_KINDS) == KBI_CALL_FILE;
}

/* True if it is remembered as a file: when there is no room left the kernel writes a part, and that
 * is the result. */
static inline bool kbi_call_is_on_disk(int fd)
{
	unsigned kind = kbi_call_known(fd) & KBI_CALL_KINDS;

	return kind == KBI_CALL_FILE || kind == KBI_CALL_DISK;
}

/* True unless it is remembered as a socket, pipe or terminal. */
static inline bool kbi_call_may_be_file(unsigned flags)
{
	unsigned kind = flags & KBI_CALL_KINDS;

	return kind <= KBI_CALL_FILE || kind >= KBI_CALL_DISK;
}

/* True if it is remembered as a file whose reads, or writes, do not wait for the disk. */
static inline bool kbi_call_is_cached(int fd, bool reads)
{
	unsigned k = kbi_call_known(fd) & (KBI_CALL_KINDS | KBI_CALL_DIRECT);

	return k == KBI_CALL_FILE || k == KBI_CALL_OPENED || (reads && k == KBI_CALL_DISK);
}

/* The same for a call with flags, whose descriptor may not be a file. */
static inline bool kbi_call_is_quick(int fd, int flags, bool reads)
{
	if (RWF_NOWAIT & flags) /* the program asks not to wait */
		return true;
	return !(flags & (RWF_DSYNC | RWF_SYNC)) && kbi_call_is_cached(fd, reads) &&
	       (kbi_call_known(fd) & KBI_CALL_KINDS) != KBI_CALL_OPENED;
}

/* Notes fd, the result of a function that opens files with the flags `how`; returns fd. */
static inline int kbi_call_opened(int fd, int how)
{
	if (fd >= 0 && !kbi_posix_in_vfork())
		kbi_call_note(fd, kbi_unlikely(how & (O_DSYNC | O_DIRECT)) ? KBI_CALL_UNKNOWN
			: KBI_CALL_OPENED);
	return fd;
}

/* Defines a function that programs call. Its own frame is empty, so that a call that goes to libc
 * at once costs a few instructions. `plain` serves callers before the first thread and in handlers,
 * and may have to look libc's original up; a lightweight thread has all originals already. libc's
 * headers redirect and inline some of these names; so the definitions have names of their own in
 * C. */
#define KBI_CALL_DEFINE(room, result, name, parameters, arguments, direct, work) \
	static KBI_NOINLINE result plain_##name parameters \
	{ \
		return KBI_CALL_REAL(name) arguments; \
	} \
	static KBI_NOINLINE result work_##name parameters \
	{ \
		return (result)kbi_call_answer(work); \
	} \
	KBI_POSIX_API result kbi_call_##room##_##name parameters __asm__(#name); \
	result kbi_call_##room##_##name parameters \
	{ \
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return plain_##name arguments; \
		if (direct) \
			return kbi_call_originals.name arguments; \
		return work_##name arguments; \
	}

/* True if nothing can have come yet, so that a try is in vain before other threads have run. */
static inline bool kbi_call_is_empty(int fd)
{
	return kbi_unlikely(kbi_talk_is_on(&kbi_posix_me.talk, (uint32_t)fd)) &&
		!(kbi_call_known(fd) & KBI_CALL_NONBLOCK);
}

/* Notes that a call which could have waited has taken something in, or given something out: the
 * caller's turn may end. Not after an error: the kernel may have sent the caller a signal with the
 * error, which must not hit another thread. */
static inline void kbi_call_has_taken(long r)
{
	if (kbi_likely(r >= 0))
		kbi_slice_call(KBI_SLICE_TAKEN);
}

static inline void kbi_call_has_given(long r)
{
	if (kbi_likely(r >= 0))
		kbi_slice_given();
}

/* Notes that the first try found something. */
static inline void kbi_call_found(int fd, long r)
{
	kbi_talk_is_over(&kbi_posix_me.talk, (uint32_t)fd);
	kbi_call_has_taken(r);
}

/* Returns whether fd has O_NONBLOCK now, and remembers it as a guess. */
bool kbi_call_nonblocking(int fd);
/* How often this process has changed the mode or the time limit of any descriptor (several numbers
 * may mean the same file). Counted after the change: a thread that reads the count before it asks
 * the kernel will notice a later change. */
extern a32 kbi_call_changes;

/* True if the socket option changes a time limit or the mode. */
static inline bool kbi_call_matters(int level, int what)
{
	/* SO_RCVTIMEO with 64-bit times, where SO_RCVTIMEO has another number */
	enum { RCVTIMEO_NEW = 66 };

	return kbi_unlikely(level == SOL_SOCKET ? what == SO_RCVTIMEO || what == RCVTIMEO_NEW :
						  level == IPPROTO_TCP && what == TCP_ULP);
}

/* Notes a receive of n bytes without flags with result r. If r is less than n, a stream is
 * drained. */
static inline void kbi_call_note_received(int fd, long r, size_t n)
{
	kbi_posix_me.drained = r > 0 && (size_t)r < n ? fd + 1 : 0;
}

static inline void kbi_call_changed(void)
{
	/* release: pairs with the acquire in settle_call (call_wait.c) */
	a_add_acqrel(&kbi_call_changes, 1);
}

/* Notes F_SETFL: a file may have gained or lost O_DIRECT. */
static inline void kbi_call_mode_set(int fd)
{
	if (kbi_call_may_be_file(kbi_call_known(fd)))
		kbi_call_note(fd, KBI_CALL_UNKNOWN);
	kbi_call_changed();
}

/* ---- the wait: call_wait.c ---------------------------------------------------------------- */

struct kbi_call {
	/* Tries once, on any VP. Returns the result; -EAGAIN: nothing yet, perhaps after a part (done);
	 * -EINTR: the same after a signal. */
	long (*attempt)(struct kbi_call *c);
	/* NULL, or called once before the thread sleeps: 0, or the result */
	long (*settle)(struct kbi_call *c);
	int fd;                /* used by an attempt: of the file that the call holds */
	int number;            /* the descriptor number that the program has given */
	int out;               /* 1 + a private copy, used by an attempt that may block; 0: none */
	uint64_t since;        /* kbi_hold_now before the first attempt, if that may move a part */
	struct kbi_hold *holds; /* NULL: none yet; an array of n_set for a set */
	struct pollfd *copy;   /* with room for a copy of the set */
	short events;
	uint8_t cancels;       /* the call is a cancellation point */
	uint8_t at_once;       /* the call itself says that it does not wait */
	uint8_t never_restarts; /* any handler ends it, even with SA_RESTART */
	uint8_t looks;         /* a kind of read: the descriptor is looked up again before a sleep */
	uint8_t waits_anyway;  /* O_NONBLOCK is ignored */
	uint8_t empty;         /* no first try was made, as nothing can have come */
	uint8_t slept;         /* nothing had come even after other threads had run */
	uint8_t shut;          /* a socket without further input: a blocking call returns at once */
	uint8_t inside;        /* an attempt is in progress: other threads cannot run */
	int time_limit;        /* SO_RCVTIMEO or SO_SNDTIMEO; 0: none */
	long late;             /* the result when the time is over */
	uint64_t deadline;     /* or KBI_FOREVER */
	const struct pollfd *set; /* instead of fd and events: ready if any of the set is */
	nfds_t n_set;
	size_t done;           /* bytes moved so far: the result unless the call is cancelled */
};

#define KBI_CALL(...) { __VA_ARGS__, .late = -EAGAIN, .deadline = KBI_FOREVER }

static inline bool kbi_call_again(long r)
{
	return kbi_unlikely(r == -EAGAIN || r == -EINTR);
}

/* Leaves the brackets of an attempt, if inside, before a call that may block. Returns the
 * descriptor to use. */
int kbi_call_step_out(struct kbi_call *c);
/* Enters the brackets again and drops the copy. False: there was no copy, or the file is gone. */
bool kbi_call_step_in(struct kbi_call *c);

/* Waits and tries until there is a result. Call after a first attempt that returned -EAGAIN or
 * -EINTR. Acts on handlers and, if c->cancels, on cancellation. */
KBI_SWITCHES long kbi_call_wait(struct kbi_call *c);
/* Waits until poll(2) says that fd has any of the events: 0 or a negative errno; -EAGAIN at once if
 * fd has O_NONBLOCK. */
KBI_SWITCHES long kbi_call_await(int fd, short events, bool cancels);

/* Connects a TCP socket in blocking mode: begins without blocking, waits until it is connected or
 * refused; *r: the kernel's result. False: the socket is of another kind, or io_uring is missing,
 * and nothing has been done. */
KBI_SWITCHES bool kbi_call_connect(int fd, const struct sockaddr *to, socklen_t len, bool cancels,
	long *r);

/* Enters the gate of a descriptor: between a look and the call that takes what was seen, only one
 * thread of this process is inside. False: it took too long; go on without the gate. */
KBI_SWITCHES bool kbi_call_gate(int fd);
bool kbi_call_gate_now(int fd); /* does not wait */
void kbi_call_gate_open(int fd);

/* Copies of the program's descriptors for calls that block in libc or the kernel, which go on with
 * the copies when the program closes the originals. All -1: none. */
struct kbi_call_keeps {
	int own[2];
};
#define KBI_CALL_KEEPS(name) \
	struct kbi_call_keeps name __attribute__((cleanup(kbi_call_keep_no_more), unused)) = \
	{ { -1, -1 } }
/* Replaces *fd by a copy until the end of the block; if no copy can be made *fd stays as it is. */
void kbi_call_keep(struct kbi_call_keeps *k, int *fd);
void kbi_call_keep_no_more(struct kbi_call_keeps *k);

/* To be put around any call that closes a number for the program, or puts another file under it
 * (over): forgets the remembered kind; calls on the old file go on with that file
 * (call_close.c). */
struct kbi_call_closing {
	int fd;
	bool refused; /* it is a descriptor of the runtime, not the program's */
	bool told, stopped;
};
KBI_SWITCHES struct kbi_call_closing kbi_call_gives_up(int fd, bool over);
void kbi_call_has_given_up(struct kbi_call_closing *x);
/* A declaration: in force from here to the end of the block, which a cancellation may unwind. */
#define KBI_CALL_CLOSING(name, fd, over) \
	struct kbi_call_closing name __attribute__((cleanup(kbi_call_has_given_up), unused)) = \
	kbi_call_gives_up(fd, over)
/* Makes close and similar calls for syscall(), on any thread. False: it is another call. */
KBI_SWITCHES bool kbi_call_closes_by_number(long n, const long a[6], long *r);

/* ---- libc's call, with the VP left to others: call_blocking.c ----------------------------- */

void kbi_call_leave_vp(bool surely);
void kbi_call_lend_vp(struct kbi_handoff_habit *habit);
KBI_SWITCHES void kbi_call_rejoin(void);
static inline void kbi_call_come_back(const bool *unused)
{
	(void)unused;
	kbi_call_rejoin();
}
/* A declaration: the VP is left from here to the end of the block, which a cancellation may
 * unwind. */
#define KBI_CALL_BLOCKING(surely) \
	bool away __attribute__((cleanup(kbi_call_come_back), unused)) = \
	(kbi_call_leave_vp(surely), true)
/* The same for a call that may be over at once, in a function that makes calls of a single kind:
 * the VP is lent, or given up if such calls have lasted. */
#define KBI_CALL_LENT() \
	static struct kbi_handoff_habit habit; \
	bool away __attribute__((cleanup(kbi_call_come_back), unused)) = \
		(kbi_call_lend_vp(&habit), true)
/* Lets other threads run before the next try. True: a handler that ends the call has run. */
KBI_SWITCHES bool kbi_call_turn(bool cancels);

/* ---- time: call_poll.c -------------------------------------------------------------------- */

/* Reduces *t, the length of a wait, to the rest of it, as the kernel does; begun: the start by
 * kbi_timer_now. */
void kbi_call_count_down(struct timespec *t, uint64_t begun);

/* ---- the works ---------------------------------------------------------------------------- */

enum { N = 0, C = 1 }; /* `cancels` in call.def: no, yes */

/* True for a number of buffers that libc's own function should judge. */
static inline bool kbi_call_is_odd(int n)
{
	return kbi_unlikely(n <= 0 || n > 1024);
}

/* True for flags of libc's own function: queued errors come at once, and MSG_PEEK with MSG_WAITALL
 * cannot collect bytes in parts. */
static inline bool kbi_call_is_odd_recv(int flags)
{
	return kbi_unlikely((flags & MSG_ERRQUEUE) ||
		(flags & (MSG_PEEK | MSG_WAITALL)) == (MSG_PEEK | MSG_WAITALL));
}

KBI_SWITCHES long kbi_call_read(int fd, void *p, size_t n, bool cancels);
KBI_SWITCHES long kbi_call_write(int fd, const void *p, size_t n, bool cancels);
KBI_SWITCHES long kbi_call_readv(int fd, const struct iovec *v, int n, bool cancels);
KBI_SWITCHES long kbi_call_writev(int fd, const struct iovec *v, int n, bool cancels);
KBI_SWITCHES long kbi_call_recvfrom(int fd, void *p, size_t n, int flags, void *from,
	socklen_t *len, bool cancels);
KBI_SWITCHES long kbi_call_recvmsg(int fd, struct msghdr *m, int flags, bool cancels);
KBI_SWITCHES long kbi_call_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags,
	struct timespec *t, bool cancels);
KBI_SWITCHES long kbi_call_sendto(int fd, const void *p, size_t n, int flags, const void *to,
	socklen_t len, bool cancels);
KBI_SWITCHES long kbi_call_sendmsg(int fd, const struct msghdr *m, int flags, bool cancels);
KBI_SWITCHES long kbi_call_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, bool cancels);
KBI_SWITCHES long kbi_call_accept(int fd, void *from, socklen_t *len, int flags, bool cancels);
KBI_SWITCHES long kbi_call_poll(struct pollfd *fds, nfds_t n, int ms, bool cancels);
KBI_SWITCHES long kbi_call_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t,
	const sigset_t *set, bool cancels);
KBI_SWITCHES long kbi_call_epoll_wait(int fd, struct epoll_event *ev, int n, int ms,
	const sigset_t *set, bool cancels);
KBI_SWITCHES long kbi_call_epoll_wait2(int fd, struct epoll_event *ev, int n,
	const struct timespec *t, const sigset_t *set, bool cancels);
KBI_SWITCHES long kbi_call_select(int n, fd_set *in, fd_set *out, fd_set *x, struct timeval *t,
	bool cancels);
KBI_SWITCHES long kbi_call_pselect(int n, fd_set *in, fd_set *out, fd_set *x,
	const struct timespec *t, const sigset_t *mask, bool cancels);
KBI_SWITCHES long kbi_call_mq_receive(mqd_t q, char *p, size_t n, unsigned *priority,
	const struct timespec *t, bool cancels);
KBI_SWITCHES long kbi_call_mq_send(mqd_t q, const char *p, size_t n, unsigned priority,
	const struct timespec *t, bool cancels);
/* Returns -ENOSYS if it cannot be waited for like this. */
KBI_SWITCHES long kbi_call_waitpid(pid_t pid, int *status, int options, struct rusage *u,
	bool cancels);
KBI_SWITCHES long kbi_call_waitid(idtype_t type, id_t id, siginfo_t *info, int options,
	bool cancels);

#endif
