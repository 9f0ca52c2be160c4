/* example/timeouts.c - the first answer wins, and nobody is waited for longer than allowed. Each question goes to a quick
 * and a slow helper; a question that neither answers in time is given up. */
#include <errno.h>
#include <kochab/kochab.h>
#include <kochab/sync.h>
#include <stdio.h>

enum { QUESTIONS = 6, MS = 1000000 };

struct helper {
	kb_chan_t *ask, *answer;
	unsigned late[QUESTIONS]; /* ms that it takes for each question; 0: it never answers */
};

static struct helper quick = { .late = { 1, 20, 0, 1, 0, 1 } }, slow = { .late = { 20, 1, 5, 20, 0, 20 } };

static void *help(void *arg)
{
	struct helper *h = arg;
	unsigned question;

	while (kb_chan_recv(h->ask, &question) == 0) {
		if (h->late[question] == 0)
			continue;
		kb_sleep((uint64_t)h->late[question] * MS);
		kb_chan_send(h->answer, &question);
	}
	return NULL;
}

/* 0: quick answered, 1: slow did, ETIMEDOUT. Answers to earlier questions, which came too late, are passed over. */
static int ask(unsigned question, uint64_t deadline)
{
	unsigned answer;
	kb_select_case_t either[2] = {
		{ .op = KB_SELECT_RECV, .chan = quick.answer, .element = &answer },
		{ .op = KB_SELECT_RECV, .chan = slow.answer, .element = &answer },
	};
	size_t chosen;
	int e;

	kb_chan_send(quick.ask, &question);
	kb_chan_send(slow.ask, &question);
	do
		e = kb_select(either, 2, deadline, &chosen);
	while (e == 0 && answer != question);
	return e ? e : (int)chosen;
}

static int open_helper(struct helper *h, kb_thread_t *t)
{
	if (kb_chan_create(&h->ask, sizeof(unsigned), QUESTIONS) != 0 ||
	    kb_chan_create(&h->answer, sizeof(unsigned), QUESTIONS) != 0)
		return ENOMEM;
	return kb_thread_create(t, NULL, help, h);
}

int main(void)
{
	kb_thread_t t[2];
	unsigned unanswered = 0;

	if (open_helper(&quick, &t[0]) != 0 || open_helper(&slow, &t[1]) != 0)
		return 1;
	for (unsigned q = 0; q < QUESTIONS; q++) {
		int who = ask(q, kb_now() + 200 * (uint64_t)MS);

		printf("question %u: %s\n", q, who == 0 ? "the quick one" : who == 1 ? "the slow one" : "no answer in 200 ms");
		unanswered += who == ETIMEDOUT;
	}
	kb_chan_close(quick.ask);
	kb_chan_close(slow.ask);
	kb_thread_join(t[0], NULL);
	kb_thread_join(t[1], NULL);
	return unanswered == 1 ? 0 : 1;
}
