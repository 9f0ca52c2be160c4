/* core: fork in a lightweight thread: the child runs on from there, with the program's signal mask,
 * and ends by _exit or exec; the parent is unharmed. */
#include <kochab/kochab.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own_tls.h"
#include "test.h"

enum { N = 10 };

static uint32_t stop;

static void *noise(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if ((uintptr_t)arg % 2)
			kb_yield();
		else
			kb_sleep(10000);
	return NULL;
}

static void check_mask(void)
{
	sigset_t set;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	CHECK(!sigismember(&set, SIGTERM) && !sigismember(&set, SIGCHLD));
}

static void *forks(void *arg)
{
	int code = 10 + (int)(uintptr_t)arg, status;
	pid_t pid;

	kb_yield();
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		check_mask();
		if (code % 2)
			_exit(code);
		execl("/bin/sh", "sh", "-c", code == 12 ? "exit 12" : "exit 0", (char *)NULL);
		_exit(99);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		kb_sleep(500000);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), code % 2 || code == 12 ? code : 0);
	return NULL;
}

int main(void)
{
	kb_thread_t t[N], n[4];
	kb_attr_t a;

	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(kb_thread_create(&n[i], NULL, noise, (void *)i), 0);
	for (uintptr_t i = 0; i < N; i++) {
		kb_attr_init(&a);
		kb_attr_settls(&a, own_tls_or_light((enum kb_tls)(i % 2)));
		CHECK_EQ(kb_thread_create(&t[i], &a, forks, (void *)i), 0);
	}
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(kb_thread_join(n[i], NULL), 0);
	return 0;
}
