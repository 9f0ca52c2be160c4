/* posix/call_queue.c - POSIX message queues: their descriptors can be waited for. Contract in call_priv.h.
 * May switch; cancellation points. */
#include "posix/call_priv.h"

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

/* The kernel's limit is a point of time: one that is long past makes it a look. */
static const struct timespec past = { 0, 0 };

static long looked(long r)
{
	return r == -ETIMEDOUT ? -EAGAIN : r;
}

static long try_mq_receive(struct kbi_call *c)
{
	struct letter *t = letter_of(c);

	return looked(kbi_sys(SYS_mq_timedreceive, c->fd, t->p, t->n, t->where, &past));
}

static long try_mq_send(struct kbi_call *c)
{
	struct letter *t = letter_of(c);

	return looked(kbi_sys(SYS_mq_timedsend, c->fd, t->p, t->n, t->priority, &past));
}

static long mq_by(struct letter *t, const struct timespec *limit)
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

long kbi_call_mq_receive(mqd_t q, char *p, size_t n, unsigned *priority, const struct timespec *limit, bool cancels)
{
	struct letter t = { KBI_CALL(.attempt = try_mq_receive, .fd = q, .events = POLLIN, .cancels = cancels),
			    p, n, 0, priority };

	return mq_by(&t, limit);
}

long kbi_call_mq_send(mqd_t q, const char *p, size_t n, unsigned priority, const struct timespec *limit, bool cancels)
{
	struct letter t = { KBI_CALL(.attempt = try_mq_send, .fd = q, .events = POLLOUT, .cancels = cancels),
			    (char *)p, n, priority, NULL };

	return mq_by(&t, limit);
}
