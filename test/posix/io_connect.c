/* connect that has to wait because the listener accepts no connection for a while: many threads in
 * it, more than there are kernel threads to stand in for them; further threads go on, and all
 * connect in the end. A signal, a cancellation, a time limit and a close end it as on kernel
 * threads. Also calls that need not wait. Then all of it with io_uring forbidden, but with a kernel
 * thread for each.
 * sleeps: yes */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/no_uring.h"

enum { THREADS = 24, FULL = 8 };

static struct sockaddr_in address;
static int listener, filler[FULL], begun, through;

static int new_socket(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	CHECK(fd >= 0);
	return fd;
}

static int to_it(int fd)
{
	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static void listen_for(int backlog)
{
	socklen_t n = sizeof address;

	address = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = new_socket(0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &n), 0);
	CHECK_EQ(listen(listener, backlog), 0);
}

static void fill_up(void)
{
	listen_for(0);
	for (int i = 0; i < FULL; i++) {
		filler[i] = new_socket(SOCK_NONBLOCK);
		CHECK(to_it(filler[i]) == 0 || errno == EINPROGRESS);
	}
	usleep(20000);
}

static void empty(void)
{
	for (int i = 0; i < FULL; i++)
		close(filler[i]);
	close(listener);
}

/* ---- many --------------------------------------------------------------------------------- */

static void *connects(void *arg)
{
	int fd = new_socket(0);
	long r;

	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	r = (intptr_t)arg % 2 ? to_it(fd) : syscall(SYS_connect, fd, &address, sizeof address);
	CHECK_EQ(r, 0);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	CHECK_EQ(to_it(fd), -1);
	CHECK_EQ(errno, EISCONN);
	CHECK_EQ(write(fd, "x", 1), 1);
	close(fd);
	__atomic_add_fetch(&through, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *takes_in(void *unused)
{
	struct pollfd p = { listener, POLLIN, 0 };

	while (__atomic_load_n(&through, __ATOMIC_RELAXED) < THREADS) {
		int fd = poll(&p, 1, 50) == 1 ? accept(listener, NULL, NULL) : -1;

		if (fd >= 0)
			close(fd);
	}
	return unused;
}

static void many(void)
{
	pthread_t t[THREADS], server;

	fill_up();
	begun = through = 0;
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, connects, (void *)i), 0);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
		usleep(1000);
	CHECK_EQ(pthread_create(&server, NULL, takes_in, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_join(server, NULL), 0);
	empty();
}

/* ---- the ends of a wait ------------------------------------------------------------------- */

static int fd, error;

static void handler(int sig) { (void)sig; }

static void *is_ended(void *unused)
{
	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	error = to_it(fd) ? errno : 0;
	__atomic_add_fetch(&through, 1, __ATOMIC_RELAXED);
	return unused;
}

static void begin(pthread_t *t)
{
	fd = new_socket(0);
	begun = through = error = 0;
	CHECK_EQ(pthread_create(t, NULL, is_ended, NULL), 0);
	while (!__atomic_load_n(&begun, __ATOMIC_RELAXED))
		usleep(1000);
	usleep(20000);
	CHECK_EQ(__atomic_load_n(&through, __ATOMIC_RELAXED), 0);
}

static void by_signal(int sig, int expected)
{
	pthread_t t;

	begin(&t);
	while (!__atomic_load_n(&through, __ATOMIC_RELAXED)) {
		CHECK_EQ(pthread_kill(t, sig), 0);
		usleep(20000);
		if (sig == SIGUSR2)
			break; /* it goes on, with SA_RESTART */
	}
	if (sig == SIGUSR2) {
		CHECK_EQ(__atomic_load_n(&through, __ATOMIC_RELAXED), 0);
		CHECK_EQ(pthread_cancel(t), 0);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(error, expected);
	close(fd);
}

static void by_limit(void)
{
	struct timeval t = { 0, 30000 };
	uint64_t start = test_now_ns();

	fd = new_socket(0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t), 0);
	CHECK_EQ(to_it(fd), -1);
	CHECK_EQ(errno, EINPROGRESS);
	CHECK(test_now_ns() - start >= 30000000);
	close(fd);
}

/* ---- calls that need not wait ------------------------------------------------------------- */

static void at_once(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct sockaddr_in nobody;
	int s;

	listen_for(16);
	fd = new_socket(0);
	CHECK_EQ(to_it(fd), 0);
	close(fd);
	s = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_EQ(to_it(s), 0);
	close(s);
	nobody = address;
	close(listener);
	s = new_socket(0);
	CHECK_EQ(connect(s, (struct sockaddr *)&nobody, sizeof nobody), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	CHECK_EQ(connect(s, (struct sockaddr *)&nobody, 3), -1);
	CHECK_EQ(errno, EINVAL);
	close(s);
	CHECK_EQ(connect(s, (struct sockaddr *)&nobody, sizeof nobody), -1);
	CHECK_EQ(errno, EBADF);
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(a.sun_path, sizeof a.sun_path, "/no/such/socket");
	CHECK_EQ(connect(s, (struct sockaddr *)&a, sizeof a), -1);
	CHECK_EQ(errno, ENOENT);
	close(s);
}

/* Starts the program again: options are read when the process starts. */
static void again(char **argv, const char *spares)
{
	CHECK_EQ(setenv("KOCHAB_SPARES", spares, 1), 0);
	execv("/proc/self/exe", argv);
	_exit(1);
}

static void without_uring(char **argv)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		if (!forbid_uring())
			_exit(0);
		again(argv, "64");
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* True if the runtime has a ring here. Where virtual processors are processes the ring lies in
 * their memory (Linux 6.5). */
static bool has_uring(void)
{
	enum { IN_OURS = 1 << 14 /* IORING_SETUP_NO_MMAP */, PAGE = 4096 };
	const char *body = getenv("KOCHAB_BODY");
	struct io_uring_params p = { 0 };
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t rings = (uintptr_t)pages, entries = rings + PAGE;

	if (body && strcmp(body, "process") == 0) {
		p.flags = IN_OURS;
		memcpy(&p.cq_off.resv1 + 1, &rings, sizeof rings);
		memcpy(&p.sq_off.resv1 + 1, &entries, sizeof entries);
	}
	return syscall(SYS_io_uring_setup, 4, &p) >= 0; /* the executed program has neither */
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = handler };

	(void)argc;
	if (!getenv("KOCHAB_SPARES")) {
		without_uring(argv);
		again(argv, has_uring() ? "4" : "64");
	}
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sa.sa_flags = SA_RESTART;
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	at_once();
	fill_up();
	by_signal(SIGUSR1, EINTR);
	by_signal(SIGUSR2, 0);
	by_limit();
	empty();
	many();
	return 0;
}
