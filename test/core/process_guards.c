/* os/memory: pages that cannot be read when virtual processors become processes do no harm: pages
 * with the kernel's guards (MADV_GUARD_INSTALL, as in libc's stacks from 2.42 on), among pages that
 * are in use; a private map that is longer than its file. Pages that can be read have their
 * contents afterwards. */
#define _GNU_SOURCE
#include <kochab/kochab.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

enum { PAGES = 16, INSTALL = 102 };

static size_t page;
static char *guarded, *mapped;

/* Makes every third page a guard, where the kernel has guards. */
static void make_guards(void)
{
	guarded = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(guarded != MAP_FAILED);
	memset(guarded, 'g', PAGES * page);
	for (int i = 0; i < PAGES; i += 3)
		if (madvise(guarded + i * page, page, INSTALL) != 0)
			fprintf(stderr, "no guards here\n");
}

static void make_map(void)
{
	int fd = memfd_create("short", 0);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, (off_t)(2 * page)), 0);
	CHECK_EQ(pwrite(fd, "file", 4, (off_t)page), 4);
	mapped = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(mapped != MAP_FAILED);
	CHECK_EQ(close(fd), 0);
	mapped[0] = 'm';
}

static void *looks(void *arg)
{
	for (int i = 0; i < PAGES; i++)
		CHECK(i % 3 == 0 || (guarded[i * page] == 'g' && guarded[(i + 1) * page - 1] == 'g'));
	CHECK(mapped[0] == 'm' && mapped[1] == 0 && memcmp(mapped + page, "file", 5) == 0);
	return arg;
}

int main(void)
{
	kb_thread_t t;

	page = (size_t)sysconf(_SC_PAGESIZE);
	make_guards();
	make_map();
	CHECK_EQ(kb_thread_create(&t, NULL, looks, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	looks(NULL);
	return 0;
}
