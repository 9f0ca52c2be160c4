/* pthread_exit runs the cleanup handlers, last first, then the destructors of keys. */
#include "test.h"

#include <pthread.h>

static char order[8];
static int n;
static pthread_key_t key;

static void note(void *what)
{
	order[n++] = *(const char *)what;
}

static void inner(void)
{
	pthread_cleanup_push(note, "a");
	pthread_cleanup_push(note, "b");
	pthread_cleanup_push(note, "x");
	pthread_cleanup_pop(0);
	pthread_exit("v");
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
}

static void *body(void *arg)
{
	pthread_setspecific(key, "k");
	pthread_cleanup_push(note, "c");
	inner();
	pthread_cleanup_pop(0);
	return arg;
}

int main(void)
{
	pthread_t t;
	void *r;

	CHECK_EQ(pthread_key_create(&key, note), 0);
	for (int i = 0; i < 3; i++) {
		n = 0;
		CHECK_EQ(pthread_create(&t, NULL, body, NULL), 0);
		CHECK_EQ(pthread_join(t, &r), 0);
		CHECK_EQ(*(char *)r, 'v');
		CHECK_EQ(n, 4);
		CHECK(order[0] == 'b' && order[1] == 'a' && order[2] == 'c' && order[3] == 'k');
	}
	return 0;
}
