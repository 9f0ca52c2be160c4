/* Among cases that are all ready each case is chosen at times. */
#include "threads.h"

enum { CASES = 5, ROUNDS = 5000 };

int main(void)
{
	kb_chan_t *ch[CASES];
	kb_select_case_t cases[CASES];
	int v = 1, got, times[CASES] = { 0 };

	CHECK_EQ(kb_init(), 0);
	for (int i = 0; i < CASES; i++) {
		CHECK_EQ(kb_chan_create(&ch[i], sizeof v, 1), 0);
		CHECK_EQ(kb_chan_send(ch[i], &v), 0);
		cases[i] = (kb_select_case_t){ KB_SELECT_RECV, 0, ch[i], NULL, &got };
	}
	for (int i = 0; i < ROUNDS; i++) {
		size_t chosen = CASES;

		CHECK_EQ(kb_select(cases, CASES, 0, &chosen), 0);
		CHECK(chosen < CASES);
		times[chosen]++;
		CHECK_EQ(kb_chan_send(ch[chosen], &v), 0);
	}
	for (int i = 0; i < CASES; i++) {
		CHECK(times[i] > ROUNDS / CASES / 4);
		kb_chan_destroy(ch[i]);
	}
	return 0;
}
