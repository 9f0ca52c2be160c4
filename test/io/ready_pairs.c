/* io/ready: threads that talk through socket pairs and pipes, some of them with long answers,
 * beside a thread that computes and a thread that only yields: each thread gets each byte. */
#include "io_test.h"

enum { PAIRS = 20, ROUNDS = 300, LONG = 300000 };

struct pair {
	int there[2], back[2];
	unsigned seed;
};

static uint32_t stop;

static void *yields(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		kb_yield();
	return arg;
}

static void pass(int fd, char *p, size_t n, bool in)
{
	while (n > 0) {
		ssize_t r = in ? ready_read(fd, p, n, ready_until(KB_FOREVER)) :
			ready_write(fd, p, n, ready_until(KB_FOREVER));

		CHECK(r > 0);
		p += r;
		n -= (size_t)r;
	}
}

static size_t length(const struct pair *p, unsigned i)
{
	return p->seed % 4 == 0 && i % 100 == 0 ? LONG : 1 + (p->seed + i) % 50;
}

static void *asks(void *arg)
{
	struct pair *p = arg;
	char *b = malloc(LONG);

	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = length(p, i);

		for (size_t k = 0; k < n; k++)
			b[k] = (char)(i + k);
		pass(p->there[1], b, n, false);
		pass(p->back[0], b, n, true);
		for (size_t k = 0; k < n; k++)
			CHECK_EQ(b[k], (char)(i + k + 1));
	}
	free(b);
	return NULL;
}

static void *answers(void *arg)
{
	struct pair *p = arg;
	char *b = malloc(LONG);

	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = length(p, i);

		pass(p->there[0], b, n, true);
		for (size_t k = 0; k < n; k++)
			b[k]++;
		if (p->seed % 5 == 0)
			kb_sleep(1000);
		pass(p->back[1], b, n, false);
	}
	free(b);
	return NULL;
}

static void open_pair(struct pair *p, unsigned i)
{
	p->seed = i;
	if (i % 2) {
		CHECK_EQ(pipe2(p->there, O_NONBLOCK | O_CLOEXEC), 0);
		CHECK_EQ(pipe2(p->back, O_NONBLOCK | O_CLOEXEC), 0);
	} else {
		ready_pair(p->there);
		ready_pair(p->back);
	}
}

int main(void)
{
	struct pair p[PAIRS];
	kb_thread_t t[2 * PAIRS], y;

	CHECK_EQ(kb_init(), 0);
	for (unsigned busy = 0; busy < 2; busy++) {
		if (busy)
			CHECK_EQ(kb_thread_create(&y, NULL, yields, NULL), 0);
		for (unsigned i = 0; i < PAIRS; i++) {
			open_pair(&p[i], i);
			CHECK_EQ(kb_thread_create(&t[2 * i], NULL, asks, &p[i]), 0);
			CHECK_EQ(kb_thread_create(&t[2 * i + 1], NULL, answers, &p[i]), 0);
		}
		for (unsigned i = 0; i < 2 * PAIRS; i++)
			CHECK_EQ(kb_thread_join(t[i], NULL), 0);
		for (unsigned i = 0; i < PAIRS; i++)
			for (unsigned k = 0; k < 2; k++)
				CHECK(close(p[i].there[k]) == 0 && close(p[i].back[k]) == 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_thread_join(y, NULL), 0);
	return 0;
}
