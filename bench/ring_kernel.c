/* bench/ring_kernel.c - waiting in the kernel without the pthread layer (futex, pipe), and not
 * waiting at all: busy polling of the buffer (section 2.3 of the paper), which holds a CPU per
 * thread. */
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"

struct word_node {
	_Alignas(64) uint64_t message;
	uint32_t word; /* futex: 1 = full; poll: number of messages so far */
};

static void word_make(void *p)
{
	(void)p;
}

RING_INLINE void futex_send(void *p, uint64_t message)
{
	struct word_node *n = p;

	n->message = message;
	__atomic_store_n(&n->word, 1, __ATOMIC_RELEASE); /* the message: with futex_receive's exchange */
	syscall(SYS_futex, &n->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

RING_INLINE uint64_t futex_receive(void *p)
{
	struct word_node *n = p;

	while (!__atomic_exchange_n(&n->word, 0, __ATOMIC_ACQUIRE)) /* with futex_send's store */
		syscall(SYS_futex, &n->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return n->message;
}

static void *futex_seat(void *seat)
{
	return ring_sit(seat, word_make, futex_send, futex_receive, ring_yield);
}

void ring_futex(const struct bench_case *c)
{
	ring_kernel_threads(c, sizeof(struct word_node), futex_seat, bench_cpus(), 0);
}

/* A thread per CPU, bound to it, while there are enough CPUs: otherwise the kernel may keep two
 * threads on a CPU. A single line travels per message: the receiver never writes to the line that
 * the sender writes. */
RING_INLINE void poll_send(void *p, uint64_t message)
{
	struct word_node *n = p;

	n->message = message;
	__atomic_store_n(&n->word, n->word + 1, __ATOMIC_RELEASE); /* with poll_receive's load */
}

RING_INLINE void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

struct poll_node {
	struct word_node box;
	_Alignas(64) uint32_t seen;
};

RING_INLINE uint64_t poll_receive(void *p)
{
	struct poll_node *n = p;

	n->seen++;
	while (__atomic_load_n(&n->box.word, __ATOMIC_ACQUIRE) != n->seen) /* with poll_send's store */
		relax();
	return n->box.message;
}

static void *poll_seat(void *seat)
{
	return ring_sit(seat, word_make, poll_send, poll_receive, ring_yield);
}

void ring_poll(const struct bench_case *c)
{
	ring_kernel_threads(c, sizeof(struct poll_node), poll_seat, bench_cpus(), c->threads <= bench_cpus());
}

struct pipe_node {
	_Alignas(64) int fd[2];
};

static void pipe_make(void *p)
{
	if (pipe(((struct pipe_node *)p)->fd))
		bench_skip("pipe: not enough descriptors");
}

RING_INLINE void pipe_send(void *p, uint64_t message)
{
	if (write(((struct pipe_node *)p)->fd[1], &message, sizeof message) != sizeof message)
		bench_fail("write to a pipe failed");
}

RING_INLINE uint64_t pipe_receive(void *p)
{
	uint64_t message;

	if (read(((struct pipe_node *)p)->fd[0], &message, sizeof message) != sizeof message)
		bench_fail("read from a pipe failed");
	return message;
}

static void *pipe_seat(void *seat)
{
	return ring_sit(seat, pipe_make, pipe_send, pipe_receive, ring_yield);
}

void ring_pipe(const struct bench_case *c)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
	ring_kernel_threads(c, sizeof(struct pipe_node), pipe_seat, bench_cpus(), 0);
}
