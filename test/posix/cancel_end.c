/* posix/cancel: a thread is cancelled while it returns by itself. Both ways of ending work, and the
 * next thread with its stack and control block can still be cancelled, and ends. */
#include <pthread.h>
#include <unistd.h>

#include "cancel_late.h"
#include "test.h"

enum { ROUNDS = 3000, SHORT = 4 };

static void *returns(void *arg)
{
	return arg;
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

static void cancelled_or_returned(pthread_t t, void *returned)
{
	void *r = NULL;

	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK(r == returned || r == PTHREAD_CANCELED);
}

int main(void)
{
	pthread_t t[SHORT], w;
	void *r;

	for (int k = 0; k < ROUNDS; k++) {
		for (int i = 0; i < SHORT; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, returns, t), 0);
		for (int i = 0; i < SHORT; i++)
			CHECK_EQ(cancel_late(t[i]), 0);
		for (int i = 0; i < SHORT; i++)
			cancelled_or_returned(t[i], t);
		CHECK_EQ(pthread_create(&w, NULL, waits, NULL), 0);
		CHECK_EQ(pthread_cancel(w), 0);
		CHECK_EQ(pthread_join(w, &r), 0);
		CHECK(r == PTHREAD_CANCELED);
	}
	return 0;
}
