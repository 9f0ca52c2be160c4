/* A context finds its registers as it left them: many live integers and doubles in three contexts
 * that switch in a random order, each with values of its own. The compiler has more live values
 * than callee-saved registers, and nothing may be stored during a switch, so all callee-saved
 * registers are in use. */
#include "arch_test.h"

enum { CONTEXTS = 3, ROUNDS = 20000 };

static struct kbi_ctx ctx[CONTEXTS], home;
static uint64_t random_state;
static unsigned rounds_left = ROUNDS;
static unsigned seen[CONTEXTS];

static void to_next(unsigned self)
{
	unsigned next = (unsigned)(test_rand(&random_state) % CONTEXTS);

	if (rounds_left == 0)
		kbi_ctx_switch(&ctx[self], &home, NULL, NULL);
	rounds_left--;
	seen[self]++;
	if (next != self)
		kbi_ctx_switch(&ctx[self], &ctx[next], NULL, NULL);
}

/* Opaque sources: the compiler cannot recompute the values. */
static uint64_t word(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 0x9E3779B97F4A7C15ull;
}

static double real(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return (double)(x & 0xffff) + 0.5;
}

static void integers(unsigned self)
{
	uint64_t k = self * 100 + 1, a = word(k), b = word(k + 1), c = word(k + 2), d = word(k + 3);
	uint64_t e = word(k + 4), f = word(k + 5), g = word(k + 6), h = word(k + 7), i = word(k + 8);
	uint64_t j = word(k + 9), l = word(k + 10), m = word(k + 11), n = word(k + 12),
		o = word(k + 13);

	to_next(self);
	CHECK(a == word(k) && b == word(k + 1) && c == word(k + 2) && d == word(k + 3));
	CHECK(e == word(k + 4) && f == word(k + 5) && g == word(k + 6) && h == word(k + 7));
	CHECK(i == word(k + 8) && j == word(k + 9) && l == word(k + 10) && m == word(k + 11));
	CHECK(n == word(k + 12) && o == word(k + 13));
}

static void doubles(unsigned self)
{
	uint64_t k = self * 1000 + 7;
	double a = real(k), b = real(k + 1), c = real(k + 2), d = real(k + 3), e = real(k + 4);
	double f = real(k + 5), g = real(k + 6), h = real(k + 7), i = real(k + 8), j = real(k + 9);
	double l = real(k + 10), m = real(k + 11);

	to_next(self);
	CHECK(a == real(k) && b == real(k + 1) && c == real(k + 2) && d == real(k + 3));
	CHECK(e == real(k + 4) && f == real(k + 5) && g == real(k + 6) && h == real(k + 7));
	CHECK(i == real(k + 8) && j == real(k + 9) && l == real(k + 10) && m == real(k + 11));
}

static void run(void *arg)
{
	unsigned self = (unsigned)(uintptr_t)arg;

	for (;;) {
		integers(self);
		doubles(self);
	}
}

int main(void)
{
	random_state = test_seed();
	for (unsigned i = 0; i < CONTEXTS; i++)
		kbi_ctx_make(&ctx[i], new_stack(), STACK_SIZE, run, (void *)(uintptr_t)i);
	kbi_ctx_switch(&home, &ctx[0], NULL, NULL);
	for (unsigned i = 0; i < CONTEXTS; i++)
		CHECK(seen[i] > ROUNDS / CONTEXTS / 2);
	return 0;
}
