/* core/agent: a program with 1000 parked threads, of which some have far deadlines, uses next to no
 * processor time.
 * sleeps: yes */
#include <kochab/kochab.h>
#include <sys/resource.h>

#include "test.h"

enum { N = 1000 };

static kb_sem_t gate;

static void *parks(void *arg)
{
	if ((uintptr_t)arg % 10 == 0)
		kb_sem_timedwait(&gate, kb_now() + 3600000000000ull);
	else
		kb_sem_wait(&gate);
	return NULL;
}

static uint64_t used_us(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(void)
{
	static kb_thread_t t[N];
	uint64_t used = UINT64_MAX;

	for (uintptr_t i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, parks, (void *)i), 0);
	kb_sleep(100000000);
	/* a virtual machine that is not given its processor may count that time as ours: a single
	 * interval of some counts */
	for (int i = 0; i < 10 && used >= 100000; i++) {
		uint64_t before = used_us();

		kb_sleep(2000000000);
		used = used_us() - before;
		if (used >= 100000)
			fprintf(stderr, "idle for 2 s used %llu us\n", (unsigned long long)used);
	}
	CHECK(used < 100000);
	for (unsigned i = 0; i < N; i++)
		kb_sem_post(&gate);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	return 0;
}
