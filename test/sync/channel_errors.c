/* Errors of a channel, tries and time-outs, and the effect of close on the elements inside. */
#include <errno.h>

#include "threads.h"

static void refusals(void)
{
	kb_chan_t *ch;

	CHECK_EQ(kb_chan_create(&ch, 0, 1), EINVAL);
	CHECK_EQ(kb_chan_create(&ch, (size_t)1 << 30, 1), EINVAL);
	CHECK_EQ(kb_chan_create(&ch, 4096, SIZE_MAX / 4096), ENOMEM);
}

static void rendezvous(void)
{
	kb_chan_t *ch;
	uint64_t at = kb_now() + 5 * TEST_MS;
	int v = 1;

	CHECK_EQ(kb_chan_create(&ch, sizeof v, 0), 0);
	CHECK_EQ(kb_chan_trysend(ch, &v), EAGAIN);
	CHECK_EQ(kb_chan_tryrecv(ch, &v), EAGAIN);
	CHECK_EQ(kb_chan_timedsend(ch, &v, at), ETIMEDOUT);
	CHECK(kb_now() >= at);
	CHECK_EQ(kb_chan_timedrecv(ch, &v, at), ETIMEDOUT);
	CHECK_EQ(kb_chan_length(ch), 0);
	kb_chan_destroy(ch);
}

static void buffered(void)
{
	kb_chan_t *ch;
	int v;

	CHECK_EQ(kb_chan_create(&ch, sizeof v, 3), 0);
	for (v = 0; v < 3; v++)
		CHECK_EQ(kb_chan_trysend(ch, &v), 0);
	CHECK_EQ(kb_chan_trysend(ch, &v), EAGAIN);
	CHECK_EQ(kb_chan_timedsend(ch, &v, kb_now() + TEST_MS), ETIMEDOUT);
	CHECK_EQ(kb_chan_length(ch), 3);
	CHECK_EQ(kb_chan_recv(ch, &v), 0);
	CHECK_EQ(v, 0);
	v = 3;
	CHECK_EQ(kb_chan_send(ch, &v), 0);
	CHECK_EQ(kb_chan_close(ch), 0);
	CHECK_EQ(kb_chan_close(ch), EPIPE);
	CHECK_EQ(kb_chan_send(ch, &v), EPIPE);
	CHECK_EQ(kb_chan_trysend(ch, &v), EPIPE);
	for (int i = 1; i < 4; i++) {
		CHECK_EQ(kb_chan_recv(ch, &v), 0);
		CHECK_EQ(v, i);
	}
	CHECK_EQ(kb_chan_recv(ch, &v), EPIPE);
	CHECK_EQ(kb_chan_tryrecv(ch, &v), EPIPE);
	kb_chan_destroy(ch);
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	refusals();
	rendezvous();
	buffered();
	return 0;
}
