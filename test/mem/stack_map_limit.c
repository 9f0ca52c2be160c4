/* mem/stack: guards by mprotect cost mappings, of which the kernel allows some 65,530: beyond that threads
 * are created without a guard, and the program's own mappings still work. */
#include <kochab/kochab.h>
#include <sys/mman.h>

#include "test.h"

enum { N = 50000 };

static kb_sem_t gate;

static void *waits(void *arg)
{
	CHECK_EQ(kb_sem_wait(&gate), 0);
	return arg;
}

int main(void)
{
	static kb_thread_t t[N];
	unsigned limit = 65530, maps = 0;
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	kb_attr_t a;
	int ch;

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer has room for 8128 threads");
#endif
	if (f && fscanf(f, "%u", &limit) != 1)
		limit = 65530;
	if (f)
		fclose(f);
	if (limit > 2 * N)
		SKIP("the limit of mappings is too high to be reached");
	CHECK_EQ(setenv("KOCHAB_GUARD", "mprotect", 1), 0);
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_setstacksize(&a, KB_STACK_MIN), 0);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], &a, waits, NULL), 0);
	for (int i = 0; i < 100; i++)
		kb_yield();
	kb_sleep(50000000);
	for (int i = 0; i < 100; i++) {
		/* of different rights, so that they do not merge */
		char *p = mmap(NULL, 8192, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(p != MAP_FAILED);
	}
	f = fopen("/proc/self/maps", "r");
	while (f && (ch = getc(f)) != EOF)
		maps += ch == '\n';
	if (f)
		fclose(f);
	CHECK(maps > 1000 && maps <= limit); /* guards there were */
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_sem_post(&gate), 0);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	return 0;
}
