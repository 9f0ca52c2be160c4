/* Where a thread's stack lies varies from run to run in as many bits as a mapping of the kernel's choice, as libc's do;
 * with segments, which must lie in 2 GiB, in all bits of a page's number there (SEGMENTS_BITS). And no address is the
 * bytes of the process's start, of which libc makes its canary, plus a constant. */
/* matrix: vps=2 sched=rotator */
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

enum { WORDS = 3, RUNS = 48, SEGMENTS_BITS = 19, LUCK = 2 /* bits that may have stood still by chance */ };

static void *tells(void *p)
{
	volatile char here;
	unsigned long at = (unsigned long)(uintptr_t)&here, start = 0;

	memcpy(&start, (const void *)getauxval(AT_RANDOM), sizeof start);
	printf("%lx %lx %lx\n", at, (unsigned long)(uintptr_t)p, (at >> 12) - (start & 0x3fff));
	return NULL;
}

static int child(void)
{
	void *p = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;

	CHECK(p != MAP_FAILED);
	CHECK_EQ(pthread_create(&t, NULL, tells, p), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}

/* Bits that were 0 in a run and 1 in another, of a child's words: of addresses the page's number. */
static void measure(const char *command, int bits[WORDS])
{
	unsigned long all[WORDS] = { ~0ul, ~0ul, ~0ul }, any[WORDS] = { 0 }, v[WORDS];

	for (int i = 0; i < RUNS; i++) {
		FILE *f = popen(command, "r");

		CHECK(f);
		CHECK_EQ(fscanf(f, "%lx %lx %lx", &v[0], &v[1], &v[2]), WORDS);
		CHECK_EQ(pclose(f), 0);
		for (int k = 0; k < WORDS; k++) {
			all[k] &= v[k];
			any[k] |= v[k];
		}
	}
	for (int k = 0; k < WORDS; k++)
		bits[k] = __builtin_popcountl((any[k] & ~all[k]) & (k == 2 ? 0x3ffful : ~4095ul));
}

int main(int argc, char **argv)
{
	char self[4096] = "", command[sizeof self + 8];
	int bits[WORDS];

	(void)argv;
	if (argc > 1)
		return child();
	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	snprintf(command, sizeof command, "%s child", self);
	CHECK_EQ(setenv("KOCHAB_SEGMENTS", "no", 1), 0);
	measure(command, bits);
	if (bits[1] == 0)
		SKIP("addresses do not vary here");
	printf("stacks %d bits, mappings %d\n", bits[0], bits[1]);
	CHECK(bits[0] >= bits[1] - LUCK);
	CHECK(bits[2] > 0);
	CHECK_EQ(setenv("KOCHAB_SEGMENTS", "yes", 1), 0);
	measure(command, bits);
	printf("with segments %d bits\n", bits[0]);
	CHECK(bits[0] >= SEGMENTS_BITS - LUCK);
	CHECK(bits[2] > 0);
	return 0;
}
