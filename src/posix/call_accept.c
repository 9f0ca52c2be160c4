/* posix/call_accept.c - accept, which has no non-blocking form of its own: the socket is polled, by
 * one thread of the process at a time. Contract in call_priv.h. Callers: call_rw, which has
 * the functions. May switch. */
#include "posix/call_priv.h"

#include "io/own.h"
#include "os/sys.h"

struct accepting {
	struct kbi_call c;
	void *address;
	socklen_t *len;
	int flags;
};

static struct accepting *accepting_of(struct kbi_call *c)
{
	return (struct accepting *)(void *)c;
}

static long accept_by(struct kbi_call *c, int fd)
{
	struct accepting *t = accepting_of(c);
	long r = kbi_sys_is_ready(fd, POLLIN) ? kbi_sys(SYS_accept4, fd, t->address, t->len, t->flags)
		: -EAGAIN;

	if (r >= 0)
		kbi_call_note((int)r, KBI_CALL_SOCKET);
	return r;
}

/* Tries to accept. Another process may take the connection that poll has seen, and then the kernel
 * waits for the next, so the attempt steps out of its brackets. */
static long try_accept(struct kbi_call *c)
{
	bool gate;
	long r;
	int fd;

	if (!kbi_sys_is_ready(c->fd, POLLIN))
		return -EAGAIN;
	fd = kbi_call_step_out(c);
	gate = c->inside ? kbi_call_gate_now(c->number) : kbi_call_gate(c->number);
	r = accept_by(c, fd);
	if (kbi_unlikely(r == -EMFILE && kbi_call_step_in(c))) /* the copy uses the last number */
		r = accept_by(c, c->fd);
	if (gate)
		kbi_call_gate_open(c->number);
	return r;
}

static long accept_now(struct kbi_call *c)
{
	long r;

	if (!kbi_call_gate_now(c->fd))
		return -EAGAIN;
	r = accept_by(c, c->fd);
	kbi_call_gate_open(c->fd);
	return r;
}

/* Returns the errors that the kernel reports before it waits: not a listening socket, no number for
 * another descriptor. 0: none. */
static long may_accept(struct kbi_call *c)
{
	struct accepting *t = accepting_of(c);
	int is = 0;
	socklen_t n = sizeof(is);
	int spare;

	if (kbi_sys(SYS_getsockopt, c->fd, SOL_SOCKET, SO_ACCEPTCONN, &is, &n) || !is)
		return kbi_sys(SYS_accept4, c->fd, t->address, t->len, t->flags);
	/* not the lowest free number: the program may be about to put a file there */
	spare = kbi_own_copy(c->fd);
	if (spare < 0)
		return spare;
	kbi_own_drop(spare);
	return 0;
}

long kbi_call_accept(int fd, void *from, socklen_t *len, int flags, bool cancels)
{
	struct accepting t = { KBI_CALL(.attempt = try_accept, .settle = may_accept, .fd = fd,
		.events = POLLIN, .cancels = cancels, .time_limit = SO_RCVTIMEO), from, len, flags };
	long r;

	if (cancels)
		kbi_cancel_test();
	r = accept_now(&t.c);
	if (kbi_call_again(r))
		return kbi_call_wait(&t.c);
	if (r >= 0)
		kbi_slice_call(KBI_SLICE_GIVEN);
	return r;
}
