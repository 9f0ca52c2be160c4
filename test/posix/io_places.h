/* io_places.h - places where nothing comes for a call that waits, the event that lets it go on, and
 * their removal. A place has two numbers: `in` is the call's argument, `out` serves the call; -1:
 * there is no such place here. */
#ifndef IO_PLACES_H
#define IO_PLACES_H

#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 2048 };

static int partner[MANY]; /* of a descriptor: a third number */

static int next_number(void)
{
	static int n;

	return __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) % MANY;
}

static void quiet_close(int in, int out)
{
	close(in);
	if (out >= 0)
		close(out);
}

static void no_close(int in, int out) { (void)in; (void)out; }
static void nothing(int *in, int *out) { *in = *out = 0; }
static void send_byte(int in, int out) { (void)in; CHECK_EQ(write(out, "x", 1), 1); }

/* ---- pipes, sockets, terminals ---- */

static void quiet_pipe(int *in, int *out)
{
	int p[2];

	CHECK_EQ(pipe(p), 0);
	*in = p[0];
	*out = p[1];
}

static void quiet_socket(int *in, int *out)
{
	int s[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	*in = s[0];
	*out = s[1];
}

/* Writes until there is no room left. */
static void fill(int fd)
{
	static const char zero[4096];
	int flags = fcntl(fd, F_GETFL);

	CHECK_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
	while (write(fd, zero, sizeof zero) > 0)
		;
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
}

static void full_pipe(int *in, int *out)
{
	quiet_pipe(out, in);
	fill(*in);
}

static void full_socket(int *in, int *out)
{
	quiet_socket(in, out);
	fill(*in);
}

/* Reads all there is, so that there is room; the writer may be gone by then. */
static void drain(int in, int out)
{
	char some[4096];
	struct pollfd p = { out, POLLIN, 0 };
	ssize_t r = 1;

	(void)in;
	for (int i = 0; i < 200 && r > 0 && poll(&p, 1, 0) > 0; i++)
		CHECK((r = read(out, some, sizeof some)) >= 0);
}

static void quiet_eventfd(int *in, int *out)
{
	CHECK((*in = eventfd(0, 0)) >= 0);
	CHECK((*out = dup(*in)) >= 0);
}

static void send_8(int in, int out)
{
	uint64_t n = 1;

	(void)in;
	CHECK_EQ(write(out, &n, sizeof n), sizeof n);
}

/* in: the terminal; out: its user's side. */
static void quiet_terminal(int *in, int *out)
{
	char name[64];

	CHECK((*out = posix_openpt(O_RDWR | O_NOCTTY)) >= 0);
	CHECK_EQ(grantpt(*out), 0);
	CHECK_EQ(unlockpt(*out), 0);
	CHECK_EQ(ptsname_r(*out, name, sizeof name), 0);
	CHECK((*in = open(name, O_RDWR | O_NOCTTY)) >= 0);
}

static void send_line(int in, int out) { (void)in; CHECK_EQ(write(out, "\n", 1), 1); }

/* ---- connections ---- */

static struct sockaddr_un address_of(int n)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path + 1, 64, "kochab-quiet-%d-%d", (int)getpid(), n);
	return a;
}

static void listen_at(int fd, int n, int backlog)
{
	struct sockaddr_un a = address_of(n);

	CHECK_EQ(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_EQ(listen(fd, backlog), 0);
}

/* out: the socket that will connect. */
static void listening(int *in, int *out)
{
	*in = socket(AF_UNIX, SOCK_STREAM, 0);
	*out = socket(AF_UNIX, SOCK_STREAM, 0);
	partner[*out] = next_number();
	listen_at(*in, partner[*out] + MANY, 4);
}

static void connect_to(int in, int out)
{
	struct sockaddr_un a = address_of(partner[out] + MANY);

	(void)in;
	CHECK_EQ(connect(out, (struct sockaddr *)&a, sizeof a), 0);
}

/* in: a socket that connects; out: a listener whose backlog is more than full. */
static void full_listener(int *in, int *out)
{
	struct sockaddr_un a;

	*in = socket(AF_UNIX, SOCK_STREAM, 0);
	*out = socket(AF_UNIX, SOCK_STREAM, 0);
	listen_at(*out, *in, 0);
	a = address_of(*in);
	partner[*in] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(connect(partner[*in], (struct sockaddr *)&a, sizeof a), 0);
}

static void accept_one(int in, int out)
{
	int fd = accept(out, NULL, NULL);

	(void)in;
	CHECK(fd >= 0);
	close(fd);
}

static void close_connecting(int in, int out)
{
	close(partner[in]);
	quiet_close(in, out);
}

/* ---- two pipes; a file and a full socket ---- */

static void quiet_pipes(int *in, int *out)
{
	int p[2];

	quiet_pipe(in, out);
	CHECK_EQ(pipe(p), 0);
	partner[*in] = p[1];
	partner[p[1]] = p[0];
}

static void close_pipes(int in, int out)
{
	quiet_close(partner[in], partner[partner[in]]);
	quiet_close(in, out);
}

static int new_file(void)
{
	char name[64];
	int fd;

	snprintf(name, sizeof name, "/tmp/kochab-places-XXXXXX");
	fd = mkstemp(name);
	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(write(fd, "xyz", 3), 3);
	return fd;
}

static void full_from_file(int *in, int *out)
{
	full_socket(in, out);
	partner[*in] = new_file();
}

static void close_from_file(int in, int out)
{
	close(partner[in]);
	quiet_close(in, out);
}

/* ---- message queues ---- */

static void quiet_queue(int *in, int *out)
{
	struct mq_attr a = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char name[64];

	snprintf(name, sizeof name, "/kochab-quiet-%d-%d", (int)getpid(), next_number());
	*in = *out = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
	if (*in < 0)
		return;
	*out = mq_open(name, O_RDWR);
	CHECK(*out >= 0);
	mq_unlink(name);
}

static void send_message(int in, int out) { (void)in; CHECK_EQ(mq_send(out, "x", 1, 0), 0); }

static void full_queue(int *in, int *out)
{
	quiet_queue(in, out);
	if (*in >= 0)
		send_message(*in, *out);
}

static void take_message(int in, int out)
{
	char c[8];

	(void)in;
	CHECK_EQ(mq_receive(out, c, sizeof c, NULL), 1);
}

static void close_queue(int in, int out)
{
	mq_close(in);
	mq_close(out);
}

struct message {
	long type;
	char text[1024];
};

static void quiet_sysv(int *in, int *out)
{
	*in = msgget(IPC_PRIVATE, 0600);
	*out = -1;
	CHECK(*in >= 0);
}

static void send_sysv(int in, int out)
{
	struct message m = { 1, "" };

	(void)out;
	CHECK_EQ(msgsnd(in, &m, 1, 0), 0);
}

static void full_sysv(int *in, int *out)
{
	struct message m = { 9, "" };

	quiet_sysv(in, out);
	while (msgsnd(*in, &m, sizeof m.text, IPC_NOWAIT) == 0)
		;
	CHECK_EQ(errno, EAGAIN);
}

static void take_sysv(int in, int out)
{
	struct message m;

	(void)out;
	CHECK_EQ(msgrcv(in, &m, sizeof m.text, 9, 0), sizeof m.text);
}

static void remove_sysv(int in, int out)
{
	(void)out;
	CHECK_EQ(msgctl(in, IPC_RMID, NULL), 0);
}

/* ---- locks ---- */

static void semaphore(int *in, int *out)
{
	*in = semget(IPC_PRIVATE, 1, 0600);
	*out = -1;
	CHECK(*in >= 0);
}

static void add_one(int in, int out)
{
	struct sembuf add = { 0, 1, 0 };

	(void)out;
	CHECK_EQ(semop(in, &add, 1), 0);
}

static void remove_semaphore(int in, int out)
{
	(void)out;
	CHECK_EQ(semctl(in, 0, IPC_RMID), 0);
}

/* Opens a file twice; out has the lock. */
static void locked(int *in, int *out)
{
	struct flock l = { .l_type = F_WRLCK };
	char name[64];

	*out = new_file();
	snprintf(name, sizeof name, "/proc/self/fd/%d", *out);
	*in = open(name, O_RDWR);
	CHECK(*in >= 0);
	CHECK_EQ(flock(*out, LOCK_EX), 0);
	CHECK_EQ(fcntl(*out, F_OFD_SETLK, &l), 0);
}

static void unlock_it(int in, int out)
{
	struct flock l = { .l_type = F_UNLCK };

	(void)in;
	CHECK_EQ(flock(out, LOCK_UN), 0);
	CHECK_EQ(fcntl(out, F_OFD_SETLK, &l), 0);
}

/* ---- other processes ---- */

/* Makes a child that does only what a child of a process with threads may do. */
static int child_of(void (*begin)(int fd), int fd, int *out)
{
	int go[2], there[2];
	char c = 'x';
	pid_t pid;

	CHECK_EQ(pipe(go), 0);
	CHECK_EQ(pipe(there), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(30); /* it does not outlive a test that fails */
		setpgid(0, 0);
		if (begin)
			begin(fd);
		_exit(write(there[1], &c, 1) == 1 && read(go[0], &c, 1) == 1 ? 0 : 1);
	}
	CHECK_EQ(read(there[0], &c, 1), 1);
	close(go[0]);
	quiet_close(there[0], there[1]);
	*out = go[1];
	return pid;
}

static void child(int *in, int *out) { *in = child_of(NULL, -1, out); }
static void let_child_go(int in, int out) { send_byte(in, out); }

static void end_child(int in, int out)
{
	kill(in, SIGKILL);
	while (waitpid(in, NULL, 0) < 0 && errno == EINTR)
		;
	close(out);
}

static void locks(int fd)
{
	struct flock l = { .l_type = F_WRLCK };

	if (fcntl(fd, F_SETLK, &l))
		_exit(1);
}

/* Locks in another process: locks of threads of a single process do not exclude each other. */
static void kept(int *in, int *out)
{
	*in = new_file();
	CHECK_EQ(lseek(*in, 0, SEEK_SET), 0);
	partner[*in] = child_of(locks, *in, out);
}

static void let_keeper_go(int in, int out) { send_byte(in, out); }

static void end_keeper(int in, int out)
{
	end_child(partner[in], out);
	close(in);
}

/* ---- FIFOs ---- */

static const char *fifo_name(int n)
{
	static __thread char name[64];

	snprintf(name, sizeof name, "/tmp/kochab-fifo-%d-%d", (int)getpid(), n);
	return name;
}

static int both_sides[MANY]; /* -1: not open yet */

static void new_fifo(int *in, int *out)
{
	*in = next_number();
	*out = -1;
	both_sides[*in] = -1;
	CHECK_EQ(mkfifo(fifo_name(*in), 0600), 0);
}

/* Opens both sides at once. */
static void open_fifo(int in, int out)
{
	(void)out;
	both_sides[in] = open(fifo_name(in), O_RDWR | O_NONBLOCK);
	CHECK(both_sides[in] >= 0);
}

static void remove_fifo(int in, int out)
{
	(void)out;
	if (both_sides[in] >= 0)
		close(both_sides[in]);
	CHECK_EQ(unlink(fifo_name(in)), 0);
}

/* ---- signals, words ---- */

static sigset_t only(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return set;
}

enum { SIGNALS = 16 }; /* to be waited for: blocked everywhere */
#define FIRST_SIGNAL (SIGRTMIN + 3)

static void own_signal(int *in, int *out)
{
	static int n;

	*in = FIRST_SIGNAL + n++ % SIGNALS;
	*out = -1;
}

static void raise_it(int in, int out)
{
	(void)out;
	CHECK_EQ(kill(getpid(), in), 0);
}

static uint32_t futex_word[MANY];

static void futex_place(int *in, int *out)
{
	*in = next_number();
	*out = -1;
	futex_word[*in] = 0;
}

static void wake_futex(int in, int out)
{
	(void)out;
	__atomic_store_n(&futex_word[in], 1, __ATOMIC_SEQ_CST);
	CHECK(syscall(SYS_futex, &futex_word[in], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) >= 0);
}

static aio_context_t aio_context[MANY];

static void aio_place(int *in, int *out)
{
	*in = next_number();
	*out = new_file();
	aio_context[*in] = 0;
	if (syscall(SYS_io_setup, 4, &aio_context[*in]) == 0)
		return;
	close(*out);
	*in = -1;
}

static void submit_aio(int in, int out)
{
	static char c[4];
	struct iocb one = { .aio_fildes = (uint32_t)out, .aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_buf = (uintptr_t)c, .aio_nbytes = sizeof c }, *list = &one;

	CHECK_EQ(syscall(SYS_io_submit, aio_context[in], 1, &list), 1);
}

static void end_aio(int in, int out)
{
	CHECK_EQ(syscall(SYS_io_destroy, aio_context[in]), 0);
	close(out);
}

/* ---- a name server that does not answer --------------------------------------------------- */

static bool asks_servers(void)
{
	char line[256];
	bool asks = true;
	FILE *f = fopen("/etc/nsswitch.conf", "r");

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, "hosts:", 6) == 0)
			asks = strstr(line, "dns") && !strstr(line, "resolve");
	if (f)
		fclose(f);
	return asks;
}

static void silent_server(int *in, int *out)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	*in = *out = -1;
	if (!asks_servers())
		return;
	*in = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_EQ(bind(*in, (struct sockaddr *)&a, sizeof a), 0);
}

/* Answers "There is no such name" to both questions: for addresses of either length. */
static void answer(int in, int out)
{
	unsigned char q[512];
	struct sockaddr_in from;
	socklen_t n = sizeof from;

	(void)out;
	for (int i = 0; i < 2; i++) {
		ssize_t r = recvfrom(in, q, sizeof q, 0, (struct sockaddr *)&from, &n);

		CHECK(r >= 12);
		q[2] |= 0x80;
		q[3] = 0x83;
		CHECK_EQ(sendto(in, q, (size_t)r, 0, (struct sockaddr *)&from, n), r);
	}
}

#endif
