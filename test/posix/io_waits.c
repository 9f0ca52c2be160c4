/* Every call that waits (io_calls.h), with a thread in each at once, on any number of virtual
 * processors: further threads go on beside them; the event meant for a call lets it go on. A
 * handler ends it with EINTR where the kernel would, a cancellation where it is a cancellation
 * point; O_NONBLOCK and time limits hold; a thread inside outlives a close of its descriptor, as in
 * the kernel. */
#include "io_calls.h"
#include "libc_age.h"


enum { TICK_US = 15000, LIMIT_MS = 30, LONG_MS = 60000, SOON_MS = 5000 };

static struct waiter {
	const struct quiet *q;
	int in, out, begun, over, handled, cleaned;
	bool here, marks, timed;
	long result;
	uint64_t took;
	pthread_t t;
} waiters[QUIETS];

static __thread struct waiter *me;

static void handler(int sig)
{
	int e = errno;

	(void)sig;
	if (me)
		__atomic_add_fetch(&me->handled, 1, __ATOMIC_RELEASE);
	errno = e;
}

static int now(int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

static void expect(const struct waiter *w, bool ok, const char *what)
{
	if (!ok)
		fprintf(stderr, "%s: result %ld, over %d, handled %d\n", w->q->name, w->result, w->over,
			w->handled);
	if (!ok)
		test_fail(__FILE__, __LINE__, what);
}

#define EACH(w) (struct waiter *w = waiters; w < waiters + QUIETS; w++)
#define EACH_HERE(w) EACH(w) if (w->here)

/* ---- the threads ---- */

static void cleanup(void *w) { ((struct waiter *)w)->cleaned = 1; }

static void mark_self(void)
{
	int old;

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	CHECK_EQ(pthread_cancel(pthread_self()), 0);
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
}

static void *waits(void *arg)
{
	struct waiter *w = me = arg;
	uint64_t begun = test_now_ns();
	int old;

	pthread_cleanup_push(cleanup, w);
	__atomic_store_n(&w->begun, 1, __ATOMIC_RELEASE);
	if (w->marks)
		mark_self();
	w->result = w->q->call(w->in);
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	w->took = test_now_ns() - begun;
	__atomic_store_n(&w->over, 1, __ATOMIC_RELEASE);
	pthread_cleanup_pop(0);
	return NULL;
}

static void limit(const struct waiter *w, int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };

	CHECK_EQ(setsockopt(w->in, SOL_SOCKET, w->q->limit, &t, sizeof t), 0);
}

static bool every(const struct quiet *q) { return q->call; }
static bool streams(const struct quiet *q) { return q->streams; }
static bool has_limit(const struct quiet *q) { return q->limit; }

/* In 2.34 and 2.35, and from 2.41 on, glibc's signal also reaches threads outside its cancellation
 * points, and ends calls that the kernel does not restart. */
static bool libc_interrupts(void)
{
	if (under_kochab())
		return false;
	return !libc_is_before("2.41") || (!libc_is_before("2.34") && libc_is_before("2.36"));
}

static bool is_clear(const struct quiet *q)
{
	return q->cancel != EITHER && !(q->cancel == GOES_ON && q->restart != ALWAYS &&
		libc_interrupts());
}

static bool dies(const struct quiet *q) { return q->cancel == DIES; }

/* Opens places for the calls that are wanted. */
static void open_all(bool (*wanted)(const struct quiet *q))
{
	for EACH(w) {
		*w = (struct waiter){ .q = &quiets[w - waiters], .in = -1, .out = -1 };
		if (wanted(w->q))
			w->q->open(&w->in, &w->out);
		w->here = w->in >= 0;
	}
}

/* Starts one thread after another: each is inside, or on its way, and the caller soon has its turn
 * again. */
static void start_all(void)
{
	for EACH_HERE(w) {
		uint64_t begun = test_now_ns();

		CHECK_EQ(pthread_create(&w->t, NULL, waits, w), 0);
		while (!now(&w->begun))
			sched_yield();
		usleep(200);
		expect(w, test_now_ns() - begun < SOON_MS * 1000000ull, "the others go on");
	}
	usleep(TICK_US);
}

static void join_all(void)
{
	for EACH_HERE(w) {
		CHECK_EQ(pthread_join(w->t, NULL), 0);
		w->q->close(w->in, w->out);
	}
}

static void nobody_is_over(void)
{
	for EACH_HERE(w)
		expect(w, !now(&w->over), "it waits");
}

/* Signals again: the first signal may have come before the call. */
static void until_over(struct waiter *w, int sig)
{
	for (int i = 0; !now(&w->over); i++) {
		if (i % 20 == 0)
			CHECK_EQ(pthread_kill(w->t, sig), 0);
		usleep(1000);
	}
}

static void serve(struct waiter *w)
{
	if (w->q->serve)
		w->q->serve(w->in, w->out);
	else
		until_over(w, SIGUSR1);
}

static void serve_all(void)
{
	for EACH_HERE(w)
		if (!now(&w->over))
			serve(w);
}

static long served(const struct quiet *q) { return q->serve ? q->served : -EINTR; }

/* ---- going on, and ending ----------------------------------------------------------------- */

static int counted, counting;

static void *counts(void *unused)
{
	while (now(&counting))
		__atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
	return unused;
}

static void all_are_served(void)
{
	pthread_t t;
	int before;

	open_all(every);
	start_all();
	counting = 1;
	CHECK_EQ(pthread_create(&t, NULL, counts, NULL), 0);
	before = now(&counted);
	for (int i = 0; i < SOON_MS && now(&counted) == before; i++)
		usleep(1000);
	CHECK(now(&counted) > before);
	__atomic_store_n(&counting, 0, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(t, NULL), 0);
	nobody_is_over();
	serve_all();
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == served(w->q), "it gets what was meant for it");
}

static void all_have_handled(int sig)
{
	for EACH_HERE(w)
		CHECK_EQ(pthread_kill(w->t, sig), 0);
	for EACH_HERE(w)
		while (!now(&w->handled))
			usleep(500);
}

static void handlers_end_them(void)
{
	open_all(every);
	start_all();
	all_have_handled(SIGUSR1);
	for EACH_HERE(w)
		if (w->q->restart != LASTS)
			until_over(w, SIGUSR1);
	usleep(5000);
	for EACH_HERE(w)
		expect(w, (w->q->restart == LASTS) == !now(&w->over), "a handler ends it");
	serve_all();
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == (w->q->restart == LASTS ? served(w->q) : -EINTR), "by EINTR");
}

/* Handlers with SA_RESTART let the calls go on. */
static void handlers_let_them_go_on(void)
{
	open_all(every);
	start_all();
	all_have_handled(SIGUSR2);
	for EACH_HERE(w)
		if (w->q->restart == NEVER)
			until_over(w, SIGUSR2);
	usleep(5000);
	for EACH_HERE(w)
		expect(w, (w->q->restart == NEVER) == now(&w->over), "it is restarted");
	serve_all();
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == (w->q->restart == NEVER ? -EINTR : served(w->q)),
			"and gets what came then");
}

static void limits_end_restarts(void)
{
	open_all(has_limit);
	for EACH_HERE(w)
		limit(w, LONG_MS);
	start_all();
	nobody_is_over();
	for EACH_HERE(w)
		until_over(w, SIGUSR2);
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == -EINTR, "with a time limit it is not restarted");
}

static void cancel_all(void)
{
	for EACH_HERE(w)
		CHECK_EQ(pthread_cancel(w->t), 0);
	for EACH_HERE(w) {
		void *value = NULL;

		if (w->q->cancel == GOES_ON)
			continue;
		CHECK_EQ(pthread_join(w->t, &value), 0);
		expect(w, value == PTHREAD_CANCELED && w->cleaned, "a cancellation ends it");
		w->q->close(w->in, w->out);
		w->here = false;
	}
}

static void cancellations_end_them(void)
{
	open_all(is_clear);
	start_all();
	nobody_is_over();
	cancel_all();
	usleep(5000);
	nobody_is_over();
	serve_all();
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == served(w->q), "it is no cancellation point");
}

/* Threads that are cancelled already do not begin the call, and the event meant for it stays. */
static void marked_ones_do_not_begin(void)
{
	open_all(dies);
	for EACH_HERE(w) {
		w->marks = true;
		if (w->q->serve && w->q->call == do_read)
			w->q->serve(w->in, w->out);
	}
	start_all();
	for EACH_HERE(w) {
		void *value = NULL;

		CHECK_EQ(pthread_join(w->t, &value), 0);
		expect(w, value == PTHREAD_CANCELED && w->cleaned, "it does not begin");
		if (w->q->serve && w->q->call == do_read)
			CHECK_EQ(do_read(w->in), 1);
		w->q->close(w->in, w->out);
	}
}

/* ---- descriptors ---- */

static void says_eagain(const struct quiet *q)
{
	int in, out;

	q->open(&in, &out);
	if (in < 0)
		return;
	CHECK_EQ(fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(q->call(in), -EAGAIN);
	q->close(in, out);
}

/* Returns NULL, or a waiter that may not have been inside yet. */
static struct waiter *closes_end(unsigned patience_us)
{
	struct waiter *early = NULL;

	open_all(streams);
	start_all();
	usleep(patience_us);
	for EACH_HERE(w)
		CHECK_EQ(close(w->in), 0);
	usleep(5000);
	for EACH_HERE(w) {
		if (now(&w->over) && w->result == -EBADF)
			early = w;
		w->in = -1;
		expect(w, !now(&w->over) || w->result == -EBADF, "it waits");
		if (!now(&w->over))
			serve(w);
	}
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == -EBADF || w->result == served(w->q),
			"who is inside outlives a close");
	return early;
}

static void closes_do_not_end_them(void)
{
	struct waiter *early = &waiters[0];

	for (unsigned i = 0; i < 5 && early; i++)
		early = closes_end((TICK_US << i * 2) - TICK_US);
	if (early)
		expect(early, false, "who is inside outlives a close");
}

/* ---- time ---- */

static void socket_limits_end_them(void)
{
	open_all(has_limit);
	for EACH_HERE(w)
		limit(w, LIMIT_MS);
	start_all();
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == -EAGAIN && w->took >= (LIMIT_MS - 1) * 1000000ull,
			"its time is over");
}

static struct timespec in_time(void) { return test_in_ms(CLOCK_REALTIME, LIMIT_MS); }

static long late_poll(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return result_of(poll(&p, 1, LIMIT_MS));
}

static long late_epoll(int fd)
{
	struct epoll_event e;

	return result_of(epoll_wait(set_with(fd), &e, 1, LIMIT_MS));
}

static const struct timespec span = { 0, LIMIT_MS * 1000000 };

static long late_ppoll(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return result_of(ppoll(&p, 1, &span, NULL));
}

static long late_select(int fd)
{
	struct timeval t = { 0, LIMIT_MS * 1000 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return result_of(select(fd + 1, &in, NULL, NULL, &t));
}

static long late_pselect(int fd)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return result_of(pselect(fd + 1, &in, NULL, NULL, &span, NULL));
}

static long late_receive(int q)
{
	struct timespec t = in_time();
	char c[8];

	return result_of(mq_timedreceive(q, c, sizeof c, NULL, &t));
}

static long late_send(int q)
{
	struct timespec t = in_time();

	return result_of(mq_timedsend(q, "x", 1, 0, &t));
}

static long late_semtimedop(int id) { return result_of(semtimedop(id, &take, 1, &span)); }

static long late_sigtimedwait(int sig)
{
	sigset_t set = only(sig);

	return result_of(sigtimedwait(&set, NULL, &span));
}

static long late_usleep(int unused) { (void)unused; return result_of(usleep(LIMIT_MS * 1000)); }
static long late_nanosleep(int unused) { (void)unused; return result_of(nanosleep(&span, NULL)); }

static long late_until(int unused)
{
	struct timespec t = in_time();

	(void)unused;
	return -clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

static long late_futex(int i)
{
	return result_of(syscall(SYS_futex, &futex_word[i], FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0));
}

static long late_io_getevents(int i)
{
	struct timespec t = span;
	struct io_event e;

	return result_of(syscall(SYS_io_getevents, aio_context[i], 1, 1, &e, &t));
}

static const struct quiet limited[] = {
	{ "poll for a time", PIPE, late_poll, 0, NEVER, DIES, 0, false },
	{ "ppoll for a time", PIPE, late_ppoll, 0, NEVER, DIES, 0, false },
	{ "select for a time", PIPE, late_select, 0, NEVER, DIES, 0, false },
	{ "pselect for a time", PIPE, late_pselect, 0, NEVER, DIES, 0, false },
	{ "epoll_wait for a time", PIPE, late_epoll, 0, NEVER, DIES, 0, false },
	{ "mq_timedreceive in time", QUEUE, late_receive, -ETIMEDOUT, NEVER, DIES, 0, false },
	{ "mq_timedsend in time", FULL_QUEUE, late_send, -ETIMEDOUT, NEVER, DIES, 0, false },
	{ "semtimedop for a time", SEMAPHORE, late_semtimedop, -EAGAIN, NEVER, DIES, 0, false },
	{ "sigtimedwait for a time", SIGNAL, late_sigtimedwait, -EAGAIN, NEVER, DIES, 0, false },
	{ "usleep", NOTHING, late_usleep, 0, NEVER, DIES, 0, false },
	{ "nanosleep", NOTHING, late_nanosleep, 0, NEVER, DIES, 0, false },
	{ "clock_nanosleep until", NOTHING, late_until, 0, NEVER, DIES, 0, false },
	{ "futex for a time", futex_place, wake_futex, no_close, late_futex, -ETIMEDOUT, NEVER, DIES, 0,
		false },
	{ "io_getevents for a time", aio_place, submit_aio, end_aio, late_io_getevents, 0, NEVER, DIES,
		0, false },
};

static void their_times_end_them(void)
{
	enum { LIMITED = sizeof limited / sizeof *limited };

	for EACH(w) {
		*w = (struct waiter){ .q = &limited[(w - waiters) % LIMITED], .in = -1 };
		if (w - waiters < LIMITED)
			w->q->open(&w->in, &w->out);
		w->here = w->in >= 0;
	}
	start_all();
	join_all();
	for EACH_HERE(w)
		expect(w, w->result == w->q->served && w->took >= LIMIT_MS * 1000000ull,
			"its time is over");
}

static void *ends(void *arg) { return arg; }

/* Calls that processes cannot have (io_setup) are refused once there are threads. */
static void first_thread(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, ends, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	sigset_t set;

	first_thread();
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sa.sa_flags = SA_RESTART;
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, FIRST_SIGNAL + i);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	all_are_served();
	handlers_end_them();
	handlers_let_them_go_on();
	limits_end_restarts();
	cancellations_end_them();
	marked_ones_do_not_begin();
	for (int i = 0; i < QUIETS; i++)
		if (quiets[i].streams)
			says_eagain(&quiets[i]);
	closes_do_not_end_them();
	socket_limits_end_them();
	their_times_end_them();
	return 0;
}
