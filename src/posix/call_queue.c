/* posix/call_queue.c - POSIX message queues. A sender waits for the descriptor; a receiver waits in
 * the kernel on a kernel thread, as long as there are enough, since the kernel must know of the
 * receiver. Callers: programs, through call.def. Contract in call_priv.h. May switch; cancellation
 * points. */
#include "posix/call_priv.h"

#include "core/worker_pool.h"
#include "os/sys.h"

struct letter {
	struct kbi_call c;
	char *p;
	size_t n;
	unsigned priority, *where;
};

static struct letter *letter_of(struct kbi_call *c)
{
	return (struct letter *)(void *)c;
}

/* The kernel's limit is a point of time: a point long past makes the call a try. */
static const struct timespec past = { 0, 0 };

static long result_of_try(long r)
{
	return r == -ETIMEDOUT ? -EAGAIN : r;
}

static long try_mq_receive(struct kbi_call *c)
{
	struct letter *t = letter_of(c);

	return result_of_try(kbi_sys(SYS_mq_timedreceive, c->fd, t->p, t->n, t->where, &past));
}

static long try_mq_send(struct kbi_call *c)
{
	struct letter *t = letter_of(c);

	return result_of_try(kbi_sys(SYS_mq_timedsend, c->fd, t->p, t->n, t->priority, &past));
}

static long wait_for_queue(struct letter *t, const struct timespec *limit)
{
	long r;

	if (t->c.cancels)
		kbi_cancel_test();
	if (limit && (!kbi_posix_time_ok(limit) || limit->tv_sec < 0))
		return -EINVAL;
	r = t->c.attempt(&t->c);
	if (!kbi_call_again(r))
		return r;
	t->c.late = -ETIMEDOUT;
	if (limit)
		t->c.deadline = kbi_posix_deadline(CLOCK_REALTIME, limit);
	return kbi_call_wait(&t->c);
}

/* Receives in the kernel, after other threads have run once. While the kernel knows of a receiver
 * it does not notify a thread that has asked to be told of a message (mq_notify). */
static long receive_in_kernel(struct letter *t, const struct timespec *limit)
{
	uint32_t before;
	/* not a copy: closing a copy would end the notification that mq_notify has asked for */
	const int fd = t->c.fd;
	long r;

	if (kbi_call_turn(t->c.cancels))
		return -EINTR;
	r = try_mq_receive(&t->c);
	if (!kbi_call_again(r))
		return r;
	KBI_CALL_BLOCKING(true);
	before = kbi_posix_me.handled;
	do
		r = t->c.cancels ? kbi_call_result(KBI_CALL_REAL(mq_timedreceive)(fd, t->p, t->n, t->where,
		limit)) :
				   kbi_sys(SYS_mq_timedreceive, fd, t->p, t->n, t->where, limit);
	/* interrupted by a signal that the program does not know of */
	while (r == -EINTR && kbi_posix_me.handled == before);
	return r;
}

long kbi_call_mq_receive(mqd_t q, char *p, size_t n, unsigned *priority,
	const struct timespec *limit, bool cancels)
{
	struct letter t = { KBI_CALL(.attempt = try_mq_receive, .fd = q, .events = POLLIN,
		.cancels = cancels),
			    p, n, 0, priority };
	long r;

	if (kbi_worker_pool_is_scarce())
		return wait_for_queue(&t, limit);
	if (cancels)
		kbi_cancel_test();
	if (limit && (!kbi_posix_time_ok(limit) || limit->tv_sec < 0))
		return -EINVAL;
	r = try_mq_receive(&t.c);
	return kbi_call_again(r) ? receive_in_kernel(&t, limit) : r;
}

long kbi_call_mq_send(mqd_t q, const char *p, size_t n, unsigned priority,
	const struct timespec *limit, bool cancels)
{
	struct letter t = { KBI_CALL(.attempt = try_mq_send, .fd = q, .events = POLLOUT,
		.cancels = cancels),
			    (char *)p, n, priority, NULL };

	return wait_for_queue(&t, limit);
}
