/* example/tasks.c - fork-join without threads: prime numbers counted by a parallel reduction, marked by a parallel
 * loop, and a tree of tasks that sorts them; a future holds the largest. Ends with 1 if the counts differ. */
#include <kochab/task.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIMIT = 2000000, GRAIN = 4096, SMALL = 1024 };

static unsigned char composite[LIMIT];
static unsigned prime[LIMIT];

/* Strikes out multiples of small numbers in a piece; each piece is a single thread's. */
static int strike(size_t from, size_t to, void *arg)
{
	(void)arg;
	for (size_t d = 2; d * d < LIMIT; d++) {
		size_t first = (from + d - 1) / d * d;

		for (size_t i = first < d * d ? d * d : first; i < to; i += d)
			composite[i] = 1;
	}
	return 0;
}

static int count(size_t from, size_t to, void *part, void *arg)
{
	(void)arg;
	for (size_t i = from < 2 ? 2 : from; i < to; i++)
		*(unsigned *)part += !composite[i];
	return 0;
}

static void add(void *left, const void *right, void *arg)
{
	(void)arg;
	*(unsigned *)left += *(const unsigned *)right;
}

struct slice {
	unsigned *first;
	size_t n;
};

static int falling(const void *a, const void *b)
{
	return *(const unsigned *)a < *(const unsigned *)b ? 1 : -1;
}

/* Quicksort: the left side is a task, the right is done here. */
static int sort(void *arg)
{
	struct slice *s = arg, large = { s->first, 0 }, small;
	unsigned pivot;
	kb_group_t g;
	int e;

	if (s->n <= SMALL) {
		qsort(s->first, s->n, sizeof *s->first, falling);
		return 0;
	}
	pivot = s->first[s->n / 2];
	for (size_t i = 0; i < s->n; i++)
		if (s->first[i] > pivot) {
			unsigned v = s->first[i];

			s->first[i] = s->first[large.n];
			s->first[large.n++] = v;
		}
	small = (struct slice){ s->first + large.n, s->n - large.n };
	if (!large.n) { /* the pivot is the largest: to the front with it */
		for (size_t i = 0; s->first[0] != pivot; i++)
			if (s->first[i] == pivot) {
				s->first[i] = s->first[0];
				s->first[0] = pivot;
			}
		small = (struct slice){ s->first + 1, s->n - 1 };
	}
	e = kb_group_init(&g);
	if (!e)
		e = kb_group_run(&g, sort, &large);
	if (e)
		return e;
	e = sort(&small);
	return kb_group_wait(&g) ? EXIT_FAILURE : e;
}

static void *largest(void *arg)
{
	struct slice *s = arg;

	for (size_t i = 0; i < s->n; i++)
		if (s->first[i] > s->first[0])
			return NULL;
	return s->first;
}

int main(void)
{
	struct slice all = { prime, 0 };
	unsigned n = 0;
	kb_future_t first = KB_FUTURE_INIT;
	void *value;

	if (kb_parallel_for(0, LIMIT, GRAIN, strike, NULL) || kb_reduce(0, LIMIT, GRAIN, &n, sizeof n, count, add, NULL))
		return 1;
	for (size_t i = 2; i < LIMIT; i++)
		if (!composite[i])
			prime[all.n++] = (unsigned)i;
	if (sort(&all) || kb_future_run(&first, largest, &all) || kb_future_get(&first, &value) || !value)
		return 1;
	printf("%u primes below %u, the largest is %u\n", n, (unsigned)LIMIT, *(unsigned *)value);
	return n != all.n;
}
