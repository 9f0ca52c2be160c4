/* Threads select over the same channels, to send and to receive at once, with and without
 * buffers: each element arrives once, exactly one case of a select goes on, and a
 * time-out takes no element along. */
#include <errno.h>
#include <string.h>

#include "threads.h"

enum { CHANNELS = 3, THREADS = 6, EACH = 1500, TOTAL = THREADS * EACH };

static kb_chan_t *ch[CHANNELS];
static int numbers, received;
static char arrived[TOTAL];

/* Sends its own EACH elements on any channel while it receives foreign elements from
 * any, until all have arrived. */
static void *mix(void *arg)
{
	int base = (test_add(&numbers, 1) - 1) * EACH, sent = 0, out = 0, in[CHANNELS];
	uint64_t rnd = test_stream();
	kb_select_case_t cases[2 * CHANNELS];

	(void)arg;
	while (test_get(&received) < TOTAL) {
		size_t n = 0, chosen = 99, first = test_rand(&rnd) % CHANNELS;
		int rc;

		out = base + sent;
		for (size_t i = 0; i < CHANNELS; i++) {
			kb_chan_t *c = ch[(first + i) % CHANNELS];

			in[i] = -1;
			cases[n++] = (kb_select_case_t){ KB_SELECT_RECV, -1, c, NULL, &in[i] };
		}
		for (size_t i = 0; i < CHANNELS && sent < EACH; i++) {
			kb_chan_t *c = ch[(first + i) % CHANNELS];

			cases[n++] = (kb_select_case_t){ KB_SELECT_SEND, -1, c, NULL, &out };
		}
		rc = kb_select(cases, n, kb_now() + test_rand(&rnd) % 30000, &chosen);
		for (size_t i = 0; i < CHANNELS; i++)
			CHECK_EQ(in[i] >= 0, rc == 0 && chosen == i);
		if (rc) {
			CHECK_EQ(rc, ETIMEDOUT);
			continue;
		}
		CHECK(chosen < n);
		CHECK_EQ(cases[chosen].error, 0);
		if (chosen >= CHANNELS) {
			sent++;
			continue;
		}
		CHECK_EQ(__atomic_add_fetch(&arrived[in[chosen]], 1, __ATOMIC_RELAXED), 1);
		test_add(&received, 1);
	}
	return NULL;
}

static void run(size_t capacity)
{
	for (int i = 0; i < CHANNELS; i++)
		CHECK_EQ(kb_chan_create(&ch[i], sizeof(int), capacity), 0);
	memset(arrived, 0, sizeof arrived);
	numbers = received = 0;
	workers_run(THREADS, mix, NULL);
	for (int i = 0; i < TOTAL; i++)
		CHECK_EQ(arrived[i], 1);
	for (int i = 0; i < CHANNELS; i++) {
		CHECK_EQ(kb_chan_length(ch[i]), 0);
		kb_chan_destroy(ch[i]);
	}
}

static void body(void)
{
	run(0);
	run(2);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
