/* libc/emulate_owned: state that the kernel keeps per address space or per process. Where virtual
 * processors are processes this state belongs to the whole program, or the call is refused:
 * io_uring rings, membarrier, remapped pages, locked memory and its limit, the signal at a parent's
 * end. */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS = 6, NOBODY = 65534, LIMIT = 16 * PAGE };

/* ---- rings ----------------------------------------------------------------------------------- */

static uint32_t *ring[2];

/* The kernel's count of entries is not 0, and every thread sees it. */
static void *reads_rings(void *arg)
{
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 2; k++)
			CHECK(!ring[k] || *ring[k]);
		usleep(300);
	}
	return arg;
}

static void *maps_ring(void *arg)
{
	struct io_uring_params p = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 8, &p);
	char *at, *entries;

	if (fd < 0)
		return NULL;
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
	CHECK(at != MAP_FAILED);
	entries = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	CHECK(entries != MAP_FAILED);
	CHECK_EQ(munmap(entries, PAGE), 0);
	ring[(long)arg] = (uint32_t *)(at + p.sq_off.ring_entries);
	return NULL;
}

/* ---- barriers, pages ------------------------------------------------------------------------- */

static void *calls(void *arg)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	p[PAGE] = 7;
	CHECK_EQ(remap_file_pages(p, PAGE, 0, 1, 0), 0);
	CHECK_EQ(p[0], 7);
	CHECK_EQ(munmap(p, 2 * PAGE), 0);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0)
		for (int i = 0; i < 5; i++)
			CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);
	return arg;
}

/* ---- locked memory --------------------------------------------------------------------------- */

static atomic_int locked;

static void *locks(void *arg)
{
	char *p = mmap(NULL, LIMIT / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	if (mlock(p, LIMIT / 2) == 0)
		atomic_fetch_add(&locked, 1);
	else
		CHECK_EQ(errno, ENOMEM);
	return arg;
}

/* Memory that goes back is not locked any more. */
static void *locks_again(void *arg)
{
	for (int i = 0; i < 8; i++) {
		char *p = mmap(NULL, LIMIT / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(p != MAP_FAILED);
		CHECK_EQ(mlock(p, LIMIT / 2), 0);
		CHECK_EQ(munmap(p, LIMIT / 2), 0);
	}
	return arg;
}

/* ---- the parent's end ------------------------------------------------------------------------ */

static int was_told[2];

static void tells(int sig)
{
	(void)sig;
	CHECK_EQ(write(was_told[1], "x", 1), 1);
	_exit(0);
}

static void asks_for_it(void)
{
	int sig = 0;

	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGUSR1), 0);
	CHECK_EQ(prctl(PR_GET_PDEATHSIG, &sig), 0);
	CHECK_EQ(sig, SIGUSR1);
}

static void *computes(void *arg)
{
	for (;;)
		__asm__ volatile("");
	return arg;
}

static void child_of_who_ends(int ready)
{
	pthread_t t;

	signal(SIGUSR1, tells);
	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	asks_for_it();
	CHECK_EQ(write(ready, "x", 1), 1);
	for (;;)
		pause();
}

/* The program's parent ends: the program gets the signal, and no process of its own took it for its
 * parent's. */
static void tell_child(void)
{
	int ready[2];
	pid_t pid;
	char c;

	CHECK_EQ(pipe(was_told), 0);
	CHECK_EQ(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (fork() == 0)
			child_of_who_ends(ready[1]);
		CHECK_EQ(read(ready[0], &c, 1), 1);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(read(was_told[0], &c, 1), 1);
}

/* ---- killed ---------------------------------------------------------------------------------- */

static void *asks_and_ignores(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGUSR2);
	if (getuid() == 0)
		syscall(SYS_setfsgid, NOBODY);
	for (;;)
		usleep(1000);
	return arg;
}

/* The pipe's end comes when none of its processes lives. */
static void leaves_nothing(void)
{
	int ends[2];
	pid_t pid;
	char c;

	CHECK_EQ(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		pthread_t t;

		close(ends[0]);
		signal(SIGUSR2, SIG_IGN);
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_create(&t, NULL, i % 2 ? asks_and_ignores : computes, NULL), 0);
		usleep(50000);
		CHECK_EQ(write(ends[1], "x", 1), 1);
		for (;;)
			pause();
	}
	close(ends[1]);
	CHECK_EQ(read(ends[0], &c, 1), 1);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(read(ends[0], &c, 1), 0);
}

/* ---- a limit of files ------------------------------------------------------------------------ */

static char *shared;

static void *adds(void *arg)
{
	for (int i = 0; i < 20; i++) {
		shared[(long)arg * PAGE]++;
		usleep(200);
	}
	return arg;
}

/* It is about files, and not about memory that is shared with children. */
static void *maps_more_than_a_file(void *arg)
{
	const struct rlimit short_files = { PAGE, RLIM_INFINITY }, any = { RLIM_INFINITY, RLIM_INFINITY };
	int status;
	pid_t pid;

	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &short_files), 0);
	shared = mmap(NULL, THREADS * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		shared[1] = 5;
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(shared[1], 5);
	setrlimit(RLIMIT_FSIZE, &any);
	return arg;
}

int main(void)
{
	const struct rlimit limit = { LIMIT + PAGE, LIMIT + PAGE };

	tell_child();
	leaves_nothing();
	maps_ring((void *)0);
	crowd_run(calls, THREADS);
	maps_ring((void *)1);
	crowd_run(reads_rings, THREADS);
	crowd_run(maps_more_than_a_file, 1);
	crowd_run(adds, THREADS);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(shared[i * PAGE], 20);
	CHECK_EQ(munmap(shared, THREADS * PAGE), 0);
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY)))
		return 0;
	crowd_run(locks_again, 1);
	crowd_run(locks, THREADS);
	CHECK_EQ(atomic_load(&locked), 2);
	return 0;
}
