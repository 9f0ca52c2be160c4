/* io/own: the number of a private copy belongs to the next copy as soon as it is closed, also to a
 * copy of another kernel thread that was made before the closer has marked the number as free: each
 * copy is closed by its own last user, and none is left open. A copy that was left open kept a
 * connection from ending: a server waited for ever, although its client had closed.
 * matrix: vps=2 sched=rotator
 * body: thread: its kernel threads are the program's */
#include <fcntl.h>
#include <kochab/kochab.h>
#include <pthread.h>
#include <unistd.h>

#include "io/own.h"
#include "os/fd.h"
#include "test.h"

enum { THREADS = 8, COPIES = 60000, AS_MANY = 4096 };

static int fd;

static void *copies(void *arg)
{
	for (int i = 0; i < COPIES; i++) {
		int own = kbi_own_copy(fd);

		CHECK(own >= 0);
		CHECK(kbi_own_is(own));
		kbi_own_drop(own);
	}
	return arg;
}

static int open_numbers(void)
{
	int n = 0;

	for (int i = KBI_FD_FROM; i < KBI_FD_FROM + AS_MANY; i++)
		n += fcntl(i, F_GETFD) >= 0;
	return n;
}

int main(void)
{
	pthread_t t[THREADS];
	int before;

	CHECK_EQ(kb_init(), 0);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	before = open_numbers();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, copies, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(open_numbers(), before);
	return 0;
}
