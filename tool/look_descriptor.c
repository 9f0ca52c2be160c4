/* tool/look_descriptor.c - finds the descriptors that threads of another process wait for. A
 * waiter's records (io/ready.c) lie on its stack, near its stack pointer, a record for each
 * descriptor; those of a long poll lie in memory of their own, to which a word of the stack points.
 * Words are records if they name their thread, look like links, and tell a descriptor and events
 * that have not come. Contract in look.h. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/deadline.h"
#include "look.h"

enum {
	WINDOW = 1024, /* of a stack, from its stack pointer */
	WORDS = WINDOW / 8,
	PAGE = 4096,
	/* words: two links, the thread, descriptor and events; whether it only looks (a byte), the
	 * records from this one on (16 bits), and the verdict */
	RECORD = 5,
	CHUNK = 64 * RECORD,
	MOST_DESCRIPTORS = 1 << 26,
	MOST_RECORDS = 1 << 16,
	ROW_MOST = UINT16_MAX, /* so many records or more */
	READS = EPOLLIN | EPOLLPRI | EPOLLRDHUP | POLLRDNORM | POLLRDBAND,
	WRITES = EPOLLOUT | POLLWRNORM | POLLWRBAND,
};

/* A window of a thread's stack. */
struct window {
	uint64_t thread; /* the address of its descriptor */
	uint64_t at, rest; /* rest: of its deadline's record, 0 */
	uint64_t word[WORDS];
};

static bool is_link(uint64_t x)
{
	return x == 0 || (x >= 65536 && x < UINT64_C(1) << 56 && x % 8 == 0);
}

static uint32_t events_at(const uint64_t *record)
{
	return (uint32_t)(record[3] >> 32);
}

/* Returns the number of records from this one on. */
static uint32_t row_length(const uint64_t *record)
{
	uint32_t row = record[4] >> 16 & ROW_MOST;

	return row == ROW_MOST ? MOST_RECORDS : row;
}

/* Returns whether the words are a record. first: before the first record any words may stand, so
 * more is required of it. poll may ask for no events. */
static bool is_record(const uint64_t *record, uint64_t thread, bool first)
{
	enum { MORE = EPOLLERR | EPOLLHUP };
	uint32_t events = events_at(record);

	return record[2] == thread && is_link(record[0]) && is_link(record[1]) &&
		(uint32_t)record[3] < MOST_DESCRIPTORS &&
		(record[4] & 0xff) <= 1 && row_length(record) > 0 && record[4] >> 32 == 0 &&
		events <= UINT16_MAX && (!first ||
		((events & (READS | WRITES)) != 0 && (events & ~(uint32_t)(READS | WRITES | MORE)) == 0));
}

/* Returns the number of records among the words that belong to a row of at most `row`; poll leaves
 * out records of negative numbers, but not their places. */
static uint32_t count_records(const uint64_t *word, unsigned words, uint32_t row, uint64_t thread)
{
	uint32_t n = 0;

	for (unsigned k = 0; k + RECORD <= words && row > 0; k += RECORD, row--)
		n += is_record(word + k, thread, false);
	return n;
}

/* Returns the number of records of a row in memory of its own. */
static uint32_t count_far(const struct look *l, uint64_t at, uint32_t row, uint64_t thread)
{
	uint64_t word[CHUNK];
	uint32_t n = 0;

	for (uint32_t i = 0; i < row; i += CHUNK / RECORD) {
		size_t left = PAGE - at % PAGE;

		memset(word, 0, sizeof(word));
		if (!look_read(l, at, word, sizeof(word)) &&
			(left >= sizeof(word) || !look_read(l, at, word, left)))
			break;
		n += count_records(word, CHUNK, row - i, thread);
		at += sizeof(word);
	}
	return n;
}

static bool is_epoll(const struct look *l, uint32_t fd)
{
	static const char epoll[] = "anon_inode:[eventpoll]";
	char path[64], to[64];
	ssize_t n;

	if (l->core >= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%u", l->pid, fd);
	n = readlink(path, to, sizeof(to));
	return n == sizeof(epoll) - 1 && memcmp(to, epoll, sizeof(epoll) - 1) == 0;
}

static void describe_descriptor_wait(const struct look *l, struct look_wait *w,
	const uint64_t *record, uint32_t n)
{
	uint32_t events = events_at(record);

	w->object = (uint32_t)record[3];
	w->all = n > 1 ? n : 0;
	if (n > 1)
		w->what = "poll";
	else if (is_epoll(l, (uint32_t)record[3]))
		w->what = "epoll descriptor";
	else if (events & READS)
		w->what = events & WRITES ? "descriptor" : "reading descriptor";
	else
		w->what = "writing descriptor";
}

static bool find_near(const struct look *l, const struct window *in, struct look_wait *w)
{
	for (unsigned k = 0; k + RECORD <= WORDS; k++) {
		/* a deadline's record has its thread as its second word, so it begins like this one in its
		 * middle */
		if (in->at + 8 * (k + 1) == in->rest || !is_record(in->word + k, in->thread, true))
			continue;
		describe_descriptor_wait(l, w, in->word + k,
			count_records(in->word + k, WORDS - k, row_length(in->word + k), in->thread));
		return true;
	}
	return false;
}

static void find_far(const struct look *l, const struct window *in, struct look_wait *w)
{
	uint64_t record[RECORD];

	for (unsigned k = 0; k < WORDS; k++) {
		uint64_t at = in->word[k];

		if (at == 0 || !is_link(at) || at % PAGE != 0 ||
			!look_read(l, at, record, sizeof(record)) || !is_record(record, in->thread, true))
			continue;
		describe_descriptor_wait(l, w, record, count_far(l, at, row_length(record), in->thread));
		return;
	}
}

static bool read_window(const struct look *l, const struct kb_thread *t, struct window *in)
{
	size_t left;

	in->at = look_stack(t);
	in->thread = look_address(l, t);
	in->rest = kbi_task_is(&t->task, KBI_TASK_TIMED) ? (uintptr_t)t->rest : 0;
	left = PAGE - in->at % PAGE;
	memset(in->word, 0, sizeof(in->word));
	return in->at != 0 && (look_read(l, in->at, in->word, WINDOW) ||
			       (left < WINDOW && look_read(l, in->at, in->word, left)));
}

void look_descriptors(const struct look *l, struct look_wait *wait)
{
	struct window in;

	for (uint32_t i = 0; i < l->n; i++)
		if (wait[i].what == NULL && look_kind(&l->thread[i]) == KBI_TASK_WAITING &&
		    read_window(l, &l->thread[i], &in) && !find_near(l, &in, &wait[i]))
			find_far(l, &in, &wait[i]);
}
