/* posix/call_priv.h - what the units call, call_wait, _queue, _transfer, _poll, _child, _apart and call_number
 * share: calls that may block in the kernel, made so that they block one lightweight thread and not its virtual processor.
 *
 *  1. Tried without blocking, by a system call of our own. In the common case that is all. Who took all there was
 *     the last time begins with 2: most often that saves a system call that finds nothing.
 *  2. Nothing there: other ready threads run once; tried again.
 *  3. The thread sleeps until its descriptor is ready (io/ready); tried again.
 *  4. What has no such form is libc's call, with the virtual processor left to others meanwhile.
 *
 * A handler of the program's that has run on the thread ends the call with EINTR where it would on libc; bytes moved
 * by then are the result instead. A cancellation is acted upon while it waits. A descriptor is never made
 * non-blocking: other processes may share it. Results are the kernel's: 0 or more, or a negative errno. */
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

/* ---- libc's originals ---------------------------------------------------------------------------- */

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
	((__typeof__(kbi_call_originals.name))(kbi_likely(kbi_call_originals.name) ? (void *)kbi_call_originals.name : \
						       kbi_libc_original(#name, (void **)&kbi_call_originals.name)))

/* A second name of a wrapper, whose own name in C is `function`. */
#define KBI_CALL_ALIAS(alias_, of, function) \
	extern __typeof__(function) kbi_alias_##alias_ __asm__(#alias_) KBI_POSIX_COPY(function) \
		__attribute__((alias(#of), visibility("default")))

/* With this result the kernel has sent the caller a signal, which waits for the caller if that blocks it. */
static inline long kbi_call_told(long r)
{
	if (kbi_unlikely(r == -EPIPE || r == -EFBIG))
		kbi_signal_claim(r == -EPIPE ? SIGPIPE : SIGXFSZ);
	return r;
}

/* What the program gets for the kernel's result, when the call is over. A handler of a signal that the call has raised
 * runs before the call returns. */
static inline long kbi_call_answer(long r)
{
	if (kbi_likely(r >= 0))
		return r;
	if (kbi_call_told(r) == -EPIPE || r == -EFBIG)
		kbi_signal_resumed();
	errno = (int)-r;
	return -1;
}

/* The kernel's result for what libc's function said. */
static inline long kbi_call_result(long r)
{
	return r < 0 ? -errno : r;
}

/* kbi_call_may_wait, where no turn is over. */
static inline bool kbi_call_may_go_on(void)
{
	struct kbi_task *self = kbi_self_raw();

	return kbi_call_is_outside(self) && !kbi_quantum_is_over(self);
}

/* ---- what a descriptor is: call.c -------------------------------------------------------------- */

/* A guess from the last look: right, or found out without harm. */
enum kbi_call_kind {
	KBI_CALL_UNKNOWN,
	KBI_CALL_FILE,   /* never to be waited for: regular files, /dev/null and its kin */
	KBI_CALL_SOCKET, /* MSG_DONTWAIT works */
	KBI_CALL_STREAM, /* RWF_NOWAIT works: pipes, many that libc has functions to make for */
	KBI_CALL_OTHER,  /* poll, then read or write */
	KBI_CALL_TTY,    /* the same, of a terminal */
	KBI_CALL_DISK,   /* a FILE with O_DSYNC, O_SYNC or O_DIRECT: a write waits for the disk */
	KBI_CALL_OPENED, /* not looked at yet, but no DISK: it was opened without these */
	KBI_CALL_KINDS = 7,
	KBI_CALL_WAITS = 8,  /* had neither O_NONBLOCK nor a time limit for receiving at the last look */
	KBI_CALL_NO_NOWAIT_READ = 16, /* STREAM, but not to read from */
	KBI_CALL_NO_NOWAIT_WRITE = 32,
	KBI_CALL_NONBLOCK = 64, /* had O_NONBLOCK at the last look */
	KBI_CALL_DIRECT = 128,  /* DISK, and reads wait, too: it has O_DIRECT */
};
enum { KBI_CALL_DESCRIPTORS = 1 << 20 };
extern a8 kbi_call_kinds[KBI_CALL_DESCRIPTORS];

/* Asks the kernel; what is not open is a FILE, so libc says so. Keeps the result. */
unsigned kbi_call_look_up(int fd);

static inline unsigned kbi_call_known(int fd)
{
	return (unsigned)fd < KBI_CALL_DESCRIPTORS ? a_load_rlx(&kbi_call_kinds[fd]) : KBI_CALL_UNKNOWN;
}

/* Neither UNKNOWN, which is 0, nor OPENED, which is 7. */
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

/* Neither a read nor a write of it waits. */
static inline bool kbi_call_is_file(int fd)
{
	return (kbi_call_flags(fd) & KBI_CALL_KINDS) == KBI_CALL_FILE;
}

/* As far as is known. */
static inline bool kbi_call_was_file(int fd)
{
	return (kbi_call_known(fd) & KBI_CALL_KINDS) == KBI_CALL_FILE;
}

/* As far as is known: when there is no room left the kernel writes a part, and that is the result. */
static inline bool kbi_call_is_on_disk(int fd)
{
	unsigned kind = kbi_call_known(fd) & KBI_CALL_KINDS;

	return kind == KBI_CALL_FILE || kind == KBI_CALL_DISK;
}

/* As far as is known: no socket, pipe or terminal. */
static inline bool kbi_call_may_be_file(unsigned flags)
{
	unsigned kind = flags & KBI_CALL_KINDS;

	return kind <= KBI_CALL_FILE || kind >= KBI_CALL_DISK;
}

/* As far as is known: reads, or writes, of it do not wait for the disk, or are none. */
static inline bool kbi_call_is_cached(int fd, bool reads)
{
	unsigned k = kbi_call_known(fd) & (KBI_CALL_KINDS | KBI_CALL_DIRECT);

	return k == KBI_CALL_FILE || k == KBI_CALL_OPENED || (reads && k == KBI_CALL_DISK);
}

/* The same of a call with flags, whose descriptor may be no file. */
static inline bool kbi_call_is_quick(int fd, int flags, bool reads)
{
	if (RWF_NOWAIT & flags) /* the program asks for it */
		return true;
	return !(flags & (RWF_DSYNC | RWF_SYNC)) && kbi_call_is_cached(fd, reads) &&
	       (kbi_call_known(fd) & KBI_CALL_KINDS) != KBI_CALL_OPENED;
}

/* A function that opens files has this result; how: its flags. */
static inline int kbi_call_opened(int fd, int how)
{
	if (fd >= 0 && !kbi_posix_in_vfork())
		kbi_call_note(fd, kbi_unlikely(how & (O_DSYNC | O_DIRECT)) ? KBI_CALL_UNKNOWN : KBI_CALL_OPENED);
	return fd;
}

/* A function that programs call: its own frame is none, so that what goes to libc at once costs a few instructions.
 * Before the first thread, and in handlers, `plain`; a lightweight thread has all originals already. libc's headers
 * redirect and inline some of these names; the definitions have names of their own. */
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

/* Nothing will have come yet: it does not pay to try before others have run. */
static inline bool kbi_call_is_empty(int fd)
{
	return kbi_unlikely(kbi_talk_is_on(&kbi_posix_me.talk, (uint32_t)fd)) && !(kbi_call_known(fd) & KBI_CALL_NONBLOCK);
}

/* A call that could have waited has taken something in, or given something out: its turn may end. Not with an
 * error: the kernel may have sent the caller a signal with it, which must not meet another thread. */
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

/* It was there at first. */
static inline void kbi_call_found(int fd, long r)
{
	kbi_talk_is_over(&kbi_posix_me.talk, (uint32_t)fd);
	kbi_call_has_taken(r);
}

/* Does it have O_NONBLOCK now? Remembered as a guess. */
bool kbi_call_nonblocking(int fd);
/* How often this process has changed the mode or the time limit of a descriptor. Of any: several numbers may mean one
 * file. Counted when it is done, so who reads it before it asks the kernel will see that there is something new. */
extern a32 kbi_call_changes;

/* A socket's option that is such a thing. */
static inline bool kbi_call_matters(int level, int what)
{
	enum { RCVTIMEO_NEW = 66 }; /* with times of 64 bits, where SO_RCVTIMEO has another number */

	return kbi_unlikely(level == SOL_SOCKET ? what == SO_RCVTIMEO || what == RCVTIMEO_NEW :
						  level == IPPROTO_TCP && what == TCP_ULP);
}

/* A receive of n bytes without flags gave r. Less than could have come: if it is a stream, all there was. */
static inline void kbi_call_note_received(int fd, long r, size_t n)
{
	kbi_posix_me.drained = r > 0 && (size_t)r < n ? fd + 1 : 0;
}

static inline void kbi_call_changed(void)
{
	a_add_acqrel(&kbi_call_changes, 1);
}

/* F_SETFL: a file may have O_DIRECT now, or no longer. */
static inline void kbi_call_mode_set(int fd)
{
	if (kbi_call_may_be_file(kbi_call_known(fd)))
		kbi_call_note(fd, KBI_CALL_UNKNOWN);
	kbi_call_changed();
}

/* ---- the wait: call_wait.c ------------------------------------------------------------------------------ */

struct kbi_call {
	/* tries once, on any VP: the result; -EAGAIN: nothing yet, perhaps after a part (done); -EINTR: as that */
	long (*attempt)(struct kbi_call *c);
	/* NULL, or asked once before it sleeps: 0, or the result */
	long (*settle)(struct kbi_call *c);
	int fd;                /* what an attempt uses: of the file that the call holds */
	int number;            /* what the program has given */
	int out;               /* a copy of its own, 1 above, of an attempt that may block; 0: none */
	uint64_t since;        /* kbi_hold_now before the first attempt, if that may move a part */
	struct kbi_hold *holds; /* NULL: none yet. Of a set: as many */
	struct pollfd *copy;   /* and room for it */
	short events;
	uint8_t cancels;       /* a cancellation point */
	uint8_t at_once;       /* the call itself says that it does not wait */
	uint8_t never_restarts; /* any handler ends it */
	uint8_t looks;         /* of read's kind: what the descriptor is, is looked up again before a sleep */
	uint8_t waits_anyway;  /* O_NONBLOCK does not matter */
	uint8_t empty;         /* nothing has been tried: nothing will be there */
	uint8_t slept;         /* nothing was, when others had run */
	uint8_t shut;          /* of a socket: nothing can come any more, and the call that may block says so at once */
	uint8_t inside;        /* an attempt: others cannot run */
	int time_limit;        /* SO_RCVTIMEO, SO_SNDTIMEO; 0: none */
	long late;             /* the result when the time is over */
	uint64_t deadline;     /* KBI_FOREVER */
	const struct pollfd *set; /* instead of fd, events: any of them */
	nfds_t n_set;
	size_t done;           /* moved so far; a result then, unless it is cancelled */
};

#define KBI_CALL(...) { __VA_ARGS__, .late = -EAGAIN, .deadline = KBI_FOREVER }

static inline bool kbi_call_again(long r)
{
	return kbi_unlikely(r == -EAGAIN || r == -EINTR);
}

/* In an attempt that is about to make a call that may block: leaves the brackets, if it is in them. What to use. */
int kbi_call_step_out(struct kbi_call *c);
/* Back in, without the copy. False: it had none, or the file is gone. */
bool kbi_call_step_in(struct kbi_call *c);

/* The first attempt said so: waits and tries until there is a result. */
KBI_SWITCHES long kbi_call_wait(struct kbi_call *c);
/* Until poll(2) says that fd has one of the events: 0 or a negative errno; at once if fd has O_NONBLOCK. */
KBI_SWITCHES long kbi_call_await(int fd, short events, bool cancels);

/* connect of a socket that waits, begun without blocking, until it is there or refused: *r, the kernel's result. False:
 * this is none, or there is no such way here, and nothing has been done. */
KBI_SWITCHES bool kbi_call_connect(int fd, const struct sockaddr *to, socklen_t len, bool cancels, long *r);

/* Between a look and the call that takes what was seen only one thread of this process is inside for a descriptor.
 * False: it took too long; go on without. */
KBI_SWITCHES bool kbi_call_gate(int fd);
bool kbi_call_gate_now(int fd); /* at once, or not */
void kbi_call_gate_open(int fd);

/* For calls that block in libc or the kernel: copies of the program's descriptors, which they go on with. All -1: none. */
struct kbi_call_keeps {
	int own[2];
};
#define KBI_CALL_KEEPS(name) \
	struct kbi_call_keeps name __attribute__((cleanup(kbi_call_keep_no_more), unused)) = { { -1, -1 } }
/* *fd is a copy from now on, until the end of the block; if there is none it stays as it is. */
void kbi_call_keep(struct kbi_call_keeps *k, int *fd);
void kbi_call_keep_no_more(struct kbi_call_keeps *k);

/* Around whatever closes a number for the program, or puts another file under it (over): what is remembered of it is
 * forgotten, and calls that are about its file go on with that: call_close.c. */
struct kbi_call_closing {
	int fd;
	bool refused; /* it is not the program's */
	bool told, stopped;
};
KBI_SWITCHES struct kbi_call_closing kbi_call_gives_up(int fd, bool over);
void kbi_call_has_given_up(struct kbi_call_closing *x);
/* A declaration: from here to the end of the block, which a cancellation may unwind. */
#define KBI_CALL_CLOSING(name, fd, over) \
	struct kbi_call_closing name __attribute__((cleanup(kbi_call_has_given_up), unused)) = kbi_call_gives_up(fd, over)
/* close and its kin by syscall(), of any thread; false: none of them. */
KBI_SWITCHES bool kbi_call_closes_by_number(long n, const long a[6], long *r);

/* ---- libc's call, with the VP left to others: call_apart.c -------------------------------------------------- */

void kbi_call_leave_vp(bool surely);
void kbi_call_lend_vp(struct kbi_handoff_habit *habit);
KBI_SWITCHES void kbi_call_rejoin(void);
static inline void kbi_call_come_back(const bool *unused)
{
	(void)unused;
	kbi_call_rejoin();
}
/* A declaration: from here to the end of the block, which a cancellation may unwind. */
#define KBI_CALL_APART(surely) \
	bool away __attribute__((cleanup(kbi_call_come_back), unused)) = (kbi_call_leave_vp(surely), true)
/* The same where it may be over at once, in a function that makes calls of one kind: the VP is lent, or given if such calls
 * have lasted. */
#define KBI_CALL_LENT() \
	static struct kbi_handoff_habit habit; \
	bool away __attribute__((cleanup(kbi_call_come_back), unused)) = (kbi_call_lend_vp(&habit), true)
/* Others run before the call is tried once more. True: a handler has run that ends it. */
KBI_SWITCHES bool kbi_call_turn(bool cancels);

/* ---- time: call_poll.c ---------------------------------------------------------------------------------------- */

/* What is left of a wait of that length, as the kernel tells it; begun: when, by kbi_timer_now. */
void kbi_call_count_down(struct timespec *t, uint64_t begun);

/* ---- the works ------------------------------------------------------------------------------------------------ */

enum { N = 0, C = 1 }; /* of call.def */

/* libc's own is right: not a number of buffers. */
static inline bool kbi_call_is_odd(int n)
{
	return kbi_unlikely(n <= 0 || n > 1024);
}

/* Errors come at once, and what is looked at cannot be collected bit by bit. */
static inline bool kbi_call_is_odd_recv(int flags)
{
	return kbi_unlikely((flags & MSG_ERRQUEUE) || (flags & (MSG_PEEK | MSG_WAITALL)) == (MSG_PEEK | MSG_WAITALL));
}

KBI_SWITCHES long kbi_call_read(int fd, void *p, size_t n, bool cancels);
KBI_SWITCHES long kbi_call_write(int fd, const void *p, size_t n, bool cancels);
KBI_SWITCHES long kbi_call_readv(int fd, const struct iovec *v, int n, bool cancels);
KBI_SWITCHES long kbi_call_writev(int fd, const struct iovec *v, int n, bool cancels);
KBI_SWITCHES long kbi_call_recvfrom(int fd, void *p, size_t n, int flags, void *from, socklen_t *len, bool cancels);
KBI_SWITCHES long kbi_call_recvmsg(int fd, struct msghdr *m, int flags, bool cancels);
KBI_SWITCHES long kbi_call_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t, bool cancels);
KBI_SWITCHES long kbi_call_sendto(int fd, const void *p, size_t n, int flags, const void *to, socklen_t len, bool cancels);
KBI_SWITCHES long kbi_call_sendmsg(int fd, const struct msghdr *m, int flags, bool cancels);
KBI_SWITCHES long kbi_call_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, bool cancels);
KBI_SWITCHES long kbi_call_accept(int fd, void *from, socklen_t *len, int flags, bool cancels);
KBI_SWITCHES long kbi_call_poll(struct pollfd *fds, nfds_t n, int ms, bool cancels);
KBI_SWITCHES long kbi_call_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *set, bool cancels);
KBI_SWITCHES long kbi_call_epoll_wait(int fd, struct epoll_event *ev, int n, int ms, const sigset_t *set, bool cancels);
KBI_SWITCHES long kbi_call_epoll_wait2(int fd, struct epoll_event *ev, int n, const struct timespec *t,
				       const sigset_t *set, bool cancels);
KBI_SWITCHES long kbi_call_select(int n, fd_set *in, fd_set *out, fd_set *x, struct timeval *t, bool cancels);
KBI_SWITCHES long kbi_call_pselect(int n, fd_set *in, fd_set *out, fd_set *x, const struct timespec *t,
				   const sigset_t *mask, bool cancels);
KBI_SWITCHES long kbi_call_mq_receive(mqd_t q, char *p, size_t n, unsigned *priority, const struct timespec *t,
				      bool cancels);
KBI_SWITCHES long kbi_call_mq_send(mqd_t q, const char *p, size_t n, unsigned priority, const struct timespec *t,
				   bool cancels);
/* -ENOSYS: it cannot be waited for like this. */
KBI_SWITCHES long kbi_call_waitpid(pid_t pid, int *status, int options, struct rusage *u, bool cancels);
KBI_SWITCHES long kbi_call_waitid(idtype_t type, id_t id, siginfo_t *info, int options, bool cancels);

#endif
