/* The page of `kochab bench --page`, from any lines: it ends, is not long, and nothing of a note or a name is markup. */
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
	if (strstr(page, "<script") || strstr(page, "<img") || strstr(page, " onload="))
		if (!memmem(data, size, " onload=", 8)) /* as text it may stand there */
			abort();
	close(in);
	close(out);
	return 0;
}
