/* A thread's list of robust mutexes is damaged or unusual: it does not come back to its head
 * (stress-ng's threads register a copy of the head), comes back to a node, has thousands of
 * entries, has a pending entry, or leads to unmapped memory. The thread ends soon, and its mutexes
 * are marked as far as the kernel marks them: 2,048 entries and the pending entry. */
/* timeout: 60 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

enum { COPIES = 300, MANY = 5000, LIMIT = 2048 };

struct entry {
	struct robust_list node;
	_Atomic uint32_t word;
};

static struct entry entries[MANY];

static void set_list(struct robust_list_head *h)
{
	CHECK_EQ(syscall(SYS_set_robust_list, h, sizeof *h), 0);
}

static uint32_t own_number(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* The number that a word of its own must have: libc's, of a mutex that it locks. */
static uint32_t owner_number(void)
{
	pthread_mutex_t m;
	pthread_mutexattr_t a;
	uint32_t n;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&m, &a);
	pthread_mutex_lock(&m);
	n = (uint32_t)m.__data.__lock & FUTEX_TID_MASK;
	pthread_mutex_unlock(&m);
	return n ? n : own_number();
}

static void make_list(struct robust_list_head *h, size_t n, uint32_t owner, struct robust_list *end)
{
	memset(h, 0, sizeof *h);
	h->futex_offset = offsetof(struct entry, word) - offsetof(struct entry, node);
	h->list.next = &entries[0].node;
	for (size_t i = 0; i < n; i++) {
		entries[i].node.next = i + 1 < n ? &entries[i + 1].node : end;
		atomic_store(&entries[i].word, owner);
	}
}

static void *ends_with_a_copy(void *unused)
{
	static _Thread_local struct robust_list_head copy;
	struct robust_list_head *head;
	size_t n;

	CHECK_EQ(syscall(SYS_get_robust_list, 0, &head, &n), 0);
	copy = *head;
	set_list(&copy);
	return unused;
}

enum way { TO_HEAD, TO_ITSELF, ROUND, LONG, PENDING, PENDING_TWICE, NOWHERE, WORD_NOWHERE };
enum { FEW = 10 };

static struct robust_list_head head;

static void *ends(void *arg)
{
	uint32_t own = owner_number();

	switch (*(enum way *)arg) {
	case TO_HEAD:
		make_list(&head, FEW, own, &head.list);
		break;
	case TO_ITSELF:
		make_list(&head, FEW, own, &entries[FEW - 1].node);
		break;
	case ROUND:
		make_list(&head, FEW, own, &entries[3].node);
		break;
	case LONG:
		make_list(&head, MANY, own, &head.list);
		break;
	case PENDING:
		make_list(&head, FEW, own, &head.list);
		atomic_store(&entries[FEW + 1].word, own);
		head.list_op_pending = &entries[FEW + 1].node;
		break;
	case PENDING_TWICE:
		make_list(&head, FEW, own, &head.list);
		head.list_op_pending = &entries[2].node;
		break;
	case NOWHERE:
		make_list(&head, FEW, own, (struct robust_list *)16);
		break;
	case WORD_NOWHERE: {
		struct robust_list *only = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		mprotect((char *)only + 4096, 4096, PROT_NONE);
		only = (struct robust_list *)(void *)((char *)only + 4096 - sizeof *only);
		make_list(&head, FEW, own, &head.list);
		entries[4].node.next = only;
		only->next = &entries[5].node;
		break;
	}
	}
	set_list(&head);
	return NULL;
}

static void *ends_by_itself(void *unused)
{
	return unused;
}

static void run(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, fn, arg), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static bool is_marked(int i)
{
	return atomic_load(&entries[i].word) == FUTEX_OWNER_DIED;
}

static int marked(void)
{
	int n = 0;

	for (int i = 0; i < MANY; i++)
		n += is_marked(i);
	return n;
}

static void expect(enum way w, int n)
{
	memset(entries, 0, sizeof entries);
	run(ends, &w);
	if (marked() != n)
		fprintf(stderr, "way %d: %d marked\n", (int)w, marked());
	CHECK_EQ(marked(), n);
}

int main(void)
{
	for (int i = 0; i < COPIES; i++)
		run(ends_with_a_copy, NULL);
	expect(TO_HEAD, FEW);
	expect(TO_ITSELF, FEW);
	expect(ROUND, FEW);
	expect(LONG, LIMIT);
	CHECK(is_marked(0) && is_marked(LIMIT - 1));
	expect(PENDING, FEW + 1);
	expect(PENDING_TWICE, FEW);
	expect(NOWHERE, FEW);
	expect(WORD_NOWHERE, 5);
	run(ends_by_itself, NULL);
	return 0;
}
