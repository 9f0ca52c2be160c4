/* core/process_fork: a program that gives up all files (Landlock) before its first thread runs its
 * threads all the same, also where virtual processors would be processes, which need /proc. As xz
 * does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, THREADS = 16, TURNS = 100 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;

static bool give_up_files(void)
{
	const uint64_t all = (1 << 13) - 1; /* the rights of the first version */
	long set = syscall(CREATE_RULESET, &all, sizeof all, 0);

	if (set < 0)
		return false;
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(syscall(RESTRICT_SELF, set, 0), 0);
	close((int)set);
	CHECK_EQ(open("/proc/self/maps", O_RDONLY | O_CLOEXEC), -1);
	CHECK_EQ(errno, EACCES);
	return true;
}

static void *take_turns(void *arg)
{
	intptr_t me = (intptr_t)arg;

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < TURNS; i++) {
		while (turn % THREADS != me)
			pthread_cond_wait(&cond, &mutex);
		turn++;
		pthread_cond_broadcast(&cond);
	}
	pthread_mutex_unlock(&mutex);
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];
	void *result;

	if (!give_up_files())
		SKIP("the kernel has no Landlock");
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, take_turns, (void *)i), 0);
	for (intptr_t i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], &result), 0);
		CHECK_EQ((intptr_t)result, i);
	}
	CHECK_EQ(turn, THREADS * TURNS);
	return 0;
}
