/* A thread's files in /proc exist under the number that gettid returns, for a thread that waits,
 * sleeps, computes or runs. libdispatch reads its workers' files and ends the program if a file is
 * missing. The files of an ended thread are gone. An invalid pointer is passed on for the kernel to
 * find. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static sem_t told, end;
static volatile int tid, stop;

static void *waits(void *unused)
{
	(void)unused;
	tid = gettid();
	sem_post(&told);
	while (sem_wait(&end))
		;
	return NULL;
}

static void *computes(void *unused)
{
	(void)unused;
	tid = gettid();
	sem_post(&told);
	while (!stop)
		;
	return NULL;
}

/* '?': it is not there. */
static char state(const char *form)
{
	char path[100], text[1024];
	const char *behind;
	int fd;
	ssize_t n;

	snprintf(path, sizeof path, form, (int)tid);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0) {
		CHECK_EQ(errno, ENOENT);
		return '?';
	}
	n = read(fd, text, sizeof text - 1);
	CHECK(n > 0);
	text[n] = 0;
	CHECK_EQ(close(fd), 0);
	behind = strrchr(text, ')');
	CHECK(behind && behind[1] == ' ');
	return behind[2];
}

/* It gets there soon. */
static void comes_to(char wanted, const char *form)
{
	char is = 0;

	for (int i = 0; i < 500 && (is = state(form)) != wanted; i++)
		usleep(10000);
	CHECK_EQ(is, wanted);
}

static void refuses_no_pointer(void)
{
	static const char *volatile none[] = { NULL, (const char *)1, (const char *)-1 };
	int (*volatile any_open)(const char *, int, ...) = open; /* UndefinedBehaviorSanitizer checks the arguments of open */

	for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
		CHECK_EQ(any_open(none[i], O_RDONLY), -1);
		CHECK_EQ(errno, EFAULT);
	}
}

int main(void)
{
	pthread_t t;

	CHECK_EQ(sem_init(&told, 0, 0), 0);
	CHECK_EQ(sem_init(&end, 0, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	while (sem_wait(&told))
		;
	comes_to('S', "/proc/%d/stat");
	refuses_no_pointer();
	sem_post(&end);
	CHECK_EQ(pthread_join(t, NULL), 0);
	comes_to('?', "/proc/%d/stat");
	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	while (sem_wait(&told))
		;
	comes_to('R', "/proc/%d/stat");
	stop = 1;
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
