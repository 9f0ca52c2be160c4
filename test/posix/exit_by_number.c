/* posix/posix: a thread that ends by the system call exit ends alone, and at once: no cleanup
 * handler, no destructor; its joiner gets NULL. So does main, and the further threads go on. */
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 500 };

static pthread_key_t key;
static int called;
static volatile int *went_on;

static void call(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&called, 1, __ATOMIC_RELAXED);
}

static void *leaves(void *arg)
{
	CHECK_EQ(pthread_setspecific(key, arg), 0);
	pthread_cleanup_push(call, NULL);
	syscall(SYS_exit, 3);
	pthread_cleanup_pop(0);
	return arg;
}

static void *goes_on(void *arg)
{
	usleep(20000);
	*went_on = 1;
	return arg;
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("sanitizers do not see such an end");
#endif
	int status, all = 0;
	pthread_t t;
	void *r;

	CHECK_EQ(pthread_key_create(&key, call), 0);
	for (int i = 0; i < ROUNDS; i++) {
		r = &all;
		CHECK_EQ(pthread_create(&t, NULL, leaves, &all), 0);
		CHECK_EQ(pthread_join(t, &r), 0);
		CHECK(r == NULL);
	}
	CHECK_EQ(called, 0);
	went_on = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(went_on != MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_EQ(pthread_create(&t, NULL, goes_on, NULL), 0);
		leaves(&all);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(*went_on, 1);
	return 0;
}
