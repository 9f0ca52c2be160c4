/* space/note, base/marks: many threads of a program wait for threads of another program, some with
 * deadlines that pass just then, some by channels, while their virtual processors fall asleep and
 * wake up: no message is lost; then few threads again.
 * matrix: sched=rotator,steal vps=1,2 */
#include "space_test.h"

enum { PAIRS = 300, ROUNDS = 60, FEW_ROUNDS = 3000 };

struct seat {
	kb_space_event_t *in, *out;
	kb_space_chan_t *chan_in, *chan_out;
	unsigned number, rounds;
	uint64_t seed;
	bool first;
};

static void send(struct seat *s, uint64_t v)
{
	if (s->chan_out)
		CHECK_EQ(kb_space_chan_send(s->chan_out, &v, in_ms(30000)), 0);
	else
		CHECK_EQ(kb_space_event_notify(s->out, v), 0);
}

static int wait_until(struct seat *s, uint64_t *v, uint64_t deadline)
{
	return s->chan_in ? kb_space_chan_recv(s->chan_in, v, deadline) :
		kb_space_event_wait(s->in, v, deadline);
}

/* Receives; at times it gives up several times before. */
static uint64_t receive(struct seat *s, uint64_t *seed)
{
	uint64_t v = 0;
	int e = ETIMEDOUT;

	if (test_rand(seed) % 4 == 0)
		for (int i = 0; i < 3 && e == ETIMEDOUT; i++)
			e = wait_until(s, &v, kb_now() + test_rand(seed) % 200000);
	if (e == ETIMEDOUT)
		e = wait_until(s, &v, in_ms(30000));
	CHECK_EQ(e, 0);
	return v;
}

static void *sit(void *arg)
{
	struct seat *s = arg;
	uint64_t seed = s->seed;

	for (uint64_t i = 0; i < s->rounds; i++) {
		if (s->first)
			send(s, i);
		if (test_rand(&seed) % 64 == 0)
			kb_sleep(test_rand(&seed) % 400000);
		CHECK_EQ(receive(s, &seed), i);
		if (!s->first)
			send(s, i);
	}
	return NULL;
}

static void open_seat(kb_space_t *space, struct seat *s, unsigned i, bool first)
{
	char name[2][32];

	*s = (struct seat){ .number = i, .first = first, .seed = test_seed() + i + 1000 * first };
	snprintf(name[0], sizeof name[0], "%s%u", first ? "back" : "to", i);
	snprintf(name[1], sizeof name[1], "%s%u", first ? "to" : "back", i);
	if (i % 3 == 2) {
		CHECK_EQ(kb_space_chan_open(space, name[0], 8, 2, KB_SPACE_RECV, &s->chan_in), 0);
		CHECK_EQ(kb_space_chan_open(space, name[1], 8, 2, KB_SPACE_SEND, &s->chan_out), 0);
	} else {
		CHECK_EQ(kb_space_event_open(space, name[0], KB_SPACE_RECV, &s->in), 0);
		CHECK_EQ(kb_space_event_open(space, name[1], KB_SPACE_SEND, &s->out), 0);
	}
}

static void all(struct seat *seat, unsigned n, unsigned rounds)
{
	static struct runner r[PAIRS];

	for (unsigned i = 0; i < n; i++) {
		seat[i].rounds = rounds;
		run(&r[i], i % 64 == 10, sit, &seat[i]);
	}
	for (unsigned i = 0; i < n; i++)
		run_join(&r[i]);
}

int main(int argc, char **argv)
{
	static struct seat seat[PAIRS];
	struct pair p = pair_begin(argc, argv);

	for (unsigned i = 0; i < PAIRS; i++)
		open_seat(p.s, &seat[i], i, p.other);
	pair_meet(&p);
	all(seat, PAIRS, ROUNDS);
	pair_meet(&p);
	all(seat, 2, FEW_ROUNDS);
	pair_end(&p);
	return 0;
}
