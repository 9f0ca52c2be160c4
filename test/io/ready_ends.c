/* io/ready: ways in which a wait ends without an event: deadline, stop, close with and without
 * notice, descriptors that are bad or never block; and numbers that are used again. */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "io_test.h"

static int stop_says;

static int stop(struct kbi_task *self)
{
	(void)self;
	return __atomic_load_n(&stop_says, __ATOMIC_ACQUIRE);
}

/* Waits; a result of 0 of the wait may be spurious. */
static int wait_until(int fd, short events, struct kbi_until until)
{
	int e;

	do
		e = ready_wait(fd, events, until, 1);
	while (e == 0 && poll(&(struct pollfd){ fd, events, 0 }, 1, 0) == 0);
	return e;
}

static int wait_for(int fd, short events, uint64_t ns)
{
	return wait_until(fd, events, ready_until(ns));
}

static void deadlines(void)
{
	int p[2];
	uint64_t before = kb_now();

	ready_pair(p);
	CHECK_EQ(wait_for(p[0], POLLIN, 20000000), ETIMEDOUT);
	CHECK(kb_now() - before >= 20000000);
	CHECK_EQ(wait_for(p[0], POLLIN, 0), ETIMEDOUT);
	CHECK_EQ(wait_for(p[0], POLLOUT, KB_FOREVER), 0);
	CHECK_EQ(wait_for(p[0], POLLIN | POLLOUT, KB_FOREVER), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(wait_for(p[0], POLLIN, KB_FOREVER), 0);
	CHECK_EQ(close(p[1]), 0);
	CHECK_EQ(wait_for(p[0], 0, KB_FOREVER), 0); /* hang-up */
	close(p[0]);
}

static void bad_ones(void)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK_EQ(wait_for(-1, POLLIN, KB_FOREVER), EBADF);
	CHECK_EQ(wait_for(54321, POLLIN, KB_FOREVER), EBADF);
	CHECK(wait_for(INT32_MAX, POLLIN, KB_FOREVER) != 0);
	CHECK_EQ(wait_for(file, POLLIN, KB_FOREVER), EPERM);
	close(file);
}

struct waiter {
	int fd, e;
	bool with_stop;
	uint64_t ns;
};

static void *waits(void *arg)
{
	struct waiter *w = arg;
	struct kbi_until until = ready_until(w->ns);

	if (w->with_stop)
		until.stop = stop;
	w->e = wait_until(w->fd, POLLIN, until);
	return NULL;
}

static kb_thread_t start(struct waiter *w)
{
	kb_thread_t t;

	CHECK_EQ(kb_thread_create(&t, NULL, waits, w), 0);
	kb_sleep(5000000);
	return t;
}

static void stops(void)
{
	struct waiter w = { .with_stop = true, .ns = KB_FOREVER };
	kb_thread_t t;
	int p[2];

	ready_pair(p);
	w.fd = p[0];
	stop_says = 0;
	t = start(&w);
	kbi_wait_wake((struct kbi_task *)t); /* spuriously */
	kb_sleep(1000000);
	__atomic_store_n(&stop_says, ECANCELED, __ATOMIC_RELEASE);
	kbi_wait_wake((struct kbi_task *)t);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(w.e, ECANCELED);
	close(p[0]);
	close(p[1]);
}

static void closes(void)
{
	struct waiter w = { .ns = KB_FOREVER };
	kb_thread_t t;
	int p[2], q[2], other;

	ready_pair(p);
	ready_pair(q);
	w.fd = p[0];
	t = start(&w);
	kbi_ready_closing(p[0]);
	close(p[0]);
	kbi_ready_closed(p[0]);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(w.e, EBADF);
	/* without notice, and with a different file under the number: found by the audit */
	CHECK_EQ(dup2(q[0], p[0]), p[0]);
	w.fd = p[0];
	t = start(&w);
	close(p[0]);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK(w.e == 0 || w.e == EBADF);
	/* the number is used again: the new file counts */
	other = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK_EQ(dup2(other, p[0]), p[0]);
	w.ns = 1000000;
	t = start(&w);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(w.e, ETIMEDOUT);
	CHECK_EQ(eventfd_write(other, 1), 0);
	w.ns = KB_FOREVER;
	t = start(&w);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(w.e, 0);
	close(p[0]), close(p[1]), close(q[0]), close(q[1]), close(other);
}

/* A single event for many threads: each gets its byte. */
static void herd(void)
{
	enum { N = 50 };
	static struct waiter w[N];
	static kb_thread_t t[N];
	int p[2];

	ready_pair(p);
	for (unsigned i = 0; i < N; i++) {
		w[i] = (struct waiter){ .fd = p[0], .ns = KB_FOREVER };
		CHECK_EQ(kb_thread_create(&t[i], NULL, waits, &w[i]), 0);
	}
	kb_sleep(5000000);
	CHECK_EQ(write(p[1], "x", 1), 1);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0); /* no thread reads it: it stays ready for all */
	close(p[0]), close(p[1]);
}

static int wait_any(const struct pollfd *f, nfds_t n, struct kbi_until until)
{
	enum { MOST = 64 };
	struct kbi_hold h[MOST] = { 0 };
	int e;

	kbi_hold_begin_all(h, f, n);
	e = kbi_ready_wait_any(h, f, n, until, 1);
	kbi_hold_end_all(h, n);
	return e;
}

static void several(void)
{
	enum { N = 40 };
	struct pollfd f[N];
	int p[N][2];

	for (unsigned i = 0; i < N; i++) {
		ready_pair(p[i]);
		f[i] = (struct pollfd){ .fd = p[i][0], .events = POLLIN };
	}
	f[3].fd = -1;
	CHECK_EQ(wait_any(f, N, ready_until(3000000)), ETIMEDOUT);
	CHECK_EQ(write(p[N - 1][1], "x", 1), 1);
	CHECK_EQ(wait_any(f, N, ready_until(KB_FOREVER)), 0);
	CHECK_EQ(poll(f, N, 0), 1);
	CHECK_EQ(wait_any(f, 5, ready_until(3000000)), ETIMEDOUT);
	close(p[2][0]);
	CHECK_EQ(wait_any(f, 5, ready_until(KB_FOREVER)), 0);
	CHECK_EQ(poll(f, 5, 0), 1);
	CHECK_EQ(f[2].revents, POLLNVAL);
}

/* A program closes descriptors that it does not know, in the middle of all operations. */
static void closes_all(void)
{
	struct waiter w = { .ns = KB_FOREVER };
	kb_thread_t t;
	int p[2];

	ready_pair(p);
	w.fd = p[0];
	t = start(&w);
	for (int fd = 3; fd < 2000; fd++)
		if (fd != p[0] && fd != p[1])
			close(fd);
	kb_sleep(20000000);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(w.e, 0);
	CHECK_EQ(wait_for(p[1], POLLIN, 1000000), ETIMEDOUT);
	t = start(&w);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(w.e, 0);
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	deadlines();
	bad_ones();
	stops();
	closes();
	herd();
	several();
	closes_all();
	return 0;
}
