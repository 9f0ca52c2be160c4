/* base/marks: numbers that several threads add while another one empties the set are all found, each with what was done
 * before it was added; also the last one of a burst, after which nobody adds. */
#include <pthread.h>
#include <sched.h>

#include "base/marks.h"

#include "test.h"

enum { ADDERS = 3, BURSTS = 3000, NEAR = 200 };

static struct kbi_marks set;
static a64 value[KBI_MARKS];
static uint64_t seen[KBI_MARKS];
static a32 burst, done;
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
		while (a_load_acq(&burst) < b)
			sched_yield();
		for (unsigned n = test_rand(&rand) % 20; n > 0; n--) {
			/* mostly neighbours, so that they meet in a word */
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

int main(void)
{
	pthread_t t[ADDERS];

	seed = test_seed();
	for (uintptr_t i = 0; i < ADDERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, adds, (void *)(i + 1)), 0);
	for (uint32_t b = 1; b <= BURSTS; b++) {
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
	for (unsigned i = 0; i < ADDERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	check_all();
	return 0;
}
