/* A sender that has moved a part when its receiver closes: the call returns the part. On a socket
 * it raises no SIGPIPE then, on a pipe it does; a call that has moved nothing raises it on both. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES = 1 << 22, WRITE, WRITEV, SEND, SENDMSG, PIPE, WAYS };

static char bytes[BYTES];
static atomic_int signals;
static int end[2]; /* the sender's, the receiver's */

static void count(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals, 1);
}

static ssize_t send_by(int way)
{
	struct iovec v[2] = { { bytes, BYTES / 2 }, { bytes + BYTES / 2, BYTES / 2 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };

	switch (way) {
	case WRITEV:
		return writev(end[0], v, 2);
	case SEND:
		return send(end[0], bytes, BYTES, 0);
	case SENDMSG:
		return sendmsg(end[0], &m, 0);
	default:
		return write(end[0], bytes, BYTES);
	}
}

/* Takes a little, so that the sender is in the middle, then closes the receiver's end. */
static void *leave(void *unused)
{
	char some[4096];

	for (int i = 0; i < 4; i++)
		CHECK(read(end[1], some, sizeof some) > 0);
	usleep(20000);
	CHECK_EQ(close(end[1]), 0);
	return unused;
}

static void try_way(int way)
{
	pthread_t t;
	int fd[2];
	ssize_t r;

	if (way == PIPE) {
		CHECK_EQ(pipe(fd), 0);
		end[0] = fd[1];
		end[1] = fd[0];
	} else {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
	}
	atomic_store(&signals, 0);
	CHECK_EQ(pthread_create(&t, NULL, leave, NULL), 0);
	r = send_by(way);
	CHECK(r > 0 && r < BYTES);
	CHECK_EQ(atomic_load(&signals), way == PIPE);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(send_by(way), -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(atomic_load(&signals), 1 + (way == PIPE));
	CHECK_EQ(close(end[0]), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = count };

	CHECK_EQ(sigaction(SIGPIPE, &sa, NULL), 0);
	for (int i = 0; i < 5; i++)
		for (int way = WRITE; way < WAYS; way++)
			try_way(way);
	return 0;
}
