/* core/watch: a word in memory shared with another process, which changes it; all other threads go
 * on meanwhile. */
#include <kochab/kochab.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 15, MANY = 1000, OVER = 1000000 };

struct shared {
	uint32_t there, back;
};

static uint64_t yields;
static uint32_t stop;

static void *works(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&yields, 1, __ATOMIC_RELAXED);
		kb_yield();
	}
	return arg;
}

static void partner(struct shared *s)
{
	for (uint32_t i = 1;; i++) {
		while (__atomic_load_n(&s->there, __ATOMIC_ACQUIRE) != i) {
			if (__atomic_load_n(&s->there, __ATOMIC_ACQUIRE) == OVER)
				_exit(0);
			usleep(50);
		}
		usleep(i % 3 * 700);
		__atomic_store_n(&s->back, i, __ATOMIC_RELEASE);
	}
}

static void converse(struct shared *s, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i <= to; i++) {
		__atomic_store_n(&s->there, i, __ATOMIC_RELEASE);
		CHECK_EQ(kb_watch32(&s->back, i - 1, kb_now() + 20000000000ull), 0);
		CHECK_EQ(__atomic_load_n(&s->back, __ATOMIC_ACQUIRE), i);
	}
}

int main(void)
{
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t done = 2 * ROUNDS;
	kb_thread_t t;
	pid_t pid;
	int status;

	CHECK(s != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		partner(s);
	converse(s, 1, ROUNDS); /* all idle */
	CHECK_EQ(kb_thread_create(&t, NULL, works, NULL), 0);
	converse(s, ROUNDS + 1, 2 * ROUNDS); /* busy */
	/* its thread may be on a VP that the kernel gives no processor to for a while */
	for (; __atomic_load_n(&yields, __ATOMIC_RELAXED) <= 100 && done < MANY; done++)
		converse(s, done + 1, done + 1);
	CHECK(__atomic_load_n(&yields, __ATOMIC_RELAXED) > 100);
	__atomic_store_n(&s->there, OVER, __ATOMIC_RELEASE);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return 0;
}
