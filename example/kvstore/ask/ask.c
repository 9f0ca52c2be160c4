/* ask.c - a client of kvstore over a named space: asks once and prints the answer as it comes, or asks the same many times
 * and says how long one takes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../line.h"

enum { REPLY_MOST = 1 << 20, BATCH = 1000 };

static char reply[REPLY_MOST];
static size_t got;

static void die(const char *what, int error)
{
	fprintf(stderr, "ask: %s: %s\n", what, strerror(error));
	exit(1);
}

static void *must(void *p)
{
	if (p == NULL)
		die("memory", ENOMEM);
	return p;
}

/* ---- the protocol ---- */

/* The words as a request; its length. */
static size_t compose(char **request, char **word, int n)
{
	size_t size = 32, used;

	for (int i = 0; i < n; i++)
		size += strlen(word[i]) + 32;
	*request = must(malloc(size));
	used = (size_t)snprintf(*request, size, "*%d\r\n", n);
	for (int i = 0; i < n; i++)
		used += (size_t)snprintf(*request + used, size - used, "$%zu\r\n%s\r\n", strlen(word[i]), word[i]);
	return used;
}

/* Bytes of the answer that begins at `at`; 0: it is not whole yet. */
static size_t whole(size_t at)
{
	char *end = memchr(reply + at, '\n', got - at);
	size_t line = end != NULL ? (size_t)(end + 1 - reply) - at : 0, all = line, part;
	long n;

	if (line == 0 || (reply[at] != '$' && reply[at] != '*'))
		return line;
	n = strtol(reply + at + 1, NULL, 10);
	if (reply[at] == '$')
		return n < 0 ? line : at + line + (size_t)n + 2 <= got ? line + (size_t)n + 2 : 0;
	for (; n > 0; n--, all += part)
		if ((part = at + all < got ? whole(at + all) : 0) == 0)
			return 0;
	return all;
}

/* ---- asking ---- */

static void say(struct line *l, const char *request, size_t n)
{
	for (size_t done = 0; done < n;) {
		done += line_put(l, request + done, n - done);
		if (done == n)
			return;
		line_want_room(l);
		if (line_room(l) == 0) {
			int e = line_wait(l, KB_FOREVER);

			if (e != 0)
				die("the server has left", e);
		}
	}
}

static size_t hear(struct line *l)
{
	size_t n, length;
	int e;

	for (got = 0;;) {
		n = line_take(l, reply + got, sizeof reply - got);
		got += n;
		if (n > 0 && (length = whole(0)) > 0)
			return length;
		if (got == sizeof reply)
			die("an answer of more than 1 MiB", EMSGSIZE);
		if (n == 0 && (e = line_wait(l, KB_FOREVER)) != 0)
			die("the server has left", e);
	}
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* In batches, so that the median says what is usual. */
static void measure(struct line *l, const char *request, size_t n, long times)
{
	long batches = (times + BATCH - 1) / BATCH;
	double *ns = must(calloc((size_t)batches, sizeof *ns));

	for (long b = 0; b < batches; b++) {
		uint64_t start = kb_now();

		for (int i = 0; i < BATCH; i++) {
			say(l, request, n);
			hear(l);
		}
		ns[b] = (double)(kb_now() - start) / BATCH;
	}
	qsort(ns, (size_t)batches, sizeof *ns, by_time);
	printf("ns for one: min %.0f, median %.0f, max %.0f (batches of %d)\n", ns[0], ns[batches / 2], ns[batches - 1], BATCH);
	free(ns);
}

int main(int argc, char **argv)
{
	kb_space_t *space;
	struct line l;
	char *request;
	long times = 0;
	int first = 2, e;
	size_t n;

	if (argc > 3 && strcmp(argv[2], "-n") == 0) {
		times = strtol(argv[3], NULL, 10);
		first = 4;
	}
	if (argc <= first || (first == 4 && times <= 0)) {
		fputs("usage: ask SPACE [-n TIMES] COMMAND [ARGUMENT]...\n", stderr);
		return 2;
	}
	e = kb_init();
	if (e == 0)
		e = kb_space_attach(&space, argv[1], 0);
	if (e == 0)
		e = line_connect(space, &l);
	if (e != 0)
		die(argv[1], e);
	n = compose(&request, argv + first, argc - first);
	say(&l, request, n);
	fwrite(reply, 1, hear(&l), stdout);
	if (times > 0)
		measure(&l, request, n, times);
	free(request);
	line_hang_up(&l);
	return 0;
}
