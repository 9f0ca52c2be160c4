/* matrix: run-only
 * body: thread
 * core/handoff: more threads wait for locks of a file than kernel threads may stand in for them
 * (option spares), and another process has the locks. A message says so once. The remaining threads
 * wait, and when the locks are released all threads get theirs. Then they run as before, and as
 * many may wait again: threads that wait for each other, and sleep while they hold the lock. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/child.h"
#include "test.h"

enum { THREADS = 16, TURNS = 10, SAID_MS = 90000 };

static const char line[] = "no more kernel threads can be had (option spares)";
static char path[] = "/tmp/kochab-test-XXXXXX";
static int file, counter;
static pthread_barrier_t all;

static int lock_bytes(int fd, int type, off_t at, off_t n)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = n };

	return fcntl(fd, F_SETLKW, &l);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Each thread locks a byte of its own: they do not wait for each other. */
static void *locks(void *arg)
{
	CHECK_EQ(lock_bytes(file, F_WRLCK, (long)arg, 1), 0);
	__atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
	pthread_barrier_wait(&all);
	return arg;
}

static void all_lock(void)
{
	pthread_t t[THREADS];

	CHECK_EQ(pthread_barrier_init(&all, NULL, THREADS), 0);
	counter = 0;
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, locks, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(counter, THREADS);
	CHECK_EQ(pthread_barrier_destroy(&all), 0);
}

/* Each thread has a descriptor of its own; with a shared descriptor it would have the lock
 * already. */
static void *takes_turns(void *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(flock(fd, LOCK_EX), 0);
		counter++;
		usleep(500);
		CHECK_EQ(flock(fd, LOCK_UN), 0);
	}
	CHECK_EQ(close(fd), 0);
	return name;
}

static void all_take_turns(char *name)
{
	pthread_t t[THREADS];

	counter = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, takes_turns, name), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(counter, THREADS * TURNS);
}

/* ---- the process that has the locks ---------------------------------------------------------- */

static void starts(void *self)
{
	setenv("KOCHAB_SPARES", "3", 1);
	execl(self, self, path, (char *)NULL);
	_exit(3);
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct child c;
	int fd;

	if (argc > 1) {
		file = open(argv[1], O_RDWR | O_CLOEXEC);
		CHECK(file >= 0);
		all_lock();
		all_lock();
		all_take_turns(argv[1]);
		return 0;
	}
	fd = mkstemp(path);
	CHECK(fd >= 0);
	CHECK_EQ(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
	CHECK_EQ(lock_bytes(fd, F_WRLCK, 0, 0), 0);
	child_start(&c, starts, argv[0]);
	CHECK(child_read(&c, line, SAID_MS));
	CHECK_EQ(lock_bytes(fd, F_UNLCK, 0, 0), 0);
	child_end(&c, SAID_MS);
	unlink(path);
	child_exited(&c, 0);
	CHECK_EQ(times(c.text, line), 1);
	return 0;
}
