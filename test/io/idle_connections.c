/* io/ready: 10,000 idle connections cost next to no processor time and less than 12 KiB each, the
 * thread and its stack included; each connection answers when it gets a message.
 * matrix: vps=1,2 sched=rotator */
#include <kochab/io.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

enum { LEAST = 400, CONNECTIONS = TEST_THREADS(10000), SPOKEN_TO = 1000 };

static int (*fd)[2];
static unsigned n;

static void *serves(void *arg)
{
	int s = (int)(intptr_t)arg;
	char b[64];
	ssize_t k;

	while ((k = kb_io_recv(s, b, sizeof b, 0, KB_FOREVER)) > 0)
		CHECK_EQ(kb_io_send(s, b, (size_t)k, 0, KB_FOREVER), k);
	return NULL;
}

static unsigned long resident(void)
{
	unsigned long all, now = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu %lu", &all, &now) == 2);
	fclose(f);
	return now * (unsigned long)sysconf(_SC_PAGESIZE);
}

static double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Makes as many connections as descriptors are available. */
static void connections(void)
{
	struct rlimit l;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
	n = l.rlim_cur > 2 * CONNECTIONS + 100 ? CONNECTIONS : (unsigned)(l.rlim_cur - 100) / 2;
	if (n < LEAST)
		SKIP("too few descriptors");
	fd = malloc(n * sizeof *fd);
	for (unsigned i = 0; i < n; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd[i]))
			SKIP("too few descriptors in the system");
}

int main(void)
{
	kb_thread_t *t;
	unsigned long before;
	double used;

	CHECK_EQ(kb_init(), 0);
	connections();
	t = malloc(n * sizeof *t);
	memset(t, 0, n * sizeof *t);
	before = resident();
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, serves, (void *)(intptr_t)fd[i][0]), 0);
	kb_sleep(100000000);
	printf("%u connections: %lu bytes each\n", n, (resident() - before) / n);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CHECK((resident() - before) / n < 12 * 1024);
#endif
	used = cpu();
	kb_sleep(500000000);
	used = (cpu() - used) / 0.5;
	printf("%.2f %% of a processor\n", used * 100);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CHECK(used < 0.2); /* the expected value is a tenth of that; the machine may be busy */
#endif
	for (unsigned k = 0; k < SPOKEN_TO; k++) {
		unsigned i = (k * 7919) % n;
		char c = 0;

		CHECK_EQ(kb_io_send(fd[i][1], "x", 1, 0, KB_FOREVER), 1);
		CHECK_EQ(kb_io_recv(fd[i][1], &c, 1, 0, KB_FOREVER), 1);
		CHECK_EQ(c, 'x');
	}
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(shutdown(fd[i][1], SHUT_WR), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	free(t);
	return 0;
}
