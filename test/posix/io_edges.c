/* Unexpected descriptors: with O_NONBLOCK, invalid, of a different kind than the number had before,
 * shared with a child that looks at their flags, shut down while threads wait; no descriptors left
 * in accept; sets of select that are longer than fd_set. */
#include "io_calls.h"

#include <sys/resource.h>

static int fd, out;

/* ---- O_NONBLOCK --------------------------------------------------------------------------- */

/* Blocking, non-blocking, blocking again: the last look does not count. */
static void changes(void)
{
	int flags;
	char c;

	quiet_socket(&fd, &out);
	flags = fcntl(fd, F_GETFL);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(recv(fd, &c, 1, MSG_DONTWAIT), -1);
		CHECK_EQ(errno, EAGAIN);
		CHECK_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
		CHECK_EQ(read(fd, &c, 1), -1);
		CHECK_EQ(errno, EAGAIN);
		CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
		CHECK_EQ(write(out, "x", 1), 1);
		CHECK_EQ(read(fd, &c, 1), 1);
	}
	quiet_close(fd, out);
}

/* ---- invalid descriptors ------------------------------------------------------------------ */

static void invalid(void)
{
	void *volatile nowhere = (void *)16;
	volatile int less = -1;
	char c;
	int file;

	for (int i = 0; i < QUIETS; i++) {
		if (!quiets[i].streams)
			continue;
		CHECK_EQ(quiets[i].call(-1), -EBADF);
		CHECK_EQ(quiets[i].call(1000), -EBADF);
	}
	CHECK_EQ(do_select(60), -EBADF);
	CHECK_EQ(do_poll(60), 1); /* POLLNVAL */
	quiet_pipe(&fd, &out);
	CHECK_EQ(recv(fd, &c, 1, 0), -1);
	CHECK_EQ(errno, ENOTSOCK);
	CHECK_EQ(accept(fd, NULL, NULL), -1);
	CHECK_EQ(errno, ENOTSOCK);
	file = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(accept(file, NULL, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	close(file);
	file = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_EQ(accept(file, NULL, NULL), -1);
	CHECK_EQ(errno, EOPNOTSUPP);
	close(file);
	CHECK_EQ(read(out, &c, 1), -1);
	CHECK_EQ(errno, EBADF);
	CHECK_EQ(read(fd, NULL, 0), 0);
	CHECK_EQ(write(out, "x", 1), 1);
	CHECK_EQ(read(fd, nowhere, 1), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(readv(fd, NULL, less), -1);
	CHECK_EQ(errno, EINVAL);
	quiet_close(fd, out);
	file = open("/", O_RDONLY | O_DIRECTORY);
	CHECK_EQ(read(file, &c, 1), -1);
	CHECK_EQ(errno, EISDIR);
	close(file);
}

/* ---- a number, many kinds ----------------------------------------------------------------- */

static void put(int which, int at)
{
	int a = -1, b = -1;
	char c = 0;

	switch (which) {
	case 0:
		quiet_pipe(&a, &b);
		break;
	case 1:
		quiet_socket(&a, &b);
		break;
	case 2:
		a = open("/dev/zero", O_RDONLY);
		break;
	default:
		a = open("/proc/self/stat", O_RDONLY);
		break;
	}
	CHECK_EQ(dup2(a, at), at);
	close(a);
	if (b >= 0)
		CHECK_EQ(write(b, "x", 1), 1);
	CHECK_EQ(read(at, &c, 1), 1);
	if (b >= 0) {
		CHECK_EQ(c, 'x');
		close(b);
		CHECK_EQ(read(at, &c, 1), 0);
	}
}

static void kinds(void)
{
	int at = dup(0);

	CHECK(at >= 0);
	for (int i = 0; i < 16; i++)
		put(i % 4, at);
	for (int i = 0; i < 16; i++)
		put(i / 4, at);
	close(at);
}

/* ---- a child looks ------------------------------------------------------------------------ */

static void *waits(void *arg)
{
	char c;

	CHECK_EQ(read(*(int *)arg, &c, 1), 1);
	return NULL;
}

static void flags_stay(void (*open)(int *, int *))
{
	int before, status, ready[2];
	pthread_t t;
	pid_t child;
	char c;

	open(&fd, &out);
	before = fcntl(fd, F_GETFL);
	CHECK_EQ(pipe(ready), 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK_EQ(read(ready[0], &c, 1), 1);
		for (int i = 0; i < 300; i++)
			if (fcntl(fd, F_GETFL) != before)
				_exit(1);
		if (write(out, "x", 1) != 1)
			_exit(2);
		_exit(0);
	}
	CHECK_EQ(pthread_create(&t, NULL, waits, &fd), 0);
	usleep(2000);
	CHECK_EQ(write(ready[1], "x", 1), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	quiet_close(fd, out);
	quiet_close(ready[0], ready[1]);
}

/* ---- shut down ---------------------------------------------------------------------------- */

static long value;

static void *gets_value(void *call)
{
	value = ((long (*)(int))call)(fd);
	return NULL;
}

static int shutdown_by_number(int s, int how) { return (int)syscall(SYS_shutdown, s, how); }

static void shut_down_by(int (*shut)(int, int), void (*open)(int *, int *), long (*call)(int),
	int how, long expected)
{
	pthread_t t;

	open(&fd, &out);
	CHECK_EQ(pthread_create(&t, NULL, gets_value, (void *)call), 0);
	usleep(2000);
	CHECK_EQ(shut(fd, how), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(value, expected);
	quiet_close(fd, out);
}

static void shut_down(void (*open)(int *, int *), long (*call)(int), int how, long expected)
{
	shut_down_by(shutdown, open, call, how, expected);
	shut_down_by(shutdown_by_number, open, call, how, expected);
}

static void datagrams(int *in, int *to)
{
	int s[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	*in = s[0];
	*to = s[1];
}

/* ---- no descriptors left ------------------------------------------------------------------ */

static void no_descriptors(void)
{
	struct sockaddr_un a;
	socklen_t n = sizeof a;
	struct rlimit before, few;
	int client, last;

	listening(&fd, &out);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(connect(client, (struct sockaddr *)&a, n), 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	last = dup(fd);
	few = before;
	few.rlim_cur = (rlim_t)last;
	close(last);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(accept(fd, NULL, NULL), -1);
		CHECK_EQ(errno, EMFILE);
	}
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	last = accept(fd, NULL, NULL);
	CHECK(last >= 0);
	close(last);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_EQ(accept(fd, NULL, NULL), -1); /* no connection waits */
	CHECK_EQ(errno, EMFILE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	quiet_close(fd, client);
}

/* ---- long sets ---------------------------------------------------------------------------- */

enum { HIGH = 2000, WORDS = (HIGH + 64) / 64 };

static void *writes_later(void *unused)
{
	usleep(3000);
	CHECK_EQ(write(out, "x", 1), 1);
	return unused;
}

static void long_sets(void)
{
	static unsigned long in[WORDS], wr[WORDS];
	struct rlimit r;
	pthread_t t;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
	if (r.rlim_cur <= HIGH) {
		r.rlim_cur = HIGH + 1 < r.rlim_max ? HIGH + 1 : r.rlim_max;
		if (r.rlim_cur <= HIGH || setrlimit(RLIMIT_NOFILE, &r))
			return;
	}
	quiet_pipe(&fd, &out);
	CHECK_EQ(dup2(fd, HIGH), HIGH);
	in[HIGH / 64] = wr[HIGH / 64] = 1ul << HIGH % 64;
	wr[HIGH / 64] = 0;
	CHECK_EQ(pthread_create(&t, NULL, writes_later, NULL), 0);
	CHECK_EQ(select(HIGH + 1, (fd_set *)(void *)in, (fd_set *)(void *)wr, NULL, NULL), 1);
	CHECK_EQ(in[HIGH / 64], 1ul << HIGH % 64);
	CHECK_EQ(pthread_join(t, NULL), 0);
	close(HIGH);
	quiet_close(fd, out);
}

static void *comes_and_goes(void *arg) { return arg; }

int main(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, comes_and_goes, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	signal(SIGPIPE, SIG_IGN);
	changes();
	invalid();
	kinds();
	flags_stay(quiet_pipe);
	flags_stay(quiet_socket);
	shut_down(quiet_socket, do_recv, SHUT_RD, 0);
	shut_down(full_socket, do_write, SHUT_WR, -EPIPE);
	shut_down(full_socket, do_send, SHUT_WR, -EPIPE);
	shut_down(datagrams, do_read, SHUT_RD, 0);
	shut_down(datagrams, do_recv, SHUT_RD, 0);
	shut_down(datagrams, do_recvmsg, SHUT_RDWR, 0);
	shut_down(listening, do_accept, SHUT_RDWR, -EINVAL);
	no_descriptors();
	long_sets();
	return 0;
}
