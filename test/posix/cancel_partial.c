/* A thread that has moved a part and waits for room, or for the rest, is cancelled there: write,
 * writev, send, sendmsg of more than fits, recv with MSG_WAITALL. The part that it has moved has
 * arrived, and the call reports the part if libc's call does. */
#include "test.h"
#include "cancel_part.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static char much[1 << 20];
static int fd;
static long told; /* result of the call */

static long do_write(void) { return write(fd, much, sizeof much); }
static long do_send(void) { return send(fd, much, sizeof much, MSG_NOSIGNAL); }
static long do_collect(void) { return recv(fd, much, 2, MSG_WAITALL); }

static long do_writev(void)
{
	struct iovec v[2] = { { much, sizeof much / 2 }, { much, sizeof much / 2 } };

	return writev(fd, v, 2);
}

static long do_sendmsg(void)
{
	struct iovec v = { much, sizeof much };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

static const struct {
	long (*call)(void);
	int socket;
} calls[] = { { do_write, 0 }, { do_write, 1 }, { do_writev, 0 }, { do_writev, 1 }, { do_send, 1 },
	{ do_sendmsg, 1 }, { do_collect, 1 } };

static void *run(void *arg)
{
	told = calls[(long)arg].call();
	pthread_testcancel();
	return NULL;
}

/* Waits until a part has been moved. The call cannot end, and will soon be asleep. */
static void wait_for_part(long (*call)(void), int other)
{
	struct pollfd there = { .fd = other, .events = POLLIN };
	int left = 1;

	if (call != do_collect)
		CHECK_EQ(poll(&there, 1, -1), 1);
	while (call == do_collect && left > 0) {
		CHECK_EQ(ioctl(fd, FIONREAD, &left), 0);
		usleep(1000);
	}
	usleep(10000);
}

static void cancel(long i)
{
	int ends[2];
	pthread_t t;
	char c = 1;
	void *r;

	if (calls[i].socket)
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	else
		CHECK_EQ(pipe(ends), 0);
	fd = ends[1];
	told = 0;
	if (calls[i].call == do_collect)
		CHECK_EQ(write(ends[0], &c, 1), 1);
	CHECK_EQ(pthread_create(&t, NULL, run, (void *)i), 0);
	wait_for_part(calls[i].call, ends[0]);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK(r == PTHREAD_CANCELED);
	if (cancel_returns_part())
		CHECK(told > 0 && told < (calls[i].call == do_collect ? 2 : (long)sizeof much));
	else
		CHECK_EQ(told, 0);
	if (calls[i].call != do_collect)
		CHECK_EQ(read(ends[0], &c, 1), 1);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	for (long i = 0; i < (long)(sizeof calls / sizeof calls[0]); i++)
		cancel(i);
	return 0;
}
