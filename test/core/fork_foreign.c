/* core: a kernel thread that has never called the library forks while the only virtual processor
 * takes and gives mutexes: the child, where that virtual processor does not exist, may use them.
 * matrix: vps=1,2 sched=rotator */
#include <kochab/kochab.h>
#include <kochab/sync.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { FORKS = 60, SECONDS = 20 };

static uint32_t over;
static kb_mutex_t busy = KB_MUTEX_INIT, other = KB_MUTEX_INIT;

static void *forks(void *unused)
{
	(void)unused;
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0) {
			alarm(SECONDS);
			_exit(kb_mutex_lock(&other) || kb_mutex_unlock(&other) ? 1 : 0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	pthread_t t;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(pthread_create(&t, NULL, forks, NULL), 0);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		kb_mutex_lock(&busy);
		kb_mutex_unlock(&busy);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
