/* malloc and its family as libc promises them: alignment, zeroes, zero sizes, overflow and errno,
 * contents over realloc, sizes of every class and beyond. Also run with libkochab-malloc.so by
 * malloc_kochab.sh. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

/* Volatile, so that the compiler does not remove the calls. */
static void *(*volatile get)(size_t) = malloc;
static void *(*volatile resize)(void *, size_t) = realloc;
static void *(*volatile resize_array)(void *, size_t, size_t) = reallocarray;
static volatile size_t too_much = PTRDIFF_MAX, half_of_all = SIZE_MAX / 2;

static void fill(unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(seed + i * 31);
}

static void verify(const unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(p[i], (unsigned char)(seed + i * 31));
}

static void every_size(void)
{
	enum { KEPT = 64 };
	unsigned char *kept[KEPT] = { 0 };
	size_t size[KEPT] = { 0 };
	unsigned at = 0;

	for (size_t n = 0; n < 5 << 20; n += n < 1100 ? 1 : n / 13) {
		unsigned char *p = get(n);

		CHECK(p && (uintptr_t)p % 16 == 0 && malloc_usable_size(p) >= n);
		if (kept[at])
			verify(kept[at], size[at], at);
		free(kept[at]);
		fill(p, n, at);
		kept[at] = p;
		size[at] = n;
		at = (at + 1) % KEPT;
	}
	for (at = 0; at < KEPT; at++)
		free(kept[at]);
}

static void zeroes(void)
{
	for (unsigned round = 0; round < 3; round++)
		for (size_t n = 1; n < 2 << 20; n = n * 3 + 1) {
			unsigned char *p = calloc(n, 1);

			CHECK(p);
			for (size_t i = 0; i < n; i++)
				CHECK_EQ(p[i], 0);
			memset(p, 0xff, n);
			free(p);
		}
}

static void refuses(void *p, const char *what)
{
	if (p || errno != ENOMEM)
		printf("%s: %p, errno %d\n", what, p, errno);
	CHECK(!p);
	CHECK_EQ(errno, ENOMEM);
	errno = 0;
}

static void too_large(void)
{
	void *p = malloc(100), *q = (void *)1;

	errno = 0;
	refuses(get(too_much), "malloc");
	refuses(get(SIZE_MAX), "malloc");
	refuses(get(SIZE_MAX - 14), "malloc");
	refuses(calloc(half_of_all, 3), "calloc");
	refuses(calloc(too_much, 1), "calloc");
	refuses(resize(p, too_much), "realloc");
	refuses(resize_array(p, half_of_all, 4), "reallocarray");
	refuses(aligned_alloc(64, too_much), "aligned_alloc");
	refuses(memalign(4096, too_much), "memalign");
	refuses(pvalloc(SIZE_MAX), "pvalloc");
	CHECK_EQ(posix_memalign(&q, 4096, too_much), ENOMEM);
	CHECK_EQ(posix_memalign(&q, 24, 10), EINVAL);
	CHECK_EQ(posix_memalign(&q, 2, 10), EINVAL);
	CHECK(q == (void *)1);
	free(p);
}

static void zero_sizes(void)
{
	void *p = malloc(0), *q = malloc(0), *r;

	CHECK(p && q && p != q);
	free(p);
	free(q);
	p = calloc(0, 10);
	CHECK(p);
	free(p);
	free(NULL);
	CHECK_EQ(malloc_usable_size(NULL), 0);
	r = realloc(NULL, 0);
	CHECK(r);
	CHECK(!resize(r, 0));
}

static void alignment(void)
{
	for (size_t align = 8; align <= 4 << 20; align *= 2)
		for (size_t n = 0; n < 300000; n = n * 5 + 7) {
			void *p = NULL, *q = aligned_alloc(align, n), *r = memalign(align, n);

			CHECK_EQ(posix_memalign(&p, align, n), 0);
			CHECK((uintptr_t)p % align == 0 && (uintptr_t)q % align == 0 &&
				(uintptr_t)r % align == 0);
			CHECK(p && q && r && p != q && q != r);
			memset(p, 1, n);
			memset(q, 2, n);
			memset(r, 3, n);
			q = realloc(q, n + 100);
			for (size_t i = 0; i < n; i++)
				CHECK_EQ(((char *)q)[i], 2);
			free(p);
			free(q);
			free(r);
		}
	free(valloc(10));
	free(pvalloc(10));
}

/* Grows and shrinks, also where pages are moved. */
static void contents(void)
{
	uint64_t s = test_seed();
	unsigned char *p = NULL, *blocker = NULL;
	size_t had = 0;

	for (unsigned i = 0; i < 1000; i++) {
		size_t n = 1 + test_rand(&s) % ((size_t)1 << (test_rand(&s) % 23));

		p = realloc(p, n);
		CHECK(p);
		verify(p, n < had ? n : had, 9);
		fill(p, n, 9);
		had = n;
		if (i % 3 == 0) {
			free(blocker);
			blocker = malloc(n);
			memset(blocker, 1, n);
		}
	}
	free(blocker);
	free(p);
}

static void accounts(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();
#else
	struct mallinfo m = mallinfo();
#endif
	FILE *f = tmpfile();

	CHECK(m.uordblks > 0);
	CHECK(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1);
	malloc_trim(0);
	CHECK_EQ(malloc_info(0, f), 0);
	CHECK(ftell(f) > 0);
	fclose(f);
}

int main(void)
{
	every_size();
	zeroes();
	too_large();
	zero_sizes();
	alignment();
	contents();
	accounts();
	return 0;
}
