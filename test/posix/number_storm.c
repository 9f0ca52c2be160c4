/* 64 threads wait in calls of all kinds, each for its own file. Then their numbers are closed in
 * each way and mean different files, which have data, again and again, while more threads open and
 * close files. No call takes data of a different file, no call misses the data of its own file, and
 * no call is left waiting. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KINDS = 9, WAITERS = KINDS * 7 + 1, ROUNDS = 12, BYTES = 400000, NAP_US = 25000, ABOVE = 500 };
enum kind { READ, RECV, ACCEPT, SEND, WRITE, POLL, SELECT, FGETS, EPOLL };

static struct waiter {
	enum kind kind;
	int fd;          /* the file it waits for */
	int peer, beside; /* the other end; another number of the file that is looked at */
	struct sockaddr_in at;
	FILE *f;
	char got;        /* o: old, n: new, e: its end, ?: else */
	int begun;
} waiters[WAITERS];

static pthread_barrier_t begin, end;
static char *much;
static int over, wrong, waits_made;

static char of(long n, char c)
{
	return n > 0 ? c : n == 0 ? 'e' : '?';
}

static char look(const struct waiter *w, int ready)
{
	char c = '?';
	long n = ready == 1 ? recv(w->beside, &c, 1, MSG_DONTWAIT) : -1;

	return of(n, c);
}

static char by_poll(const struct waiter *w)
{
	struct pollfd p = { w->fd, POLLIN, 0 };

	return look(w, poll(&p, 1, -1) == 1 && !(p.revents & POLLNVAL));
}

static char by_select(const struct waiter *w)
{
	fd_set s;

	FD_ZERO(&s);
	FD_SET(w->fd, &s);
	return look(w, select(w->fd + 1, &s, NULL, NULL, NULL));
}

static char by_fgets(const struct waiter *w)
{
	char line[8];

	return fgets(line, sizeof line, w->f) ? line[0] : 'e';
}

static char by_epoll(const struct waiter *w)
{
	struct epoll_event e;

	return look(w, epoll_wait(w->fd, &e, 1, -1));
}

/* An accepted connection has a byte in it, which tells whose it is. */
static char by_accept(const struct waiter *w)
{
	int s = accept(w->fd, NULL, NULL);
	char c = '?';
	long n;

	if (s < 0)
		return errno == EINVAL ? 'e' : '?';
	n = recv(s, &c, 1, 0);
	close(s);
	return of(n, c);
}

static char wait_for(const struct waiter *w)
{
	char c = '?';
	long n;

	switch (w->kind) {
	case READ:
		n = read(w->fd, &c, 1);
		return of(n, c);
	case RECV:
		n = recv(w->fd, &c, 1, 0);
		return of(n, c);
	case ACCEPT:
		return by_accept(w);
	case SEND:
		return send(w->fd, much, BYTES, MSG_NOSIGNAL) == BYTES ? 'o' : 'e';
	case WRITE:
		return write(w->fd, much, BYTES) == BYTES ? 'o' : 'e';
	case POLL:
		return by_poll(w);
	case SELECT:
		return by_select(w);
	case FGETS:
		return by_fgets(w);
	case EPOLL:
		return by_epoll(w);
	}
	return '?';
}

static void *waits(void *arg)
{
	struct waiter *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&begin);
		__atomic_store_n(&w->begun, 1, __ATOMIC_SEQ_CST);
		w->got = wait_for(w);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

/* Numbers come and go beside. */
static void *opens(void *unused)
{
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
		close(fcntl(0, F_DUPFD, ABOVE)); /* away from those that are used again */
		sched_yield();
	}
	return unused;
}

static int listener(struct sockaddr_in *a)
{
	socklen_t n = sizeof *a;
	int l = socket(AF_INET, SOCK_STREAM, 0);

	memset(a, 0, sizeof *a);
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(l, (struct sockaddr *)a, n), 0);
	CHECK_EQ(listen(l, 5), 0);
	CHECK_EQ(getsockname(l, (struct sockaddr *)a, &n), 0);
	return l;
}

static void knock(const struct sockaddr_in *a, char c)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(connect(s, (const struct sockaddr *)a, sizeof *a), 0);
	CHECK_EQ(send(s, &c, 1, 0), 1);
	close(s);
}

static void make(struct waiter *w)
{
	struct epoll_event e = { .events = EPOLLIN };
	int p[2], low;

	w->begun = 0;
	w->got = 0;
	w->beside = w->peer = -1;
	w->f = NULL;
	if (w->kind == ACCEPT) {
		w->fd = listener(&w->at);
		return;
	}
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	w->fd = p[0];
	w->peer = p[1];
	if (w->kind == POLL || w->kind == SELECT || w->kind == EPOLL)
		w->beside = dup(p[0]);
	if (w->kind == EPOLL) {
		low = epoll_create1(0);
		CHECK_EQ(epoll_ctl(low, EPOLL_CTL_ADD, w->beside, &e), 0);
		close(p[0]);
		w->fd = low;
	}
	if (w->kind == FGETS)
		w->f = fdopen(p[0], "r");
}

static int above(int low)
{
	int high = fcntl(low, F_DUPFD, ABOVE);

	close(low);
	return high;
}

static void put(int high, int n)
{
	CHECK_EQ(dup2(high, n), n);
	close(high);
}

/* The number means a file with data in it from now on: that must stay there. The other end. */
static int use_again(int n, struct sockaddr_in *at, int listens)
{
	int p[2];

	if (listens) {
		put(above(listener(at)), n);
		return -1;
	}
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	p[0] = above(p[0]);
	p[1] = above(p[1]);
	CHECK_EQ(write(p[1], "nn\n", 3), 3);
	put(p[0], n);
	return p[1];
}

static void give_up(int n, unsigned how)
{
	switch (how % 4) {
	case 0:
		close(n);
		break;
	case 1:
		syscall(SYS_close, n);
		break;
	case 2: {
		int zero = open("/dev/zero", O_RDONLY);

		dup2(zero, n);
		close(zero);
		close(n);
		break;
	}
	default:
		fclose(fdopen(n, "r"));
	}
}

static void drain(int s)
{
	static char some[65536];
	long all = 0, n;

	while (all < BYTES && (n = read(s, some, sizeof some)) > 0)
		all += n;
	CHECK_EQ(all, BYTES);
}

/* ends: its file is shut down before; otherwise its data come afterwards. */
static void end_of(struct waiter *w, unsigned how, int ends)
{
	struct sockaddr_in other;
	int n = w->fd, new[2];
	char want = ends ? 'e' : 'o', c[8];

	if (ends && w->kind == EPOLL)
		want = 'e'; /* the file that it looks at ends */
	if (ends)
		shutdown(w->kind == EPOLL ? w->beside : n, SHUT_RDWR);
	give_up(n, how);
	new[0] = use_again(n, &other, w->kind == ACCEPT);
	if (w->kind == ACCEPT)
		knock(ends ? &other : &w->at, ends ? 'n' : 'o');
	else if (!ends && (w->kind == SEND || w->kind == WRITE))
		drain(w->peer);
	else if (!ends)
		CHECK_EQ(send(w->peer, "o\n", 2, MSG_NOSIGNAL), 2);
	while (!__atomic_load_n(&w->got, __ATOMIC_SEQ_CST))
		usleep(200);
	waits_made++;
	if (w->got != want) {
		wrong++;
		fprintf(stderr, "kind %d, close %u, %s: %c\n", (int)w->kind, how % 4, ends ? "shut down" : "goes on", w->got);
	} else if (w->kind != ACCEPT) {
		CHECK_EQ(recv(n, c, sizeof c, MSG_DONTWAIT), 3);
		CHECK(recv(new[0], c, sizeof c, MSG_DONTWAIT) < 0);
	}
	close(n);
	if (w->f)
		w->f = NULL; /* its number is another's: it is not closed */
	if (new[0] >= 0)
		close(new[0]);
	if (w->peer >= 0)
		close(w->peer);
	if (w->beside >= 0)
		close(w->beside);
}

int main(void)
{
	pthread_t t[WAITERS], o[2];
	uint64_t random = test_seed();

	signal(SIGPIPE, SIG_IGN);
	much = calloc(1, BYTES);
	pthread_barrier_init(&begin, NULL, WAITERS + 1);
	pthread_barrier_init(&end, NULL, WAITERS + 1);
	for (int i = 0; i < WAITERS; i++) {
		waiters[i].kind = (enum kind)(i % KINDS);
		CHECK_EQ(pthread_create(&t[i], NULL, waits, &waiters[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&o[i], NULL, opens, NULL), 0);
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < WAITERS; i++)
			make(&waiters[i]);
		pthread_barrier_wait(&begin);
		for (int i = 0; i < WAITERS; i++)
			while (!__atomic_load_n(&waiters[i].begun, __ATOMIC_SEQ_CST))
				usleep(500);
		usleep(NAP_US);
		for (int i = 0; i < WAITERS; i++)
			end_of(&waiters[(i * 29 + r) % WAITERS], (unsigned)(test_rand(&random) % 97),
			       (int)(test_rand(&random) % 2));
		pthread_barrier_wait(&end);
	}
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(o[i], NULL), 0);
	/* on a busy machine a call may not have begun in time; it then concerns the new file */
	CHECK(wrong * 50 <= waits_made);
	return 0;
}
