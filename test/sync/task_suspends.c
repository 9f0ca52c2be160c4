/* Tasks that suspend delay no tasks: many more tasks than virtual processors wait for semaphores
 * that later tasks post, in whatever order they are begun; on a channel; asleep. And a thread that
 * waits for a group while it holds a mutex runs no task of another group that wants the mutex. */
#include <kochab/task.h>

#include "threads.h"

enum { PAIRS = 300, MESSAGES = 2000, SLEEPERS = 100, HOLDERS = 50 };

static kb_sem_t sem[PAIRS];
static kb_chan_t *chan;
static kb_mutex_t mutex = KB_MUTEX_INIT;
static int n_inside, sum;

static int take(void *arg)
{
	CHECK_EQ(kb_sem_wait(arg), 0);
	return 0;
}

static int post(void *arg)
{
	CHECK_EQ(kb_sem_post(arg), 0);
	return 0;
}

/* A task in its own group waits for the post of a later task. */
static int take_below(void *arg)
{
	kb_group_t g;

	CHECK_EQ(kb_group_init(&g), 0);
	CHECK_EQ(kb_group_run(&g, take, arg), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	return 0;
}

static void pairs(int (*fn)(void *))
{
	kb_group_t g;

	CHECK_EQ(kb_group_init(&g), 0);
	for (int i = 0; i < PAIRS; i++)
		CHECK_EQ(kb_group_run(&g, post, &sem[i]), 0);
	for (int i = 0; i < PAIRS; i++)
		CHECK_EQ(kb_group_run(&g, fn, &sem[i]), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
}

static int send_all(void *arg)
{
	(void)arg;
	for (int i = 1; i <= MESSAGES; i++)
		CHECK_EQ(kb_chan_send(chan, &i), 0);
	return 0;
}

static int receive_all(void *arg)
{
	int v;

	(void)arg;
	for (int i = 1; i <= MESSAGES; i++) {
		CHECK_EQ(kb_chan_recv(chan, &v), 0);
		CHECK_EQ(v, i);
	}
	return 0;
}

static void channel(void)
{
	kb_group_t g;

	CHECK_EQ(kb_chan_create(&chan, sizeof(int), 0), 0);
	CHECK_EQ(kb_group_init(&g), 0);
	CHECK_EQ(kb_group_run(&g, send_all, NULL), 0);
	CHECK_EQ(kb_group_run(&g, receive_all, NULL), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	kb_chan_destroy(chan);
}

static int sleep_a_bit(void *arg)
{
	kb_sleep(10 * TEST_MS);
	test_add(arg, 1);
	return 0;
}

static void sleepers(void)
{
	kb_group_t g;
	int n = 0;

	CHECK_EQ(kb_group_init(&g), 0);
	for (int i = 0; i < SLEEPERS; i++)
		CHECK_EQ(kb_group_run(&g, sleep_a_bit, &n), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	CHECK_EQ(test_get(&n), SLEEPERS);
}

static int add(void *arg)
{
	(void)arg;
	test_add(&sum, 1);
	kb_yield();
	return 0;
}

/* Holds the mutex while it waits for its group: no other thread is inside
 * meanwhile, and no thread is stuck. */
static int hold(void *arg)
{
	kb_group_t g;

	(void)arg;
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(test_add(&n_inside, 1), 1);
	CHECK_EQ(kb_group_init(&g), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(kb_group_run(&g, add, NULL), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	CHECK_EQ(test_add(&n_inside, -1), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	return 0;
}

static void holders(void)
{
	kb_group_t g;

	test_put(&sum, 0);
	CHECK_EQ(kb_group_init(&g), 0);
	for (int i = 0; i < HOLDERS; i++)
		CHECK_EQ(kb_group_run(&g, hold, NULL), 0);
	CHECK_EQ(kb_group_wait(&g), 0);
	CHECK_EQ(test_get(&sum), HOLDERS * 4);
}

/* A thread goes on computing with tasks left in its list, until another virtual processor has run
 * them or, with a single VP, the thread itself in its own waits. */
static int flag(void *arg)
{
	test_put(arg, 1);
	return 0;
}

static void others_help(void)
{
	uint64_t end = test_now_ns() + 20000ull * TEST_MS;
	int done = 0;
	kb_group_t g;

	CHECK_EQ(kb_group_init(&g), 0);
	CHECK_EQ(kb_group_run(&g, flag, &done), 0);
	while (kb_vp_count() > 1 && !test_get(&done))
		CHECK(test_now_ns() < end);
	CHECK_EQ(kb_group_wait(&g), 0);
	CHECK_EQ(done, 1);
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	for (int i = 0; i < 3; i++) {
		pairs(take);
		pairs(take_below);
		channel();
		sleepers();
		holders();
		for (int k = 0; k < 20; k++) {
			others_help();
			kb_sleep(k % 4 * TEST_MS / 20);
		}
	}
	return 0;
}
