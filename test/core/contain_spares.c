/* core/contain, core/respawn: with the option on_kill=spare the processes of a program are killed
 * while main and other threads compute in the program's own code, and no thread is lost: each goes
 * on where it was.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <kochab/kochab.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/child.h"
#include "core/children.h"

enum { THREADS = 5, KILLS = 12 };

/* Shared by the killer and the program. */
static struct shared {
	unsigned ready, stop, kills;
	unsigned long steps[THREADS + 1];
} *shared;

static const char *vps;

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)

/* Both sums see each step once. */
static void compute(unsigned long *steps, unsigned long times)
{
	unsigned long sum = *steps, other = sum;

	for (unsigned long i = 0; i < times || (!times && !GET(shared->stop)); i++) {
		sum++;
		__atomic_store_n(steps, sum, __ATOMIC_RELAXED);
		other++;
		if (i % 100000 == 0)
			kb_yield();
	}
	CHECK_EQ(sum, other);
	CHECK_EQ(sum, *steps);
}

static void *thread(void *arg)
{
	compute(arg, 0);
	return arg;
}

static void program(void *arg)
{
	kb_thread_t t[THREADS];
	struct kb_crash_counts c;
	void *result;

	(void)arg;
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_ON_KILL", "spare", 1);
	setenv("KOCHAB_VPS", vps, 1);
	if (kb_init() != 0)
		_exit(77);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, thread, &shared->steps[i]), 0);
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!GET(shared->stop)) {
		compute(&shared->steps[THREADS], 200000);
		kb_crash_counts(&c);
		__atomic_store_n(&shared->kills, c.kills, __ATOMIC_RELEASE);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK_EQ(kb_thread_join(t[i], &result), 0);
		CHECK(result == &shared->steps[i]);
	}
	CHECK_EQ(kb_crash_count(), 0u);
	printf("all went on\n");
}

static int has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid != 0;
}

static void run(struct child *c)
{
	uint64_t rand = test_seed();
	int list[64];
	unsigned n;

	memset(shared, 0, sizeof *shared);
	child_start(c, program, NULL);
	while (!GET(shared->ready) && !has_ended(c->pid))
		usleep(1000);
	for (unsigned i = 0; GET(shared->kills) < KILLS && !has_ended(c->pid); i++) {
		n = children_of(c->pid, list, 64);
		if (n)
			kill(list[test_rand(&rand) % n], SIGKILL);
		usleep(2000 + i % 7 * 500);
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	child_end(c, 60000);
}

int main(void)
{
	static const char *const counts[] = { "1", "2" };
	static struct child c;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!may_trace())
		SKIP("the kernel refuses to trace: nothing that is killed goes on (core/contain_kills)");
	for (unsigned i = 0; i < 2; i++) {
		vps = counts[i];
		run(&c);
		if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
			SKIP("no process bodies here");
		if (ended_unseen(&c))
			SKIP(UNSEEN);
		child_exited(&c, 0);
		child_said(&c, "all went on");
	}
	return 0;
}
