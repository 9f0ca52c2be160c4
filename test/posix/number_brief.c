/* A number that another thread's call takes for a moment, for a file of the runtime's own, is not
 * the runtime's: a file that the program puts there by dup2 stays, and the calls give the same
 * answers as on libc. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 50000, MANY = 2000 };
#define ENOUGH (3 * 1000000000ull) /* ns, on a machine with much to do */

static bool over;
static int begun; /* threads beside */

static bool is_over(void)
{
	return __atomic_load_n(&over, __ATOMIC_RELAXED);
}

/* More than a set holds: how many descriptors there are is looked up. */
static void *selects(void *unused)
{
	fd_set sets[MANY / FD_SETSIZE + 1];
	struct timeval now;

	(void)unused;
	__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	while (!is_over()) {
		memset(sets, 0, sizeof sets);
		now = (struct timeval){ 0, 0 };
		CHECK_EQ(select(MANY, sets, NULL, NULL, &now), 0);
	}
	return NULL;
}

static void *waits_for_children(void *unused)
{
	(void)unused;
	__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	while (!is_over()) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			usleep(3000);
			_exit(3);
		}
		CHECK(child > 0);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	}
	return NULL;
}

static void *accepts(void *listener)
{
	int l = *(int *)listener;

	__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	while (!is_over())
		CHECK(accept(l, NULL, NULL) == -1 && errno == EAGAIN);
	return NULL;
}

static int listens_for_a_moment(void)
{
	int l = socket(AF_UNIX, SOCK_STREAM, 0);
	struct timeval soon = { 0, 1000 };

	CHECK_EQ(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
	CHECK_EQ(bind(l, &(struct sockaddr){ .sa_family = AF_UNIX }, sizeof(sa_family_t)), 0);
	CHECK_EQ(listen(l, 1), 0);
	return l;
}

static ino_t file_of(int fd)
{
	struct stat s;

	CHECK_EQ(fstat(fd, &s), 0);
	return s.st_ino;
}

/* The lowest number is free for a moment before the file is put there. */
static void puts_files(const int p[2])
{
	ino_t wanted = file_of(p[0]);
	uint64_t since = test_now_ns();
	int n = dup(0);

	for (int i = 0; i < ROUNDS && test_now_ns() - since < ENOUGH; i++) {
		close(n);
		if (i % 2)
			sched_yield();
		while (dup2(p[0], n) < 0) /* an accept in the kernel has set it aside */
			CHECK_EQ(errno, EBUSY);
		if (i % 3 == 0)
			usleep(1);
		if (fcntl(n, F_GETFD) < 0 || file_of(n) != wanted) {
			printf("round %d: the number is another file's, errno %d\n", i, errno);
			exit(1);
		}
	}
	close(n);
}

int main(void)
{
	void *(*const beside[])(void *) = { selects, waits_for_children, accepts };
	pthread_t t[sizeof beside / sizeof beside[0]];
	int p[2], l = listens_for_a_moment();

	CHECK_EQ(pipe(p), 0);
	p[0] = fcntl(p[0], F_DUPFD, 300);
	for (unsigned i = 0; i < sizeof beside / sizeof beside[0]; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, beside[i], &l), 0);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < (int)(sizeof beside / sizeof beside[0]))
		sched_yield();
	puts_files(p);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < sizeof beside / sizeof beside[0]; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
