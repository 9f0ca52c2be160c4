/* Terminals: a thread that writes more than fits leaves its virtual processor to the thread that
 * makes room; a signal or a cancellation ends such a write, and a read that the terminal itself
 * limits (VMIN 0, VTIME). */
#include "test.h"
#include "cancel_part.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

enum { PIECE = 8192, PIECES = 8, ALL = PIECE * PIECES, MANY = 100000 };

static int master, slave;
static volatile int handled;
static ssize_t told; /* by a write that was ended */
static char bytes[MANY];

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static int open_raw(void)
{
	struct termios t;

	if (openpty(&master, &slave, NULL, NULL, NULL))
		return 0;
	CHECK_EQ(tcgetattr(slave, &t), 0);
	cfmakeraw(&t);
	t.c_cc[VMIN] = 0;
	t.c_cc[VTIME] = 250;
	CHECK_EQ(tcsetattr(slave, TCSANOW, &t), 0);
	return 1;
}

static void close_both(void)
{
	close(slave);
	close(master);
}

/* ---- more than fits ----------------------------------------------------------------------- */

static void *feed(void *by_parts)
{
	for (int i = 0; i < PIECES; i++) {
		struct iovec v[2] = { { bytes, 5 }, { bytes + 5, PIECE - 5 } };

		CHECK_EQ(by_parts ? writev(slave, v, 2) : write(slave, bytes, PIECE), PIECE);
	}
	return NULL;
}

/* It is the first thread: no idle kernel thread exists to take the virtual processor. */
static void more_than_room(void *by_parts)
{
	static char in[PIECE];
	size_t got = 0;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, feed, by_parts), 0);
	while (got < ALL) {
		struct pollfd p = { master, POLLIN, 0 };
		ssize_t n;

		CHECK_EQ(poll(&p, 1, -1), 1);
		n = read(master, in, sizeof in);
		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK_EQ(in[i], 'x');
		got += (size_t)n;
	}
	CHECK_EQ(got, ALL);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- the ends of a wait ------------------------------------------------------------------- */

static void *in_read(void *unused)
{
	char c;

	(void)unused;
	CHECK_EQ(read(slave, &c, 1), -1);
	CHECK_EQ(errno, EINTR);
	return NULL;
}

static void *in_write(void *unused)
{
	(void)unused;
	told = write(slave, bytes, MANY);
	CHECK(told > 0 && told < MANY);
	pthread_testcancel();
	return NULL;
}

static void ends(void *(*body)(void *), int cancelled)
{
	pthread_t t;
	void *result;

	CHECK_EQ(pthread_create(&t, NULL, body, NULL), 0);
	usleep(100000);
	handled = 0;
	told = 0;
	if (cancelled)
		CHECK_EQ(pthread_cancel(t), 0);
	/* it may not have got there */
	for (int i = 0; !cancelled && i < 20; i++) {
		CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
		usleep(20000);
		if (pthread_tryjoin_np(t, &result) == 0) {
			CHECK(handled > 0);
			return;
		}
	}
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(!cancelled || result == PTHREAD_CANCELED);
	CHECK_EQ(told > 0, body == in_write && (!cancelled || cancel_returns_part()));
}

int main(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	memset(bytes, 'x', sizeof bytes);
	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	if (!open_raw())
		SKIP("no pseudo-terminals");
	more_than_room(NULL);
	more_than_room(bytes);
	ends(in_read, 0);
	ends(in_read, 1);
	ends(in_write, 0);
	close_both();
	CHECK(open_raw());
	ends(in_write, 1);
	close_both();
	return 0;
}
