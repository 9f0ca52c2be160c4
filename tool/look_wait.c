/* tool/look_wait.c - finds the objects that threads of another process wait for. A thread does not
 * note its object; but a waiter's node lies on its stack, near its stack pointer, is linked into
 * the object's queue, and has the object's address near it. So words on a stack are a node if they
 * name their thread and look like links; the memory to which a word near the node points is an
 * object if its queue begins with the first node of the node's queue. The queue's place in the
 * object tells the object's kind. Where nothing fits, the wait stays unknown. Contract in
 * look.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/deadline.h"
#include "core/domain.h"
#include "look.h"
#include "sync/channel.h"
#include "sync/mutex.h"
#include "tool.h"

enum {
	WINDOW = 1024,      /* of a stack, from its stack pointer */
	WORDS = WINDOW / 8,
	BEFORE = 48,        /* words before and behind a node that may be the object's address */
	BEHIND = 48,
	CANDIDATES = 20,
	OBJECT = 80,        /* bytes of an object that are looked at */
	AT_ONCE = 512,
	PAGE = 4096,
	KNOWN = 4096,       /* objects that were read and may be wanted again */
	/* words behind a node's beginning: of a sleeper of sync/park.c, the address and its bucket */
	PARK_ADDRESS = 4,
	PARK_BUCKET = 5,
	BUCKET_HEAD = 8,
	NODES = 3,          /* a thread's: words that look like a node may be none */
	NOWHERE = 1,
};

/* A waiter's node (sync/waitq.h). */
struct node {
	uint32_t thread;  /* place in look->thread */
	uint64_t at, next, prev;
	uint64_t first;   /* of its queue, 0: not looked for, NOWHERE: not found */
	uint64_t park[2]; /* the words at PARK_ADDRESS, PARK_BUCKET */
	uint64_t word[CANDIDATES];
	unsigned n;
};

struct nodes {
	struct node *node;
	uint32_t n;
};

static bool is_pointer(uint64_t x)
{
	return x >= 65536 && x < UINT64_C(1) << 56 && x % 8 == 0;
}

static bool is_link(uint64_t x)
{
	return x == 0 || is_pointer(x);
}

/* ---- the nodes on stacks ---- */

/* sync/channel.h: a spot, a node without its thread; that is in the pick, which is near. At word k
 * of the window. */
static bool is_spot(const uint64_t *word, unsigned k, uint64_t at, uint64_t descriptor)
{
	uint64_t pick = word[k + offsetof(struct kbi_spot, pick) / 8] - at;

	return pick < WINDOW && pick % 8 == 0 && word[pick / 8] == descriptor && is_link(word[k]) &&
		is_link(word[k + 1]);
}

static bool is_node(const uint64_t *word, uint64_t descriptor)
{
	enum { RANKS = 100 }; /* real-time priorities */
	uint32_t state = (uint32_t)word[3], rank = (uint32_t)(word[3] >> 32);

	return word[2] == descriptor && is_link(word[0]) && is_link(word[1]) &&
	       state <= KBI_WNODE_TAKEN && rank < RANKS;
}

/* Adds an address that may be an object's. Addresses in the window belong to frames, not to
 * objects. */
static void add_candidate(struct node *node, uint64_t word, uint64_t at, uint64_t descriptor)
{
	bool known = !is_pointer(word) || word == descriptor || word - at < WINDOW;

	for (unsigned i = 0; i < node->n && !known; i++)
		known = node->word[i] == word;
	if (!known)
		node->word[node->n++] = word;
}

/* Finds the next node in a window of a stack, from word k on. Returns the word behind the node's
 * first; 0: no node. */
static unsigned find_node(struct node *node, const uint64_t *word, uint64_t at, unsigned k,
	uint64_t descriptor)
{
	while (k + PARK_BUCKET < WORDS && !is_node(word + k, descriptor) &&
		!is_spot(word, k, at, descriptor))
		k++;
	if (k + PARK_BUCKET >= WORDS)
		return 0;
	node->at = at + 8 * k;
	node->next = word[k];
	node->prev = word[k + 1];
	node->park[0] = word[k + PARK_ADDRESS];
	node->park[1] = word[k + PARK_BUCKET];
	for (unsigned far = 0; far < BEFORE + BEHIND; far++) {
		unsigned i = far % 2 ? k - 1 - far / 2 : k + PARK_ADDRESS + far / 2;

		if (i < WORDS && node->n < CANDIDATES)
			add_candidate(node, word[i], at, descriptor);
	}
	return k + 1;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct node *)a)->at, y = ((const struct node *)b)->at;

	return (x > y) - (x < y);
}

/* Adds the nodes on a thread's stack. */
static void add_nodes(struct nodes *all, uint32_t thread, const uint64_t *word, uint64_t at,
	uint64_t descriptor)
{
	unsigned next = 0;

	for (unsigned found = 0; found < NODES; found++) {
		struct node *node = &all->node[all->n];

		*node = (struct node){ .thread = thread };
		next = find_node(node, word, at, next, descriptor);
		if (next == 0)
			return;
		all->n++;
	}
}

/* Finds the nodes of all threads and sorts them by address. False: no memory. */
static bool find_nodes(const struct look *l, struct nodes *all)
{
	static uint64_t word[AT_ONCE][WORDS];
	uint64_t at[AT_ONCE];
	uint32_t of[AT_ONCE], i = 0;

	all->node = malloc(((size_t)l->n * NODES + 1) * sizeof(*all->node));
	if (all->node == NULL)
		return false;
	while (i < l->n) {
		unsigned n = 0;

		for (; i < l->n && n < AT_ONCE; i++)
			if (look_kind(&l->thread[i]) == KBI_TASK_WAITING &&
				(at[n] = look_stack(&l->thread[i])) != 0)
				of[n++] = i;
		look_read_many(l, at, n, word, sizeof(*word));
		for (unsigned k = 0; k < n; k++) {
			if (word[k][1] == 0) /* where it goes on: nothing was read, its memory ends soon */
				look_read(l, at[k], word[k],
					PAGE - at[k] % PAGE < WINDOW ? PAGE - at[k] % PAGE : WINDOW);
			add_nodes(all, of[k], word[k], at[k], look_address(l, &l->thread[of[k]]));
		}
	}
	qsort(all->node, all->n, sizeof(*all->node), by_address);
	return true;
}

/* ---- the queues ---- */

static struct node *node_at(const struct nodes *all, uint64_t at)
{
	struct node key = { .at = at };

	return bsearch(&key, all->node, all->n, sizeof(*all->node), by_address);
}

/* Follows a node's links to the first node of its queue, and notes that in all nodes on the way. A
 * queue that changes meanwhile, or a ring, has no first node: NOWHERE. */
static void find_first(const struct nodes *all, struct node *node)
{
	struct node *n = node;
	uint64_t first = NOWHERE;

	for (uint32_t steps = 0; n != NULL && n->first == 0 && n->prev != 0 && steps < all->n; steps++)
		n = node_at(all, n->prev);
	if (n != NULL && n->first != 0)
		first = n->first;
	else if (n != NULL && n->prev == 0)
		first = n->at;
	for (n = node; n != NULL && n->first == 0; n = n->prev != 0 ? node_at(all, n->prev) : NULL)
		n->first = first;
}

/* ---- the objects ---- */

enum kind_of { CONDITION, SEMAPHORE, BARRIER, MUTEX, RWLOCK, ROOM, CHANNEL };

/* The first word of an object, which is its word, has these bits while threads wait; sync/sem.c:
 * its value is SOME. */
static const struct kind {
	const char *what;
	size_t head; /* of the queue in the object */
	uint32_t set, clear;
} kinds[] = {
	[CONDITION] = { "condition", offsetof(kb_cond_t, head), KBI_WAITQ_SOME,
		~0u - KBI_WAITQ_SOME - KBI_WAITQ_LOCK },
	[SEMAPHORE] = { "semaphore", offsetof(kb_sem_t, head), 0x80000000u, 0x3fffffffu },
	[BARRIER] = { "barrier", offsetof(kb_barrier_t, head), 0, ~0u - KBI_WAITQ_LOCK },
	[MUTEX] = { "mutex", offsetof(kb_mutex_t, head), KBI_WAITQ_SOME, 0 },
	[RWLOCK] = { "rwlock", offsetof(kb_rwlock_t, head), KBI_WAITQ_SOME, 0 },
	[ROOM] = { "room in channel", offsetof(struct kb_chan, send), 0, ~0u - KBI_WAITQ_LOCK },
	[CHANNEL] = { "channel", offsetof(struct kb_chan, recv), 0, ~0u - KBI_WAITQ_LOCK },
};

_Static_assert(offsetof(struct kb_chan, recv) + 16 <= OBJECT, "read with it");

static void tell_mutex(const struct look *l, struct look_wait *w, const char *object)
{
	kb_mutex_t m;

	memcpy(&m, object, sizeof(m));
	if (m.word & KBI_MUTEX_LOCKED)
		w->owner = (uint32_t)((m.word & ~(uint32_t)KBI_MUTEX_FLAGS) -
			(uint32_t)(uintptr_t)l->table.at) /
			   (uint32_t)sizeof(struct kb_thread);
}

static void describe_object_wait(const struct look *l, struct look_wait *w, unsigned kind,
	uint64_t at, const char *object)
{
	w->what = kinds[kind].what;
	w->object = at;
	if (kind == MUTEX) {
		tell_mutex(l, w, object);
	} else if (kind == RWLOCK) {
		kb_rwlock_t lock;

		memcpy(&lock, object, sizeof(lock));
		w->owner = lock.writer != 0 ? (int64_t)lock.writer - 1 : -1;
	} else if (kind == BARRIER) {
		kb_barrier_t b;

		memcpy(&b, object, sizeof(b));
		w->some = b.need - b.left;
		w->all = b.need;
	}
}

/* Much of the memory of programs is zero, so a channel must be such that threads wait at it: full,
 * or empty. */
static bool is_waited_at(const char *object, bool room)
{
	struct kb_chan ch;

	memcpy(&ch, object, sizeof(ch));
	return ch.size > 0 && ch.size <= KBI_CHAN_ELEMENT_MAX &&
		ch.capacity <= SIZE_MAX / 2 / ch.size && ch.count == (room ? ch.capacity : 0) &&
		ch.first <= ch.capacity;
}

static bool is_kind(unsigned kind, uint64_t first, const char *object)
{
	const struct kind *k = &kinds[kind];
	uint64_t queue[2];
	kb_barrier_t b;
	uint32_t word;

	memcpy(queue, object + k->head, sizeof(queue));
	memcpy(&word, object, sizeof(word));
	memcpy(&b, object, sizeof(b));
	return queue[0] == first && is_pointer(queue[1]) && (word & k->set) == k->set &&
		(word & k->clear) == 0 && (kind != BARRIER || (b.left > 0 && b.left < b.need)) &&
		((kind != ROOM && kind != CHANNEL) || is_waited_at(object, kind == ROOM));
}

/* Returns whether the node is in the queue of the object at `at`; if so, describes the object in
 * *w. */
static bool is_object_of_node(const struct look *l, const struct node *node, uint64_t at,
	const char *object, struct look_wait *w)
{
	uint64_t first;

	if (node->first == NOWHERE)
		return false;
	memcpy(&first, object + BUCKET_HEAD, sizeof(first));
	if (node->park[1] == at && first == node->first) {
		w->what = "word";
		w->object = node->park[0];
		return true;
	}
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		if (is_kind(k, node->first, object)) {
			describe_object_wait(l, w, k, at, object);
			return true;
		}
	return false;
}

/* A cache of memory that was read lately: from all stacks words lead to the same code and
 * tables. */
static struct known {
	uint64_t at;
	char object[OBJECT];
} known[KNOWN];

static struct known *known_at(uint64_t at)
{
	return &known[(at >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 52];
}

_Static_assert(KNOWN == 1 << 12, "the upper 12 bits");

/* Reads the c-th candidates of these nodes, which are not in the cache, and tries them as the
 * nodes' objects. */
static void try_objects(const struct look *l, const struct nodes *all, const uint32_t *of,
	unsigned n, unsigned c, struct look_wait *wait)
{
	static char object[AT_ONCE][OBJECT];
	uint64_t at[AT_ONCE] = { 0 };

	for (unsigned k = 0; k < n; k++)
		at[k] = all->node[of[k]].word[c];
	look_read_many(l, at, n, object, OBJECT);
	for (unsigned k = 0; k < n; k++) {
		struct known *place = known_at(at[k]);

		place->at = at[k];
		memcpy(place->object, object[k], OBJECT);
		is_object_of_node(l, &all->node[of[k]], at[k], object[k],
			&wait[all->node[of[k]].thread]);
	}
}

static void find_objects(const struct look *l, const struct nodes *all, struct look_wait *wait)
{
	for (unsigned c = 0; c < CANDIDATES; c++) {
		uint32_t of[AT_ONCE];
		unsigned n = 0;

		for (uint32_t i = 0; i < all->n; i++) {
			const struct node *node = &all->node[i];
			struct look_wait *w = &wait[node->thread];
			const struct known *place = c < node->n ? known_at(node->word[c]) : NULL;

			if (place == NULL || w->what != NULL || node->first == NOWHERE)
				continue;
			if (place->at == node->word[c])
				is_object_of_node(l, node, place->at, place->object, w);
			/* a node beside it looks like an object */
			else if (node_at(all, node->word[c]) == NULL)
				of[n++] = i;
			if (n == AT_ONCE) {
				try_objects(l, all, of, n, c, wait);
				n = 0;
			}
		}
		try_objects(l, all, of, n, c, wait);
	}
}

/* ---- waits that descriptors tell ---- */

/* A thread's joiner waits for its end. */
static void find_joiners(const struct look *l, struct look_wait *wait)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct kb_thread *joiner =
			look_at_address(l, (uintptr_t)a_load_rlx(&l->thread[i].join));
		struct look_wait *w = joiner != NULL ? &wait[joiner - l->thread] : NULL;

		if (w == NULL || w->what != NULL || look_kind(joiner) != KBI_TASK_WAITING)
			continue;
		w->what = "end";
		w->owner = l->thread[i].task.index;
	}
}

static void find_own_wait(const struct look *l, const struct kb_thread *t, struct look_wait *w,
	uint64_t now)
{
	enum kbi_task_kind kind = look_kind(t);
	struct kbi_watch watch;
	struct kbi_rest rest;

	if (kind != KBI_TASK_WAITING)
		return;
	if (t->task.awaits != NULL && (uintptr_t)t->task.awaits % _Alignof(kb_event_t) == 0) {
		/* else sync/lost's: an object */
		w->what = "event";
		w->object = (uintptr_t)t->task.awaits;
	} else if (kbi_task_is(&t->task, KBI_TASK_WATCHES) &&
		look_read(l, (uintptr_t)t->watch, &watch, sizeof(watch))) {
		w->what = "word";
		w->object = (uintptr_t)watch.word;
	}
	if (kbi_task_is(&t->task, KBI_TASK_TIMED) &&
		look_read(l, (uintptr_t)t->rest, &rest, sizeof(rest)) &&
		(uintptr_t)rest.thread == look_address(l, t)) {
		w->timed = true;
		w->left = now != 0 ? 1e-9 * ((double)rest.until - (double)now) : 0;
	}
}

/* ---- calls that block ---- */

static const struct {
	long number;
	const char *name;
} calls[] = {
	{ SYS_read, "read" }, { SYS_write, "write" }, { SYS_readv, "readv" }, { SYS_writev, "writev" },
	{ SYS_ppoll, "ppoll" }, { SYS_pselect6, "pselect6" }, { SYS_epoll_pwait, "epoll_pwait" },
	{ SYS_futex, "futex" },
	{ SYS_accept4, "accept4" }, { SYS_connect, "connect" }, { SYS_recvfrom, "recvfrom" },
	{ SYS_recvmsg, "recvmsg" }, { SYS_sendto, "sendto" }, { SYS_sendmsg, "sendmsg" },
	{ SYS_wait4, "wait4" },
	{ SYS_waitid, "waitid" }, { SYS_nanosleep, "nanosleep" },
	{ SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_fsync, "fsync" }, { SYS_fdatasync, "fdatasync" }, { SYS_flock, "flock" },
	{ SYS_fcntl, "fcntl" },
	{ SYS_openat, "openat" }, { SYS_io_getevents, "io_getevents" },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait" },
	{ SYS_rt_sigsuspend, "rt_sigsuspend" }, { SYS_pread64, "pread64" },
	{ SYS_pwrite64, "pwrite64" },
	{ SYS_msgrcv, "msgrcv" }, { SYS_semtimedop, "semtimedop" },
	{ SYS_mq_timedreceive, "mq_timedreceive" },
#ifdef SYS_accept
	{ SYS_accept, "accept" },
#endif
#ifdef SYS_poll
	{ SYS_poll, "poll" }, { SYS_select, "select" }, { SYS_epoll_wait, "epoll_wait" },
	{ SYS_pause, "pause" },
	{ SYS_open, "open" },
#endif
};

static void find_call(const struct look *l, const struct kb_thread *t, struct look_wait *w)
{
	int tid = look_kind(t) == KBI_TASK_BLOCKED && l->core < 0 ? look_tid(l, t) : 0;
	char path[64];
	long number;
	FILE *f;

	if (tid == 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	f = fopen(path, "re");
	if (f != NULL && fscanf(f, "%ld", &number) == 1 && number >= 0) {
		w->what = "call";
		w->object = (uint64_t)number;
	}
	if (f != NULL)
		fclose(f);
}

/* ---- */

struct look_wait *look_waits(const struct look *l)
{
	struct look_wait *wait = calloc(l->n + 1, sizeof(*wait));
	uint64_t now = l->core < 0 ? kbi_sys_now() : 0;
	struct nodes all = { NULL, 0 };

	if (wait == NULL || !find_nodes(l, &all)) {
		free(wait);
		return NULL;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		wait[i].owner = -1;
		find_own_wait(l, &l->thread[i], &wait[i], now);
		find_call(l, &l->thread[i], &wait[i]);
	}
	for (uint32_t i = 0; i < all.n; i++)
		find_first(&all, &all.node[i]);
	find_objects(l, &all, wait);
	look_descriptors(l, wait);
	find_joiners(l, wait);
	for (uint32_t i = 0; i < l->n; i++)
		if (wait[i].what == NULL && wait[i].timed)
			wait[i].what = "time";
	free(all.node);
	return wait;
}

static const char *call_name(uint64_t number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if ((uint64_t)calls[i].number == number)
			return calls[i].name;
	return NULL;
}

const char *look_words(const struct look_wait *w, char *to, size_t size)
{
	int n = 0;

	if (w->what == NULL)
		n = snprintf(to, size, "%s", "");
	else if (strcmp(w->what, "call") == 0 && call_name(w->object) != NULL)
		n = snprintf(to, size, "system call %s", call_name(w->object));
	else if (strcmp(w->what, "call") == 0)
		n = snprintf(to, size, "system call %" PRIu64, w->object);
	else if (strcmp(w->what, "end") == 0)
		n = snprintf(to, size, "end of #%" PRId64, w->owner);
	else if (strcmp(w->what, "poll") == 0)
		n = snprintf(to, size, "poll of %u descriptors, first %" PRIu64, w->all, w->object);
	else if (strstr(w->what, "descriptor") != NULL)
		n = snprintf(to, size, "%s %" PRIu64, w->what, w->object);
	else if (w->object == 0)
		n = snprintf(to, size, "%s", w->what);
	else if (w->owner >= 0)
		n = snprintf(to, size, "%s %#" PRIx64 ", held by #%" PRId64, w->what, w->object, w->owner);
	else if (w->all > 0)
		n = snprintf(to, size, "%s %#" PRIx64 ", %u of %u there", w->what, w->object,
			w->some, w->all);
	else
		n = snprintf(to, size, "%s %#" PRIx64, w->what, w->object);
	if (w->timed && n >= 0 && (size_t)n < size)
		snprintf(to + n, size - (size_t)n, "%swakes in %.1f s", n > 0 ? ", " : "", w->left);
	return to;
}
