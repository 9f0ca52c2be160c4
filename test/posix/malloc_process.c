/* Memory that processes hand to each other, if virtual processors are processes: children that any
 * thread forks have a private copy of it; executed and spawned programs do not see it; long blocks
 * keep their contents when they grow; calloc'ed memory is zero even if it was used before. Also run
 * with libkochab-malloc.so by malloc_kochab.sh. */
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#else
#define malloc_trim(keep) ((void)(keep))
#endif

#include "test.h"

enum { FORKERS = 4, FORKS = 6, BLOCKS = 200, LONG = 3 << 20 };

extern char **environ;

struct shelf {
	unsigned char *block[BLOCKS];
	unsigned char mark;
};

static size_t length(unsigned i)
{
	return i % 40 == 0 ? 70000 + i : 1 + i * 37 % 3000;
}

static void fill(struct shelf *s, unsigned char mark)
{
	s->mark = mark;
	for (unsigned i = 0; i < BLOCKS; i++) {
		s->block[i] = malloc(length(i));
		CHECK(s->block[i] != NULL);
		memset(s->block[i], mark, length(i));
	}
}

static void verify(const struct shelf *s)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		for (size_t j = 0; j < length(i); j += 61)
			CHECK_EQ(s->block[i][j], s->mark);
}

static void clear(struct shelf *s)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		free(s->block[i]);
}

static void *take_and_give(void *arg)
{
	struct shelf s;

	fill(&s, 'n');
	verify(&s);
	clear(&s);
	return arg;
}

/* The child has the parent's blocks, writes to them, frees them, and takes more; it forks, too. */
static void child(struct shelf *s)
{
	struct shelf own;
	pthread_t t;
	pid_t pid;
	int status;

	verify(s);
	for (unsigned i = 0; i < BLOCKS; i++)
		memset(s->block[i], 'c', length(i));
	clear(s);
	fill(&own, 'o');
	malloc_trim(0);
	CHECK_EQ(pthread_create(&t, NULL, take_and_give, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		verify(&own);
		clear(&own);
		_exit(5);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 5 << 8);
	verify(&own);
	clear(&own);
	_exit(7);
}

static void *forker(void *arg)
{
	struct shelf s;

	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t pid;

		fill(&s, (unsigned char)('A' + i));
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			child(&s);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 7 << 8);
		verify(&s);
		clear(&s);
	}
	return arg;
}

static void *exchange(void *arg)
{
	static void *shelf[64]; /* exchanged atomically */
	int *stop = arg;

	for (unsigned i = 0; !__atomic_load_n(stop, __ATOMIC_ACQUIRE); i++) {
		void *p = malloc(1 + i * 13 % 2000);

		CHECK(p != NULL);
		memset(p, 1, 1);
		free(__atomic_exchange_n(&shelf[i % 64], p, __ATOMIC_ACQ_REL));
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void *spawns(void *arg)
{
	char *const words[] = { (char *)"sh", (char *)"-c", (char *)"exit 9", NULL };
	struct shelf s;
	pid_t pid;
	int status;

	fill(&s, 's');
	for (int i = 0; i < FORKS; i++) {
		CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 9 << 8);
	}
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(execv("/bin/sh", words));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 9 << 8);
	verify(&s);
	clear(&s);
	return arg;
}

/* ---- long blocks -------------------------------------------------------------------------- */

static unsigned char *grow(unsigned char *p, size_t from, size_t to)
{
	p = realloc(p, to);
	CHECK(p != NULL);
	for (size_t i = 0; i < from && i < to; i += 4096)
		CHECK_EQ(p[i], i / 4096 % 251);
	for (size_t i = 0; i < to; i += 4096)
		p[i] = (unsigned char)(i / 4096 % 251);
	return p;
}

static void *resizes(void *arg)
{
	unsigned char *p = NULL, *stands = NULL;
	size_t n = 0;

	for (int round = 0; round < 4; round++) {
		for (size_t to = LONG / 8; to <= 4 * LONG; n = to, to *= 2) {
			p = grow(p, n, to);
			free(stands);
			stands = malloc(100000); /* it may block the growth */
			CHECK(stands != NULL);
		}
		p = grow(p, n, LONG / 16);
		n = LONG / 16;
		sched_yield();
	}
	free(p);
	free(stands);
	for (int i = 0; i < 3; i++) {
		p = calloc(1, LONG);
		CHECK(p != NULL);
		for (size_t j = 0; j < LONG; j += 509)
			CHECK_EQ(p[j], 0);
		memset(p, 'f', LONG);
		free(p);
		malloc_trim(0);
	}
	return arg;
}

static void *gives_pages(void *arg)
{
	unsigned char *p = NULL;

	CHECK_EQ(posix_memalign((void **)&p, 65536, LONG), 0);
	memset(p, 'd', LONG);
	CHECK_EQ(madvise(p + 65536, LONG / 2, MADV_DONTNEED), 0);
	CHECK_EQ(p[0], 'd');
	CHECK_EQ(p[65535], 'd');
	for (size_t i = 65536; i < 65536 + LONG / 2; i += 512)
		CHECK_EQ(p[i], 0);
	CHECK_EQ(p[65536 + LONG / 2], 'd');
	free(p);
	return arg;
}

int main(void)
{
	static void *(*const work[])(void *) = { spawns, resizes, gives_pages, resizes };
	pthread_t t[FORKERS], w[4], x[2];
	int stop = 0;
	char *early = malloc(1000), *large = malloc(LONG);

	CHECK(early && large);
	memset(early, 'e', 1000);
	memset(large, 'l', LONG);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&x[i], NULL, exchange, &stop), 0);
	for (unsigned i = 0; i < FORKERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, forker, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&w[i], NULL, work[i], NULL), 0);
	for (unsigned i = 0; i < FORKERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(w[i], NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(x[i], NULL), 0);
	for (unsigned i = 0; i < 1000; i++)
		CHECK_EQ(early[i], 'e');
	for (unsigned i = 0; i < LONG; i += 4096)
		CHECK_EQ(large[i], 'l');
	free(early);
	free(large);
	CHECK_EQ(fflush(stdout), 0);
	return 0;
}
