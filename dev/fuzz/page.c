/* The page of `kochab bench --page`, from any lines: it ends, is not long, and has no markup but its own. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };
static char page[MOST];

/* All that the page is made of. */
static const char elements[] = " !doctype html head meta title style body main h1 h2 h3 p div b br small code span "
			       "figure figcaption svg text line rect table thead tbody tr th td footer ";
static const char attributes[] = " html lang charset name content class viewBox role aria-label x y x1 x2 y1 y2 width "
				 "height rx text-anchor ";

static size_t word_at(const char *at)
{
	return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-!");
}

static void expect_in(const char *list, const char *word, size_t n)
{
	char padded[32];

	if (n == 0 || n > sizeof padded - 3)
		abort();
	snprintf(padded, sizeof padded, " %.*s ", (int)n, word);
	if (!strstr(list, padded))
		abort();
}

static const char *behind_value(const char *at)
{
	if (*at == '\'' || *at == '"') {
		at = strchr(at + 1, *at);
		if (!at)
			abort();
		return at + 1;
	}
	return at + strcspn(at, " >");
}

/* From behind its `<` to behind its `>`. */
static const char *behind_tag(const char *at)
{
	size_t n;

	at += *at == '/';
	n = word_at(at);
	expect_in(elements, at, n);
	at += n;
	while (*(at += strspn(at, " /")) != '>') {
		n = word_at(at);
		expect_in(attributes, at, n);
		at += n;
		if (*at == '=')
			at = behind_value(at + 1);
	}
	return at + 1;
}

/* In its text no `<` stands, in its tags nothing but its own words. */
static void expect_own_markup(const char *at)
{
	while ((at = strchr(at, '<')))
		at = behind_tag(at + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int in = memfd_create("lines", 0), out = memfd_create("page", 0);
	char from[32], to[32];
	ssize_t n;

	if (in < 0 || out < 0 || write(in, data, size) != (ssize_t)size)
		abort();
	snprintf(from, sizeof from, "/proc/self/fd/%d", in);
	snprintf(to, sizeof to, "/proc/self/fd/%d", out);
	if (bench_page(from, to))
		abort();
	n = pread(out, page, sizeof page - 1, 0);
	if (n <= 0 || n == MOST - 1)
		abort();
	page[n] = 0;
	expect_own_markup(page);
	close(in);
	close(out);
	return 0;
}
