/* Where a thread's stack lies varies from run to run in as many bits as a mapping of the kernel's
 * choice; libc's, in as many as a mapping of its size, which some kernels align. With segments,
 * which must lie in 2 GiB, in all bits of a page's number there (SEGMENTS_BITS). And no address is
 * the bytes of the process's start, of which libc makes its canary, plus a constant. */
/* matrix: vps=2 sched=rotator */
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libc_age.h"
#include "test.h"

enum { STACK, SMALL, BIG, DIFFERENCE, WORDS }; /* a child's answers */
enum { RUNS = 48, SEGMENTS_BITS = 19, LUCK = 2 /* bits that may have stood still by chance */ };
enum { START_BITS = 14 /* of the start, that are compared */, START = (1 << START_BITS) - 1 };

static void *tells(void *maps)
{
	const unsigned long *map = maps;
	volatile char here;
	unsigned long at = (unsigned long)(uintptr_t)&here, start = 0;

	memcpy(&start, (const void *)getauxval(AT_RANDOM), sizeof start);
	printf("%lx %lx %lx %lx\n", at, map[0], map[1], (at >> 12) - (start & START));
	return NULL;
}

static unsigned long mapping(size_t size)
{
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return (unsigned long)(uintptr_t)p;
}

static int child(void)
{
	unsigned long maps[2];
	pthread_attr_t a;
	pthread_t t;
	size_t size;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_getstacksize(&a, &size), 0);
	maps[0] = mapping(1 << 16);
	maps[1] = mapping(size);
	CHECK_EQ(pthread_create(&t, NULL, tells, maps), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}

/* Bits that were 0 in a run and 1 in another, of a child's words: of addresses the page's number. */
static void measure(const char *command, int bits[WORDS])
{
	unsigned long all[WORDS] = { ~0ul, ~0ul, ~0ul, ~0ul }, any[WORDS] = { 0 }, v[WORDS];

	for (int i = 0; i < RUNS; i++) {
		FILE *f = popen(command, "r");

		CHECK(f);
		CHECK_EQ(fscanf(f, "%lx %lx %lx %lx", &v[0], &v[1], &v[2], &v[3]), WORDS);
		CHECK_EQ(pclose(f), 0);
		for (int k = 0; k < WORDS; k++) {
			all[k] &= v[k];
			any[k] |= v[k];
		}
	}
	for (int k = 0; k < WORDS; k++)
		bits[k] = __builtin_popcountl((any[k] & ~all[k]) & (k == DIFFERENCE ? START : ~4095ul));
}

int main(int argc, char **argv)
{
	char self[4096] = "", command[sizeof self + 8];
	int bits[WORDS], expected;

	(void)argv;
	if (argc > 1)
		return child();
	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	snprintf(command, sizeof command, "%s child", self);
	CHECK_EQ(setenv("KOCHAB_SEGMENTS", "no", 1), 0);
	measure(command, bits);
	if (bits[SMALL] == 0)
		SKIP("addresses do not vary here");
	printf("stacks %d bits, small mappings %d, big ones %d\n", bits[STACK], bits[SMALL], bits[BIG]);
	expected = under_kochab() || bits[SMALL] < bits[BIG] ? bits[SMALL] : bits[BIG];
	CHECK(bits[STACK] >= expected - LUCK);
	CHECK(bits[DIFFERENCE] >= START_BITS - LUCK);
	CHECK_EQ(setenv("KOCHAB_SEGMENTS", "yes", 1), 0);
	measure(command, bits);
	printf("with segments %d bits\n", bits[STACK]);
	CHECK(bits[STACK] >= SEGMENTS_BITS - LUCK);
	CHECK(bits[DIFFERENCE] >= START_BITS - LUCK);
	return 0;
}
