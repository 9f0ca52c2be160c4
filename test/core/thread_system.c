/* core/thread: system scope: a kernel thread of its own, with gettid and name of its own and the
 * program's signal mask, created on a VP or a kernel thread; joined and joining. */
#include <errno.h>
#include <kochab/kochab.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

static kb_sem_t go;
static kb_key_t key;
static uint32_t destroyed;

static void gone(void *value)
{
	CHECK(value == &key);
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void *body(void *arg)
{
	char name[KB_NAME_MAX];

	CHECK_EQ(kb_vp_self(), -1);
	CHECK(kb_thread_self() != NULL);
	CHECK_EQ(kb_thread_getname(kb_thread_self(), name, sizeof name), 0);
	CHECK_EQ(name[0], 's');
	CHECK_EQ(kb_thread_join(kb_thread_self(), NULL), EDEADLK);
	CHECK_EQ(kb_setspecific(key, &key), 0);
	*(long *)arg = syscall(SYS_gettid);
	CHECK_EQ(kb_sem_wait(&go), 0);
	kb_sleep(1000000);
	kb_yield();
	if (*(long *)arg % 2)
		kb_thread_exit(arg);
	return arg;
}

static void *has_programs_mask(void *unused)
{
	sigset_t set;

	(void)unused;
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	CHECK(!sigismember(&set, SIGTERM) && sigismember(&set, SIGUSR2));
	return NULL;
}

static void *creator(void *attr)
{
	kb_thread_t t;

	CHECK_EQ(kb_thread_create(&t, attr, has_programs_mask, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	return NULL;
}

static void from_each_vp(kb_attr_t *system)
{
	for (unsigned i = 0; i < kb_vp_count(); i++) {
		kb_attr_t a;
		kb_thread_t t;

		kb_attr_init(&a);
		CHECK_EQ(kb_attr_setvp(&a, (int)i), 0);
		CHECK_EQ(kb_thread_create(&t, &a, creator, system), 0);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
}

static void *joiner(void *arg)
{
	void *r;

	CHECK_EQ(kb_thread_join(arg, &r), 0);
	return r;
}

int main(void)
{
	enum { N = 8 };
	kb_thread_t t[N], j[N];
	long tid[N];
	kb_attr_t a;
	sigset_t set;
	void *r;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_key_create(&key, gone), 0);
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_setscope(&a, KB_SCOPE_SYSTEM), 0);
	CHECK_EQ(kb_attr_setname(&a, "system"), 0);
	from_each_vp(&a);
	for (int i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], &a, body, &tid[i]), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&j[i], NULL, joiner, t[i]), 0);
	kb_sleep(5000000);
	for (int i = 0; i < N; i++)
		kb_sem_post(&go);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(kb_thread_join(j[i], &r), 0);
		CHECK(r == &tid[i]);
		for (int k = 0; k < i; k++)
			CHECK(tid[k] != tid[i]);
	}
	CHECK_EQ(destroyed, N);
	CHECK_EQ(kb_attr_setdetached(&a, 1), 0);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(kb_thread_create(&t[i], &a, body, &tid[i]), 0);
		kb_sem_post(&go);
	}
	while (__atomic_load_n(&destroyed, __ATOMIC_RELAXED) < 2 * N)
		kb_sleep(1000000);
	return 0;
}
