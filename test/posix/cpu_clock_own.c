/* CLOCK_THREAD_CPUTIME_ID is the thread's own. It begins near 0, whatever ran there before; it does
 * not go back when the thread goes to another VP; and all threads together use no more time than
 * there was. */
#define _GNU_SOURCE
#include "cpu_time.h"

enum { N = 8, EACH = 30 * MS };

static int64_t begun[N], used[N];

static void *computes(void *arg)
{
	long i = (long)arg;

	begun[i] = cpu_own();
	cpu_use(EACH);
	used[i] = cpu_own();
	return NULL;
}

static void *answers(void *arg)
{
	*(int64_t *)arg = cpu_own();
	return NULL;
}

int main(void)
{
	int64_t first = cpu_own(), sum = 0, late;
	pthread_t t[N];
	uint64_t since;

	cpu_use_alone(300 * MS);
	CHECK(cpu_own() - first >= 200 * MS);
	since = test_now_ns();
	for (long i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, computes, (void *)i), 0);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK(begun[i] < NEAR_NOTHING);
		CHECK(used[i] - begun[i] >= EACH);
		sum += used[i];
	}
	CHECK(sum <= cpu_had(since) + cpu_had(since) / 20);
	/* main continues with its time from before there were threads, and has not worked for them */
	CHECK(cpu_own() - first >= 200 * MS);
	CHECK(cpu_own() - first < 500 * MS);
	/* a thread that gets the descriptor and the stack of an earlier thread does not get its time */
	CHECK_EQ(pthread_create(&t[0], NULL, answers, &late), 0);
	CHECK_EQ(pthread_join(t[0], NULL), 0);
	CHECK(late < EACH / 2);
	return 0;
}
