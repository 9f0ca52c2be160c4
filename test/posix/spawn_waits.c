/* posix/fork, posix/call_blocking: children in their caller's memory (posix_spawn, vfork, clone with
 * CLONE_VM and CLONE_VFORK) that wait before they execute something, for threads of the program:
 * those run meanwhile, by twelve and more callers at once, and time passes, handlers run, and a
 * caller that is cancelled meanwhile ends later. */
/* timeout: 60 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLERS = 12, MANY = 64, TICKS = 20, STACK = 65536 };

extern char **environ;

static char dir[] = "/tmp/spawn_waitsXXXXXX";
static char path[MANY][64];
static atomic_int begun, handled, alarms, stop, callers;
static atomic_long ticks;

enum way { SPAWN, SPAWNP, VFORK, CLONE, SLEEP, POPEN, SYSTEM, WAYS };

struct caller {
	enum way way;
	int n;
};

static void on_signal(int sig)
{
	atomic_fetch_add(sig == SIGALRM ? &alarms : &handled, 1);
}

/* In the child. */
static int opens_and_ends(void *arg)
{
	int fd = open(arg, O_WRONLY);

	_exit(fd >= 0 && write(fd, "x", 1) == 1 ? 7 : 8);
}

static pid_t vforks(char *fifo)
{
	pid_t p = vfork();

	if (p == 0)
		opens_and_ends(fifo);
	return p;
}

static pid_t vforks_and_sleeps(char *fifo)
{
	pid_t p = vfork();

	if (p == 0) {
		struct timespec t = { 0, 100000000 };
		int fd;

		if (nanosleep(&t, NULL))
			_exit(9);
		fd = open(fifo, O_WRONLY);
		if (fd < 0 || dup2(fd, 1) != 1)
			_exit(10);
		execl("/bin/sh", "sh", "-c", "printf x; exit 7", (char *)NULL);
		_exit(11);
	}
	return p;
}

static pid_t clones(char *fifo)
{
	char *stack = malloc(STACK);
	pid_t p = clone(opens_and_ends, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, fifo);

	free(stack);
	return p;
}

static pid_t spawns(char *fifo, int by_path)
{
	char *const args[] = { "sh", "-c", "printf x; exit 7", NULL };
	posix_spawn_file_actions_t files;
	pid_t p;

	CHECK_EQ(posix_spawn_file_actions_init(&files), 0);
	CHECK_EQ(posix_spawn_file_actions_addopen(&files, 1, fifo, O_WRONLY, 0), 0);
	if (by_path)
		CHECK_EQ(posix_spawnp(&p, "sh", &files, NULL, args, environ), 0);
	else
		CHECK_EQ(posix_spawn(&p, "/bin/sh", &files, NULL, args, environ), 0);
	posix_spawn_file_actions_destroy(&files);
	return p;
}

static int by_shell(const struct caller *c)
{
	char command[128];
	FILE *f;

	snprintf(command, sizeof command, "printf x >%s; exit 7", path[c->n]);
	if (c->way == SYSTEM)
		return system(command);
	f = popen(command, "r");
	CHECK(f != NULL);
	CHECK_EQ(fgetc(f), EOF);
	return pclose(f);
}

static void *calls(void *arg)
{
	const struct caller *c = arg;
	int status;
	pid_t p;

	atomic_fetch_add(&begun, 1);
	switch (c->way) {
	case SPAWN:
	case SPAWNP:
		p = spawns(path[c->n], c->way == SPAWNP);
		break;
	case VFORK:
		p = vforks(path[c->n]);
		break;
	case CLONE:
		p = clones(path[c->n]);
		break;
	case SLEEP:
		p = vforks_and_sleeps(path[c->n]);
		break;
	default:
		p = 0;
		status = by_shell(c);
		break;
	}
	CHECK(p >= 0);
	if (p)
		CHECK_EQ(waitpid(p, &status, 0), p);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 7);
	return arg;
}

static void nap(long us)
{
	struct timespec t = { 0, us * 1000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void *counts(void *unused)
{
	while (!stop) {
		nap(1000);
		ticks++;
	}
	return unused;
}

/* Gives the remaining threads time before any thread opens. */
static void *opens(void *unused)
{
	long from;
	char c;

	while (begun < callers)
		nap(1000);
	nap(20000);
	from = ticks;
	while (ticks < from + TICKS)
		nap(1000);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	for (int i = 0; i < callers; i++) {
		int fd = open(path[i], O_RDONLY);

		CHECK(fd >= 0);
		CHECK_EQ(read(fd, &c, 1), 1);
		CHECK_EQ(c, 'x');
		close(fd);
	}
	return unused;
}

static void all_at_once(enum way w, int n)
{
	static struct caller caller[MANY];
	pthread_t id[MANY], opener;
	int before = handled;

	begun = 0;
	callers = n;
	for (int i = 0; i < n; i++) {
		caller[i] = (struct caller){ w < WAYS ? w : (enum way)(i % WAYS), i };
		CHECK_EQ(pthread_create(&id[i], NULL, calls, &caller[i]), 0);
	}
	CHECK_EQ(pthread_create(&opener, NULL, opens, NULL), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	CHECK_EQ(pthread_join(opener, NULL), 0);
	while (handled == before)
		nap(1000);
}

static sem_t never;

static void *is_cancelled(void *arg)
{
	pid_t *p = arg;
	int old;

	/* or the child would be cancelled, too, as it has the caller's marks */
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	begun = 1;
	*p = vforks(path[0]);
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
	sem_wait(&never);
	return arg;
}

static void cancelled_meanwhile(void)
{
	char c;
	pthread_t id;
	pid_t p = 0;
	void *result;
	int fd, status;

	begun = 0;
	CHECK_EQ(sem_init(&never, 0, 0), 0);
	CHECK_EQ(pthread_create(&id, NULL, is_cancelled, &p), 0);
	while (!begun)
		nap(1000);
	nap(20000);
	CHECK_EQ(pthread_cancel(id), 0);
	nap(20000);
	fd = open(path[0], O_RDONLY);
	CHECK(fd >= 0);
	CHECK_EQ(read(fd, &c, 1), 1);
	close(fd);
	CHECK_EQ(pthread_join(id, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK(p > 0);
	CHECK_EQ(waitpid(p, &status, 0), p);
	CHECK_EQ(WEXITSTATUS(status), 7);
}

int main(void)
{
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 20000 }, { 0, 20000 } }, off = { { 0, 0 }, { 0, 0 } };
	pthread_t counter;

	CHECK(mkdtemp(dir) != NULL);
	for (int i = 0; i < MANY; i++) {
		snprintf(path[i], sizeof path[i], "%s/%d", dir, i);
		CHECK_EQ(mkfifo(path[i], 0600), 0);
	}
	sigaction(SIGUSR1, &a, NULL);
	sigaction(SIGALRM, &a, NULL);
	CHECK_EQ(pthread_create(&counter, NULL, counts, NULL), 0);
	for (int w = 0; w < WAYS; w++)
		all_at_once((enum way)w, CALLERS);
	CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
	all_at_once(WAYS, MANY);
	CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
	CHECK(alarms > 0);
	cancelled_meanwhile();
	stop = 1;
	CHECK_EQ(pthread_join(counter, NULL), 0);
	for (int i = 0; i < MANY; i++)
		unlink(path[i]);
	rmdir(dir);
	return 0;
}
