/* core/single_threaded: a mutex in memory that cannot be written; the handler of the fault jumps out of the
 * lock, and the lock's unfinished work keeps no thread waiting: threads block in the kernel and the
 * rest go on. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, ROUNDS = 20 };

static sigjmp_buf out;
static char path[] = "/tmp/kochab-test-XXXXXX";

static void handler(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static void *waits_for_file(void *unused)
{
	int fd = open(path, 0);

	CHECK(fd >= 0);
	CHECK_EQ(flock(fd, LOCK_EX), 0);
	CHECK_EQ(close(fd), 0);
	return unused;
}

/* By another descriptor it is another's. */
static void others_block(void)
{
	int fd = open(path, 0);
	pthread_t t[2];

	CHECK(fd >= 0);
	CHECK_EQ(flock(fd, LOCK_EX), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits_for_file, NULL), 0);
	usleep(20000);
	CHECK_EQ(close(fd), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *nothing(void *unused)
{
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_mutex_t *m = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = mkstemp(path);
	volatile int jumps = 0;
	pthread_t t;

	CHECK(m != MAP_FAILED && fd >= 0);
	CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (volatile int i = 0; i < ROUNDS; i++) {
		if (sigsetjmp(out, 1) == 0) {
			pthread_mutex_lock(m);
			CHECK(!"a lock that cannot be written");
		}
		jumps++;
	}
	others_block();
	unlink(path);
	CHECK_EQ(jumps, ROUNDS);
	return 0;
}
