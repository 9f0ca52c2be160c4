/* core/process under the drop-in: a program that has a signalfd when its first thread is
 * created keeps kernel threads, prints a line with the reason, and reads its signals. A program
 * that asks for a signalfd later gets an error.
 * matrix: run-only
 * body: thread (it chooses by itself) */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "core/child.h"

static sigset_t set;

static void *ends(void *arg)
{
	return arg;
}

static void has_a_thread(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, ends, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *reads(void *fd)
{
	struct signalfd_siginfo info;

	CHECK_EQ(read(*(int *)fd, &info, sizeof info), sizeof info);
	CHECK_EQ(info.ssi_signo, SIGUSR1);
	return NULL;
}

static void program(const char *when)
{
	pthread_t t;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	if (!strcmp(when, "later")) {
		has_a_thread();
		fd = signalfd(-1, &set, SFD_CLOEXEC);
		if (fd < 0 && errno == ENOSYS)
			printf("it has none\n");
		return;
	}
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(pthread_create(&t, NULL, reads, &fd), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	printf("it was read\n");
}

static void execute(void *when)
{
	char *argv[] = { (char *)"program", when, NULL };

	setenv("KOCHAB_BODY", "process", 1);
	execv("/proc/self/exe", argv);
	_exit(1);
}

int main(int argc, char **argv)
{
	static struct child c;
	static char first[] = "first", later[] = "later";

	if (argc > 1) {
		program(argv[1]);
		return 0;
	}
	child_run(&c, execute, first);
	child_exited(&c, 0);
	child_said(&c, "it was read");
	child_said(&c, "virtual processors cannot be processes");
	child_run(&c, execute, later);
	child_exited(&c, 0);
	if (!strstr(c.text, "virtual processors cannot be processes"))
		child_said(&c, "it has none");
	return 0;
}
