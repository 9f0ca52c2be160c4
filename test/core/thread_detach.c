/* core/thread: detached threads give everything back: thousands in turn need no more memory than a
 * few. */
#include <kochab/kochab.h>
#include <string.h>

#include "core/own_tls.h"
#include "test.h"

enum { N = 20000, AT_ONCE = 200 };

/* Tolerance, KiB. ThreadSanitizer keeps memory of its own for each pair of a thread and a
 * processor. */
#ifdef __SANITIZE_THREAD__
enum { MORE = 80000 };
#else
enum { MORE = 20000 };
#endif

static kb_sem_t room = KB_SEM_INIT(AT_ONCE);
static uint32_t ended;

static void *works(void *arg)
{
	char page[2000];

	memset(page, 1, sizeof page);
	__asm__ volatile("" : : "r"(page) : "memory");
	if ((uintptr_t)arg % 3 == 0)
		kb_yield();
	if ((uintptr_t)arg % 5 == 0)
		CHECK_EQ(kb_thread_detach(kb_thread_self()), 0);
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_sem_post(&room), 0);
	return NULL;
}

static long resident_kib(void)
{
	char line[256];
	long n = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static void round_of(uintptr_t from, enum kb_tls tls)
{
	for (uintptr_t i = from; i < from + N; i++) {
		kb_thread_t t;
		kb_attr_t a;

		kb_attr_init(&a);
		kb_attr_settls(&a, own_tls_or_light(tls));
		kb_attr_setdetached(&a, i % 5 != 0 && i % 2);
		CHECK_EQ(kb_sem_wait(&room), 0);
		CHECK_EQ(kb_thread_create(&t, &a, works, (void *)i), 0);
		if (i % 5 && i % 2 == 0)
			kb_thread_detach(t);
	}
}

int main(void)
{
	for (int tls = 0; tls < 2; tls++) {
		long before, after;

		round_of(0, (enum kb_tls)tls);
		before = resident_kib();
		round_of(0, (enum kb_tls)tls);
		after = resident_kib();
		CHECK(after - before < MORE);
	}
	while (__atomic_load_n(&ended, __ATOMIC_RELAXED) < 4 * N)
		kb_sleep(1000000);
	return 0;
}
