/* core/quantum: threads that compute in vector registers and are switched away every 100 us have
 * them back as they were, as wide as the processor has them: with AVX-512 all 32 and the masks,
 * with AVX 16 of half the width. */
#include "test.h"

#if !defined(__x86_64__)
int main(void)
{
	SKIP("x86-64");
}
#else

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 40, WIDEST = 32, MASKS = 7, BYTES = 64, TURNS = 1000000 };

struct state {
	uint8_t vector[WIDEST][BYTES];
	uint64_t mask[MASKS + 1]; /* 0 is no mask */
};

#define EACH_32(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) \
	X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#define EACH_16(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define EACH_MASK(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

#define LOAD_Z(n) "vmovdqu64 64*" #n "(%0), %%zmm" #n "\n\t"
#define KEEP_Z(n) "vmovdqu64 %%zmm" #n ", 64*" #n "(%0)\n\t"
#define LOAD_Y(n) "vmovdqu 64*" #n "(%0), %%ymm" #n "\n\t"
#define KEEP_Y(n) "vmovdqu %%ymm" #n ", 64*" #n "(%0)\n\t"
#define LOAD_K(n) "kmovq 2048+8*" #n "(%0), %%k" #n "\n\t"
#define KEEP_K(n) "kmovq %%k" #n ", 2048+8*" #n "(%0)\n\t"
#define LOST(n) , "xmm" #n
#define LOST_K(n) , "k" #n
#define WAIT "1: decq %1\n\tjnz 1b\n\t"

_Static_assert(offsetof(struct state, mask) == 2048, "as in the code");

/* All that is in s through the registers, some time later into s. */
__attribute__((target("avx512f,avx512bw"))) static void through_512(struct state *s)
{
	uint64_t n = TURNS;

	__asm__ volatile(EACH_32(LOAD_Z) EACH_MASK(LOAD_K) WAIT EACH_32(KEEP_Z) EACH_MASK(KEEP_K)
			 : "+r"(s), "+r"(n)
			 :
			 : "memory", "cc" EACH_32(LOST) EACH_MASK(LOST_K));
}

__attribute__((target("avx"))) static void through_256(struct state *s)
{
	uint64_t n = TURNS;

	__asm__ volatile(EACH_16(LOAD_Y) WAIT EACH_16(KEEP_Y) "vzeroupper"
			 : "+r"(s), "+r"(n)
			 :
			 : "memory", "cc" EACH_16(LOST));
}

static void *computes(void *arg)
{
	uint64_t rand = test_seed() + (uintptr_t)arg;
	struct state before, after;

	for (int i = 0; i < ROUNDS; i++) {
		for (size_t k = 0; k < sizeof before; k++)
			((uint8_t *)&before)[k] = (uint8_t)test_rand(&rand);
		after = before;
		if (__builtin_cpu_supports("avx512bw"))
			through_512(&after);
		else
			through_256(&after);
		CHECK(memcmp(&before, &after, sizeof before) == 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	(void)argc;
	if (!__builtin_cpu_supports("avx"))
		SKIP("no AVX");
	if (!getenv("KOCHAB_QUANTUM")) { /* it is read when the process starts */
		setenv("KOCHAB_QUANTUM", "100us", 1);
		execv("/proc/self/exe", argv);
	}
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, computes, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
#endif
