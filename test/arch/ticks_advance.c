/* kbi_cpu_ticks advances at a constant rate: two waits of equal length, by the clock, count nearly
 * equal numbers of ticks. A busy machine stretches waits, so the test compares rates, not
 * counts. */
#include "arch_test.h"

static double ticks_per_ns(uint64_t wait_ns)
{
	uint64_t start = test_now_ns(), ticks = kbi_cpu_ticks(), now, passed;

	do {
		kbi_cpu_relax();
		now = test_now_ns();
	} while (now - start < wait_ns);
	passed = kbi_cpu_ticks() - ticks;
	return (double)passed / (double)(now - start);
}

int main(void)
{
	double first = ticks_per_ns(20 * 1000000), second;

	CHECK(first > 0);
	for (int tries = 0; tries < 10; tries++) {
		second = ticks_per_ns(20 * 1000000);
		if (second > first * 0.98 && second < first * 1.02)
			return 0;
		first = second;
	}
	CHECK(!"a constant rate");
	return 1;
}
