/* example/pool.c - a pool of workers: jobs go through a channel, and so do the answers. The channel's room holds back
 * whoever makes jobs faster than they are done; closing it is how the workers learn that there are no more. */
#include <kochab/kochab.h>
#include <kochab/sync.h>
#include <stdio.h>

enum { WORKERS = 100, JOBS = 100000, ROOM = 64 };

static kb_chan_t *jobs, *answers;

static unsigned steps_to_one(unsigned n)
{
	unsigned steps = 0;

	for (; n > 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	return steps;
}

static void *work(void *arg)
{
	unsigned n, steps;

	while (kb_chan_recv(jobs, &n) == 0) {
		steps = steps_to_one(n);
		if (kb_chan_send(answers, &steps) != 0)
			break;
	}
	return arg;
}

static void *hand_out(void *arg)
{
	for (unsigned n = 1; n <= JOBS; n++)
		kb_chan_send(jobs, &n);
	kb_chan_close(jobs);
	return arg;
}

int main(void)
{
	kb_thread_t worker[WORKERS], giver;
	unsigned steps, most = 0, n = 0;

	if (kb_chan_create(&jobs, sizeof(unsigned), ROOM) != 0 || kb_chan_create(&answers, sizeof(unsigned), ROOM) != 0)
		return 1;
	for (int i = 0; i < WORKERS; i++) {
		if (kb_thread_create(&worker[i], NULL, work, NULL) != 0)
			return 1;
	}
	if (kb_thread_create(&giver, NULL, hand_out, NULL) != 0)
		return 1;
	for (; n < JOBS && kb_chan_recv(answers, &steps) == 0; n++)
		most = steps > most ? steps : most;
	kb_thread_join(giver, NULL);
	for (int i = 0; i < WORKERS; i++)
		kb_thread_join(worker[i], NULL);
	kb_chan_destroy(jobs);
	kb_chan_destroy(answers);
	printf("%u jobs by %d workers; the longest way to 1 has %u steps\n", n, WORKERS, most);
	return n == JOBS && most == 350 ? 0 : 1;
}
