/* posix/libc_mutex: the kernel's list of robust mutexes, by system call number. Each thread has its
 * own list. When a thread ends, the mutexes on the list that it has set are marked, and their
 * waiting threads wake. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, ROUNDS = 50 };

static pthread_barrier_t all;
static struct robust_list_head *head[THREADS];

static struct robust_list_head *own_head(void)
{
	struct robust_list_head *h = NULL;
	size_t size = 0;

	CHECK_EQ(syscall(SYS_get_robust_list, 0, &h, &size), 0);
	CHECK_EQ(size, sizeof(*h));
	CHECK(h != NULL);
	return h;
}

static void *looks(void *arg)
{
	long me = (long)arg;

	head[me] = own_head();
	pthread_barrier_wait(&all);
	for (long i = 0; i < THREADS; i++)
		CHECK(i == me || head[i] != head[me]);
	CHECK(own_head() == head[me]);
	CHECK(head[me]->list.next == &head[me]->list);
	CHECK(head[me] == own_head());
	/* arguments that no kernel takes */
	CHECK_EQ(syscall(SYS_get_robust_list, 0, NULL, NULL), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(syscall(SYS_set_robust_list, head[me], 1), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK(own_head() == head[me]);
	return NULL;
}

static void each_has_one(void)
{
	pthread_t id[THREADS];

	CHECK_EQ(pthread_barrier_init(&all, NULL, THREADS), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, looks, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
}

/* A lock as <linux/futex.h> wants it: its owner's number in the word, behind its place in the list. */
static struct lock {
	struct robust_list at;
	unsigned word;
} lock;

static struct robust_list_head list;
static int may_end;

static void *holds(void *unused)
{
	(void)unused;
	list.list.next = &lock.at;
	list.futex_offset = offsetof(struct lock, word);
	list.list_op_pending = NULL;
	lock.at.next = &list.list;
	CHECK_EQ(syscall(SYS_set_robust_list, &list, sizeof(list)), 0);
	CHECK(own_head() == &list);
	__atomic_store_n(&lock.word, (unsigned)gettid() | FUTEX_WAITERS, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE))
		usleep(100);
	return NULL;
}

static void *waits(void *unused)
{
	unsigned word;

	(void)unused;
	while (!((word = __atomic_load_n(&lock.word, __ATOMIC_ACQUIRE)) & FUTEX_OWNER_DIED))
		if (word)
			syscall(SYS_futex, &lock.word, FUTEX_WAIT, word, NULL, NULL, 0);
	return NULL;
}

static void is_marked_at_its_end(void)
{
	pthread_t owner, other;

	lock.word = 0;
	may_end = 0;
	CHECK_EQ(pthread_create(&owner, NULL, holds, NULL), 0);
	CHECK_EQ(pthread_create(&other, NULL, waits, NULL), 0);
	while (!__atomic_load_n(&lock.word, __ATOMIC_ACQUIRE))
		usleep(100);
	__atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(owner, NULL), 0);
	CHECK_EQ(pthread_join(other, NULL), 0);
	CHECK_EQ(lock.word & FUTEX_TID_MASK, 0);
}

int main(void)
{
	each_has_one();
	for (int i = 0; i < ROUNDS; i++)
		is_marked_at_its_end();
	return 0;
}
