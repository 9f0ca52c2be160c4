/* Calls that wait for no descriptor: many threads block in each, on any number of virtual
 * processors, while main computes and then lets them go on. File locks between two threads of a
 * process, System V queues and semaphores, FIFOs that are opened from both ends, any child; a
 * signal or a cancellation ends them. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6 };

static char path[64];
static int begun, got, id, held, error;

static int new_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0);
	return fd;
}

/* ---- file locks --------------------------------------------------------------------------- */

static void locks_begin(void)
{
	struct flock l = { .l_type = F_WRLCK };

	held = new_file();
	CHECK_EQ(flock(held, LOCK_EX), 0);
	CHECK_EQ(fcntl(held, F_OFD_SETLK, &l), 0);
}

static void locks_end(void)
{
	struct flock l = { .l_type = F_UNLCK };

	CHECK_EQ(flock(held, LOCK_UN), 0);
	CHECK_EQ(fcntl(held, F_OFD_SETLK, &l), 0);
	close(held);
}

static long by_flock(long i)
{
	int fd = new_file();
	long r = flock(fd, i % 2 ? LOCK_EX : LOCK_SH);
	int e = errno;

	close(fd);
	errno = e;
	return r;
}

static long by_fcntl(long i)
{
	struct flock l = { .l_type = i % 2 ? F_WRLCK : F_RDLCK };
	int fd = new_file(), e;
	long r = fcntl(fd, F_OFD_SETLKW, &l);

	e = errno;
	close(fd);
	errno = e;
	return r;
}

/* ---- System V ----------------------------------------------------------------------------- */

struct message {
	long type;
	char text[1024];
};

static void queue_begin(void) { CHECK((id = msgget(IPC_PRIVATE, 0600)) >= 0); }

static void queue_serve(void)
{
	for (long i = 0; i < THREADS; i++) {
		struct message m = { i + 1, "" };

		CHECK_EQ(msgsnd(id, &m, 1, 0), 0);
	}
}

static long by_msgrcv(long i)
{
	struct message m;
	long r = msgrcv(id, &m, sizeof m.text, i + 1, 0);

	CHECK(r < 0 || m.type == i + 1);
	return r < 0 ? r : r - 1;
}

static void full_begin(void)
{
	struct message m = { 9, "" };

	queue_begin();
	while (msgsnd(id, &m, sizeof m.text, IPC_NOWAIT) == 0)
		;
	CHECK_EQ(errno, EAGAIN);
}

static void full_serve(void)
{
	struct message m;

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(msgrcv(id, &m, sizeof m.text, 9, 0), sizeof m.text);
}

static long by_msgsnd(long i)
{
	struct message m = { i + 1, "" };

	return msgsnd(id, &m, sizeof m.text, 0);
}

static void semaphores_begin(void) { CHECK((id = semget(IPC_PRIVATE, 1, 0600)) >= 0); }

static void semaphores_serve(void)
{
	struct sembuf add = { 0, THREADS, 0 };

	CHECK_EQ(semop(id, &add, 1), 0);
}

static long by_semop(long i)
{
	struct sembuf take = { 0, -1, 0 };
	struct timespec t = { 60, 0 };

	return i % 2 ? semop(id, &take, 1) : semtimedop(id, &take, 1, &t);
}

/* ---- FIFOs -------------------------------------------------------------------------------- */

static void fifo_begin(void)
{
	unlink(path);
	CHECK_EQ(mkfifo(path, 0600), 0);
}

static void fifo_serve(void) { CHECK((held = open(path, O_WRONLY)) >= 0); }

static long by_open(long i)
{
	int fd = i % 2 ? open(path, O_RDONLY) : openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), e = errno;

	if (fd < 0)
		return fd;
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	close(fd);
	errno = e;
	return 0;
}

static void fifo_end(void)
{
	close(held);
	unlink(path);
}

/* ---- children ----------------------------------------------------------------------------- */

static int go[2];

static void children_begin(void)
{
	char c;

	CHECK_EQ(pipe(go), 0);
	for (int i = 0; i < THREADS; i++)
		if (fork() == 0) {
			close(go[1]);
			_exit(read(go[0], &c, 1) == 0 ? 0 : 1);
		}
	close(go[0]);
}

static void children_serve(void) { close(go[1]); }

static long by_wait(long i)
{
	siginfo_t info;
	int status;

	if (i % 3 == 0)
		return waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_status == 0 ? 0 : -1;
	return (i % 3 == 1 ? wait(&status) : waitpid(-1, &status, WUNTRACED)) > 0 &&
		status == 0 ? 0 : -1;
}

static void nothing(void) {}

static void remove_queue(void) { CHECK_EQ(msgctl(id, IPC_RMID, NULL), 0); }
static void remove_semaphores(void) { CHECK_EQ(semctl(id, 0, IPC_RMID), 0); }

static const struct way {
	const char *name;
	void (*begin)(void), (*serve)(void), (*end)(void);
	long (*wait)(long i);
	bool cancels, again; /* goes on after a handler with SA_RESTART */
} ways[] = {
	{ "flock", locks_begin, locks_end, nothing, by_flock, false, true },
	{ "fcntl", locks_begin, locks_end, nothing, by_fcntl, true, true },
	{ "msgrcv", queue_begin, queue_serve, remove_queue, by_msgrcv, true, false },
	{ "msgsnd", full_begin, full_serve, remove_queue, by_msgsnd, true, false },
	{ "semop", semaphores_begin, semaphores_serve, remove_semaphores, by_semop, false, false },
	{ "open", fifo_begin, fifo_serve, fifo_end, by_open, true, true },
	{ "wait", children_begin, children_serve, nothing, by_wait, true, true },
};

static const struct way *way;

static void *waits(void *arg)
{
	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	CHECK_EQ(way->wait((long)arg), 0);
	__atomic_add_fetch(&got, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *waits_to_be_ended(void *arg)
{
	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	if (way->wait((long)arg) < 0)
		error = errno;
	__atomic_add_fetch(&got, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void everybody_begins(int n)
{
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < n)
		usleep(500);
	usleep(5000);
}

static void compute(void)
{
	for (volatile unsigned i = 0; i < 1000000; i++)
		;
}

static void served(void)
{
	pthread_t t[THREADS];

	begun = got = 0;
	way->begin();
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits, (void *)i), 0);
	everybody_begins(THREADS);
	compute();
	CHECK_EQ(__atomic_load_n(&got, __ATOMIC_RELAXED), 0);
	way->serve();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	way->end();
}

/* by: a signal's number; 0: cancellation. */
static void ended(int by)
{
	pthread_t t;
	void *value;

	begun = error = got = 0;
	way->begin();
	CHECK_EQ(pthread_create(&t, NULL, waits_to_be_ended, (void *)1), 0);
	everybody_begins(1);
	CHECK_EQ(by ? pthread_kill(t, by) : pthread_cancel(t), 0);
	if (by == SIGUSR2 && way->again) {
		usleep(3000);
		CHECK_EQ(error, 0);
		way->serve();
	}
	/* the first signal may have come before the call */
	while (by && !(by == SIGUSR2 && way->again) && !__atomic_load_n(&got, __ATOMIC_RELAXED)) {
		usleep(20000);
		if (!__atomic_load_n(&got, __ATOMIC_RELAXED))
			CHECK_EQ(pthread_kill(t, by), 0);
	}
	CHECK_EQ(pthread_join(t, &value), 0);
	if (by == 0)
		CHECK(value == PTHREAD_CANCELED);
	else if (by == SIGUSR1 || !way->again)
		CHECK_EQ(error, EINTR);
	if (!(by == SIGUSR2 && way->again)) {
		if (way->begin == fifo_begin)
			held = open("/dev/null", O_RDONLY);
		else if (way->begin == locks_begin || way->begin == children_begin)
			way->serve();
	}
	way->end();
	while (way->begin == children_begin && waitpid(-1, NULL, 0) > 0)
		;
}

static void handler(int sig) { (void)sig; }

static void others(void)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found;
	int fd = new_file();
	FILE *f;

	CHECK_EQ(fsync(fd), 0);
	CHECK_EQ(lockf(fd, F_LOCK, 1), 0);
	CHECK_EQ(lockf(fd, F_ULOCK, 1), 0);
	CHECK_EQ(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	CHECK_EQ(getaddrinfo("127.0.0.1", "80", &hints, &found), 0);
	freeaddrinfo(found);
	CHECK_EQ(WEXITSTATUS(system("exit 3")), 3);
	f = popen("exit 4", "r");
	CHECK_EQ(WEXITSTATUS(pclose(f)), 4);
	CHECK_EQ(open("/no/such/file", O_RDONLY), -1);
	CHECK_EQ(errno, ENOENT);
	CHECK_EQ(wait(NULL), -1);
	CHECK_EQ(errno, ECHILD);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sa.sa_flags = SA_RESTART;
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	snprintf(path, sizeof path, "/tmp/kochab-apart-%d", (int)getpid());
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		way = &ways[i];
		served();
		ended(SIGUSR1);
		ended(SIGUSR2);
		if (way->cancels)
			ended(0);
	}
	unlink(path);
	others();
	unlink(path);
	return 0;
}
