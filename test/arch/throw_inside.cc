/* C++ exceptions inside a context: thrown through frames with destructors, caught, thrown again,
 * many times and in two contexts in turn. No exception is in flight during a switch. */
#include <stdexcept>
#include <string>

extern "C" {
#include "arch_test.h"
}

static struct kbi_ctx home, ctx[2];
static int destroyed, caught;

struct counted {
	~counted() { destroyed++; }
};

static void thrower(int depth)
{
	counted c;
	if (depth == 0)
		throw std::runtime_error("deep");
	thrower(depth - 1);
}

static void one_round()
{
	try {
		try {
			thrower(5);
		} catch (const std::exception &e) {
			CHECK(std::string(e.what()) == "deep");
			throw std::logic_error("again");
		}
	} catch (const std::logic_error &) {
		caught++;
	}
}

static void run(void *arg)
{
	auto self = (uintptr_t)arg;

	for (;;) {
		one_round();
		kbi_ctx_switch(&ctx[self], &home, nullptr, nullptr);
	}
}

int main()
{
	for (uintptr_t i = 0; i < 2; i++)
		kbi_ctx_make(&ctx[i], new_stack(), STACK_SIZE, run, (void *)i);
	for (int i = 1; i <= 100; i++) {
		kbi_ctx_switch(&home, &ctx[i % 2], nullptr, nullptr);
		CHECK_EQ(caught, i);
		CHECK_EQ(destroyed, 6 * i);
	}
	return 0;
}
