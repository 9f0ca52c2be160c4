/* If the thread that began gives up (an exception, a cancellation), a
 * waiting thread begins anew. */
#include "sync/once.h"
#include "threads.h"

enum { THREADS = 8, FAILURES = 5 };

static kb_once_t once = KB_ONCE_INIT;
static int begun, inside, complete;

static void *call(void *arg)
{
	(void)arg;
	while (kbi_once_begin(&once)) {
		CHECK_EQ(test_add(&inside, 1), 1);
		kb_sleep(TEST_MS / 2);
		CHECK_EQ(test_add(&inside, -1), 0);
		if (test_add(&begun, 1) <= FAILURES) {
			kbi_once_abort(&once);
			continue;
		}
		complete = 1;
		kbi_once_done(&once);
	}
	CHECK_EQ(complete, 1);
	return NULL;
}

static void body(void)
{
	once = (kb_once_t)KB_ONCE_INIT;
	begun = complete = 0;
	workers_run(THREADS, call, NULL);
	CHECK_EQ(begun, FAILURES + 1);
}

int main(void)
{
	test_both(body);
	return 0;
}
