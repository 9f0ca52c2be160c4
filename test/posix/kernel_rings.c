/* Rings of io_uring that the program makes itself: rings that only the kernel thread may use which
 * has made them (IORING_SETUP_SINGLE_ISSUER), ring numbers that only that thread knows
 * (IORING_REGISTER_RING_FDS), and a request that the kernel would end with the kernel thread that
 * submitted it. Threads wait in between, so that another kernel thread would run them.
 * matrix: vps=1,2,4 sched=rotator,steal
 * body: thread (a ring's memory, which the kernel maps, would be in one process) */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1u << 12)
#endif

enum { THREADS = 6, TURNS = 60, RING_FDS = 20, BY_TABLE = 1 << 4 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

/* Lets further threads run, on any kernel threads. */
static void mix(void)
{
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&m);
		sched_yield();
		pthread_mutex_unlock(&m);
		usleep(100);
	}
}

static int set_up(struct io_uring_params *p, unsigned flags)
{
	memset(p, 0, sizeof(*p));
	p->flags = flags;
	return (int)syscall(SYS_io_uring_setup, 4, p);
}

/* The kernel checks the caller before it finds that there is nothing to submit. */
static void *single(void *arg)
{
	struct io_uring_params p;
	int fd = set_up(&p, IORING_SETUP_SINGLE_ISSUER);

	if (fd < 0)
		return arg; /* before Linux 6.0 */
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0), 0);
		mix();
	}
	close(fd);
	return arg;
}

/* Makes a system call whose number cannot be read in the code. */
static __attribute__((noinline)) long unseen(long n, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#else
	return syscall(n, a, b, c, d, 0, 0);
#endif
}

static int n_lost;

/* Like single, but only the mapping of the ring is libc's. A thread that loses its turn between the
 * two calls may not return to the kernel thread that made the ring. */
static void *single_unseen(void *arg)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER };
	long fd = unseen(SYS_io_uring_setup, 4, (long)&p, 0, 0);

	if (fd < 0)
		return arg;
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd,
		IORING_OFF_SQES) != MAP_FAILED);
	if (unseen(SYS_io_uring_enter, fd, 1, 0, 0) == -EEXIST) {
		__atomic_add_fetch(&n_lost, 1, __ATOMIC_RELAXED);
		return arg;
	}
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(unseen(SYS_io_uring_enter, fd, 1, 0, 0), 0);
		mix();
	}
	close((int)fd);
	return arg;
}

static void *registered(void *arg)
{
	struct io_uring_params p;
	int fd = set_up(&p, 0);
	struct {
		uint32_t place, unused;
		uint64_t fd;
	} ring = { UINT32_MAX, 0, (uint64_t)fd };

	CHECK(fd >= 0);
	if (syscall(SYS_io_uring_register, fd, RING_FDS, &ring, 1) != 1)
		return arg; /* before Linux 5.18 */
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(syscall(SYS_io_uring_enter, ring.place, 0, 0, BY_TABLE, NULL, 0), 0);
		mix();
	}
	close(fd);
	return arg;
}

/* ---- a request that lasts ----------------------------------------------------------------- */

static char path[] = "/tmp/kochab-kernel-rings.XXXXXX";
static pthread_barrier_t submitted;

/* Waits on a kernel thread for the holder of the file's lock; its virtual processor gets another
 * kernel thread. */
static void block(void)
{
	int fd = open(path, O_RDWR);

	CHECK_EQ(flock(fd, LOCK_SH), 0);
	close(fd);
}

/* Reads a byte from the pipe; checks the kernel's answer. */
static void read_by_ring(int from, int to)
{
	struct io_uring_params p;
	int fd = set_up(&p, 0);
	size_t bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	char *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING),
		byte = 0;
	struct io_uring_sqe *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		IORING_OFF_SQES);
	struct io_uring_cqe *c;

	CHECK(ring != MAP_FAILED && s != MAP_FAILED);
	*s = (struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = from, .addr = (uintptr_t)&byte,
		.len = 1 };
	((uint32_t *)(ring + p.sq_off.array))[0] = 0;
	__atomic_store_n((uint32_t *)(ring + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	CHECK_EQ(syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0), 1);
	pthread_barrier_wait(&submitted);
	block();
	/* the kernel thread that has submitted it, and then waited, is not needed any more */
	usleep(500000);
	CHECK_EQ(write(to, "x", 1), 1);
	CHECK_EQ(syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0), 0);
	c = (struct io_uring_cqe *)(ring + p.cq_off.cqes);
	CHECK_EQ(c->res, 1);
	CHECK_EQ(byte, 'x');
	close(fd);
}

static void *lasts(void *arg)
{
	int pipe_fds[2];

	CHECK_EQ(pipe(pipe_fds), 0);
	read_by_ring(pipe_fds[0], pipe_fds[1]);
	return arg;
}

static void all_last(void)
{
	int held = open(path, O_RDWR);
	pthread_t t[THREADS];

	CHECK_EQ(flock(held, LOCK_EX), 0);
	pthread_barrier_init(&submitted, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, lasts, (void *)i), 0);
	pthread_barrier_wait(&submitted);
	usleep(50000);
	CHECK_EQ(flock(held, LOCK_UN), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	close(held);
}

int main(int argc, char **argv)
{
	struct io_uring_params p;
	int fd = set_up(&p, 0);

	(void)argc;
	if (fd < 0 || !(p.features & IORING_FEAT_SINGLE_MMAP))
		SKIP("no io_uring here");
	close(fd);
	/* read before main */
	if (!getenv("KOCHAB_SPARE_MS")) {
		setenv("KOCHAB_SPARE_MS", "50", 1);
		execv("/proc/self/exe", argv);
	}
	fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	crowd_run(single, THREADS);
	crowd_run(single_unseen, THREADS);
	CHECK(n_lost <= THREADS / 2);
	crowd_run(registered, THREADS);
	all_last();
	unlink(path);
	return 0;
}
