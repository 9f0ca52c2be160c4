/* base/marks: several threads add numbers while a further thread empties the set. Each number is
 * found, and its finder sees all writes made before it was added; also the last number of a burst,
 * after which no thread adds. */
#include <pthread.h>
#include <sched.h>

#include "base/marks.h"

#include "test.h"

/* On a busy machine a burst takes many time slices of the kernel: then the test makes fewer
 * bursts. */
enum { ADDERS = 3, BURSTS = 3000, BURSTS_LEAST = 50, SECONDS = 10, NEAR = 200 };

static struct kbi_marks set;
static a64 value[KBI_MARKS];
static uint64_t seen[KBI_MARKS];
static a32 burst, done, end;
static uint64_t seed;

static void found(void *arg, uint32_t first, uint64_t bits)
{
	CHECK(arg == &set && first % 64 == 0 && first < KBI_MARKS && bits);
	for (; bits; bits &= bits - 1) {
		uint32_t n = first + (uint32_t)__builtin_ctzll(bits);

		seen[n] = a_load_rlx(&value[n]);
	}
}

static void *adds(void *arg)
{
	uint64_t rand = seed + (uintptr_t)arg;

	for (uint32_t b = 1; b <= BURSTS; b++) {
		while (a_load_acq(&burst) < b) {
			if (a_load_acq(&end))
				return NULL;
			sched_yield();
		}
		for (unsigned n = test_rand(&rand) % 20; n > 0; n--) {
			/* mostly neighbours, so that they share a word */
			uint32_t at = test_rand(&rand) % (test_rand(&rand) % 8 ? NEAR : KBI_MARKS);

			a_add_rlx(&value[at], 1);
			kbi_marks_add(&set, at);
		}
		a_add_acqrel(&done, 1);
	}
	return NULL;
}

static void check_all(void)
{
	for (uint32_t i = 0; i < KBI_MARKS; i++)
		CHECK_EQ(seen[i], a_load_rlx(&value[i]));
}

static bool is_late(uint64_t since, uint32_t b)
{
	return b >= BURSTS_LEAST && test_now_ns() - since > SECONDS * UINT64_C(1000000000);
}

int main(void)
{
	uint64_t since = test_now_ns();
	pthread_t t[ADDERS];

	seed = test_seed();
	for (uintptr_t i = 0; i < ADDERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, adds, (void *)(i + 1)), 0);
	for (uint32_t b = 1; b <= BURSTS && !is_late(since, b); b++) {
		a_store_rel(&burst, b);
		while (a_load_acq(&done) < b * ADDERS)
			if (kbi_marks_any(&set))
				kbi_marks_take(&set, found, &set);
			else if (b % 16 == 0)
				sched_yield();
		kbi_marks_take(&set, found, &set);
		CHECK(!kbi_marks_any(&set));
		if (b % 50 == 0)
			check_all();
	}
	a_store_rel(&end, 1);
	for (unsigned i = 0; i < ADDERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	check_all();
	return 0;
}
