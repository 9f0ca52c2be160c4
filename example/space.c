/* example/space.c - two processes with lightweight threads that wait for each other: a named space with a channel for
 * questions and another for answers. The processes need not be related; here the first starts the second. */
#include <kochab/kochab.h>
#include <kochab/space.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASKERS = 100, QUESTIONS = 100, ROOM = 64 };

struct message {
	unsigned asker, number;
};

static kb_space_t *space;
static kb_space_chan_t *questions, *answers;

/* ends: which ends of the channel for questions are this process's. */
static bool open_channels(unsigned ends)
{
	unsigned others = ends == KB_SPACE_SEND ? KB_SPACE_RECV : KB_SPACE_SEND;

	return kb_space_chan_open(space, "questions", sizeof(struct message), ROOM, ends, &questions) == 0 &&
	       kb_space_chan_open(space, "answers", sizeof(struct message), ROOM, others, &answers) == 0;
}

/* The other process: doubles what it is asked. */
static int answer_all(const char *name)
{
	struct message m;

	if (kb_space_attach(&space, name, 0) != 0 || !open_channels(KB_SPACE_RECV))
		return 1;
	for (int i = 0; i < ASKERS * QUESTIONS; i++) {
		if (kb_space_chan_recv(questions, &m, KB_FOREVER) != 0)
			return 1;
		m.number *= 2;
		if (kb_space_chan_send(answers, &m, KB_FOREVER) != 0)
			return 1;
	}
	return kb_space_detach(space);
}

static void *asks(void *arg)
{
	struct message m = { (unsigned)(uintptr_t)arg, 0 };

	for (unsigned i = 0; i < QUESTIONS; i++) {
		m.number = i;
		if (kb_space_chan_send(questions, &m, KB_FOREVER) != 0)
			return NULL;
	}
	return arg;
}

int main(int argc, char **argv)
{
	kb_thread_t t[ASKERS];
	unsigned long sum = 0;
	struct message m;
	char name[64];
	int status;

	if (argc > 1)
		return answer_all(argv[1]);
	snprintf(name, sizeof(name), "example-%d", (int)getpid());
	if (kb_space_create(&space, name, NULL) != 0 || !open_channels(KB_SPACE_SEND))
		return 1;
	if (fork() == 0) {
		execl("/proc/self/exe", argv[0], name, (char *)NULL);
		_exit(127);
	}
	for (size_t i = 0; i < ASKERS; i++) {
		if (kb_thread_create(&t[i], NULL, asks, (void *)i) != 0)
			return 1;
	}
	for (int i = 0; i < ASKERS * QUESTIONS && kb_space_chan_recv(answers, &m, kb_now() + 60000000000) == 0; i++)
		sum += m.number;
	for (int i = 0; i < ASKERS; i++)
		kb_thread_join(t[i], NULL);
	wait(&status);
	kb_space_detach(space);
	kb_space_unlink(name);
	printf("%d answers from another process, their sum %lu\n", ASKERS * QUESTIONS, sum);
	return status == 0 && sum == (unsigned long)ASKERS * QUESTIONS * (QUESTIONS - 1) ? 0 : 1;
}
