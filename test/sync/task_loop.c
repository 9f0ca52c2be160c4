/* Loops: each index is in a single piece, pieces are no larger than the grain, an error stops the
 * rest and is returned. Reductions: in order, and equal to the last bit to the result of a single
 * thread that halves the range by itself. */
#include <errno.h>
#include <kochab/task.h>
#include <string.h>

#include "threads.h"

enum { N = 100000, LETTERS = 200 };

static int seen[N];
static size_t most;
static int pieces;

static int mark(size_t from, size_t to, void *arg)
{
	CHECK(from < to && to <= N);
	CHECK(to - from <= *(size_t *)arg);
	for (size_t i = from; i < to; i++)
		CHECK_EQ(test_add(&seen[i], 1), 1);
	test_add(&pieces, 1);
	return 0;
}

static void covers(size_t begin, size_t end, size_t grain)
{
	memset(seen, 0, sizeof(seen));
	most = grain ? grain : N;
	CHECK_EQ(kb_parallel_for(begin, end, grain, mark, &most), 0);
	for (size_t i = 0; i < N; i++)
		CHECK_EQ(seen[i], i >= begin && i < end);
}

static int fail_at(size_t from, size_t to, void *arg)
{
	size_t bad = *(size_t *)arg;

	test_add(&pieces, 1);
	return from <= bad && bad < to ? ERANGE : 0;
}

static void errors(void)
{
	size_t bad = 3;

	test_put(&pieces, 0);
	CHECK_EQ(kb_parallel_for(0, N, 1, fail_at, &bad), ERANGE);
	CHECK(test_get(&pieces) < N);
	CHECK_EQ(kb_parallel_for(5, 5, 1, fail_at, &bad), 0);
	CHECK_EQ(kb_parallel_for(6, 5, 1, fail_at, &bad), 0);
}

static int add(size_t from, size_t to, void *part, void *arg)
{
	double s = 0;

	(void)arg;
	for (size_t i = from; i < to; i++)
		s += 1 / (1 + (double)i);
	*(double *)part += s;
	return 0;
}

static void join(void *left, const void *right, void *arg)
{
	(void)arg;
	*(double *)left += *(const double *)right;
}

static double halves(size_t from, size_t to, size_t grain)
{
	double s = 0, right;

	if (to - from <= grain) {
		add(from, to, &s, NULL);
		return s;
	}
	s = halves(from, from + (to - from) / 2, grain);
	right = halves(from + (to - from) / 2, to, grain);
	join(&s, &right, NULL);
	return s;
}

/* Strings: joining them in a different order gives a different string. */
struct text {
	char s[LETTERS + 1];
};

static int spell(size_t from, size_t to, void *part, void *arg)
{
	struct text *t = part;
	size_t n = strlen(t->s);

	(void)arg;
	for (size_t i = from; i < to; i++)
		t->s[n++] = (char)('a' + i % 26);
	t->s[n] = 0;
	if (from % 3 == 0)
		kb_yield();
	return 0;
}

static void concatenate(void *left, const void *right, void *arg)
{
	(void)arg;
	struct text *l = left;
	size_t n = strlen(l->s), more = strlen(((const struct text *)right)->s);

	CHECK(n + more <= LETTERS);
	memcpy(l->s + n, right, more + 1);
}

static int refuse(size_t from, size_t to, void *part, void *arg)
{
	(void)from, (void)to, (void)part, (void)arg;
	return EDOM;
}

static void reductions(void)
{
	double sum = 0, want = halves(0, N, 7);
	struct text t = { "" };
	char big[KB_REDUCE_MAX] = { 0 };

	CHECK_EQ(kb_reduce(0, N, 7, &sum, sizeof sum, add, join, NULL), 0);
	CHECK(memcmp(&sum, &want, sizeof sum) == 0);
	CHECK_EQ(kb_reduce(0, LETTERS, 1, &t, sizeof t, spell, concatenate, NULL), 0);
	CHECK_EQ(strlen(t.s), LETTERS);
	for (int i = 0; i < LETTERS; i++)
		CHECK_EQ(t.s[i], 'a' + i % 26);
	CHECK_EQ(kb_reduce(0, 0, 1, &sum, sizeof sum, add, join, NULL), 0);
	CHECK_EQ(kb_reduce(0, 1, 1, &sum, 0, add, join, NULL), EINVAL);
	CHECK_EQ(kb_reduce(0, 1, 1, big, sizeof big + 1, refuse, join, NULL), EINVAL);
	CHECK_EQ(kb_reduce(0, 9, 1, big, sizeof big, refuse, join, NULL), EDOM);
}

int main(void)
{
	uint64_t rnd = test_stream();

	covers(0, N, 0);
	covers(0, N, 1000);
	covers(3, 4, 1);
	covers(17, N - 1, 1);
	for (int i = 0; i < 20; i++) {
		size_t a = (test_rand(&rnd) >> 32) % N, b = (test_rand(&rnd) >> 32) % N;

		covers(a < b ? a : b, a < b ? b : a, (test_rand(&rnd) >> 32) % 3000);
	}
	errors();
	reductions();
	return 0;
}
