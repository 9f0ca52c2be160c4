/* space/file, thing, queue, recover: spaces that a process has written to. Each child attaches to a
 * space, uses all objects in it with deadlines, and ends by itself, soon: whatever the space
 * contains, calls fail at most. First positions that would lead out of the space, in a circle or to
 * a lock that is never released, then random numbers.
 * matrix: none
 * timeout: 120
 * sleeps: yes */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "space/layout.h"
#include "space/life.h"
#include "space/hostile.h"

/* SOON_MS: where no lock has a holder that lives */
enum { MOST_MS = 20000, SOON_MS = 9000, RANDOM_MS = 5000, LIGHT = 12 };

static struct image {
	uint64_t bytes;
	char *at; /* of the file in its first state */
} image;
static char path[128];

static void make_image(void)
{
	struct stat st;
	uint64_t element[2] = { 1, 2 };
	int fd;
	pid_t pid;

	snprintf(path, sizeof path, "/dev/shm/test.hostile.%d", getpid());
	unlink(path);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK_EQ(kb_space_create(&a.s, path, &(kb_space_config_t){ .limit = 4 << 20 }), 0);
		CHECK_EQ(open_all(), 0);
		CHECK_EQ(kb_space_chan_send(a.chan, element, 0), 0);
		CHECK_EQ(kb_space_sem_wait(a.sem, 0), 0);
		CHECK_EQ(kb_space_sem_wait(a.sem, in_ms(1)), ETIMEDOUT); /* so that there are records */
		CHECK_EQ(kb_space_sem_post(a.sem), 0);
		_exit(0); /* the process dies: the next process to attach cleans up */
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	image.bytes = (uint64_t)st.st_size;
	image.at = malloc(image.bytes);
	CHECK_EQ(read(fd, image.at, image.bytes), image.bytes);
	close(fd);
}

static void gone(void)
{
	unlink(path);
}

static struct kbi_space_head *head(char *m)
{
	return (struct kbi_space_head *)(void *)m;
}

static struct kbi_space_thing *thing(char *m, const char *name)
{
	uint64_t at = a_load_rlx(&head(m)->things);

	while (at && strcmp(((struct kbi_space_thing *)(void *)(m + at))->name, name))
		at = a_load_rlx(&((struct kbi_space_thing *)(void *)(m + at))->next);
	CHECK(at);
	return (struct kbi_space_thing *)(void *)(m + at);
}

static struct kbi_space_proc *entry(char *m, unsigned slot)
{
	return (struct kbi_space_proc *)(void *)(m + KBI_SPACE_TABLE) + slot;
}

/* Uses so many threads that boards are used. */
static void use_light_ones(void)
{
	kb_thread_t t[LIGHT];
	int n = 0;

	if (kb_init())
		return;
	while (n < LIGHT && kb_thread_create(&t[n], NULL, use_light, NULL) == 0)
		n++;
	while (n > 0)
		kb_thread_join(t[--n], NULL);
}

/* expected: the result of attaching, -1: any result. */
static void attach_and_use(bool light, int expected)
{
	int e = kb_space_attach(&a.s, path, 0);

	if (expected >= 0)
		CHECK_EQ(e, expected);
	if (e)
		return;
	open_all();
	light ? use_light_ones() : use_all();
	kb_space_detach(a.s);
}

/* ---- locks that are taken after it has attached ---------------------------------------------- */

static uint64_t took_ms(int (*call)(uint64_t deadline), uint64_t deadline, int expected)
{
	uint64_t began = test_now_ns();

	CHECK_EQ(call(deadline), expected);
	return (test_now_ns() - began) / MS;
}

static int posts(uint64_t unused)
{
	(void)unused;
	return kb_space_sem_post(a.sem);
}

static int waits(uint64_t deadline) { return kb_space_sem_wait(a.sem, deadline); }

/* A lock of a living process is waited for some seconds, where a call has no deadline; a lock of no
 * process a shorter time; else until the deadline. */
static void stuck(void)
{
	enum { SECOND = 1000, LATE_MS = 3000 };
	struct kbi_space_hold *h;
	uint64_t took;

	CHECK_EQ(kb_space_attach(&a.s, path, 0), 0);
	CHECK_EQ(open_all(), 0);
	h = (struct kbi_space_hold *)a.sem;
	a_store_rlx(&h->t->lock, a.s->slot + 1);
	took = took_ms(posts, 0, EPROTO);
	CHECK(took >= 5 * SECOND && took < 5 * SECOND + LATE_MS);
	took = took_ms(waits, in_ms(WAIT_MS), ETIMEDOUT);
	CHECK(took >= WAIT_MS && took < LATE_MS);
	a_store_rlx(&h->t->lock, 12345);
	took = took_ms(posts, 0, EPROTO);
	CHECK(took >= SECOND && took < SECOND + LATE_MS);
	took = took_ms(waits, in_ms(WAIT_MS), ETIMEDOUT);
	CHECK(took >= WAIT_MS && took < LATE_MS);
	kb_space_detach(a.s);
}

/* ---- mutations ------------------------------------------------------------------------------- */

static void write_image(const char *m)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, m, image.bytes), image.bytes);
	close(fd);
}

/* uses: the child does that instead of all operations. */
static void run_child_that(const char *what, void (*uses)(void), bool light, int expected)
{
	uint64_t began = test_now_ns(), took;
	int status = 0;
	pid_t pid;
	bool is_held = uses || strncmp(what, "random", 6) == 0 || strcmp(what, "locks_live") == 0;
	unsigned most = is_held ? MOST_MS : SOON_MS;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		uses ? uses() : attach_and_use(light, expected);
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (test_now_ns() - began > most * MS) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			fprintf(stderr, "%s: it does not end\n", what);
			exit(1);
		}
		usleep(1000);
	}
	took = (test_now_ns() - began) / MS;
	if (status)
		fprintf(stderr, "%s: ended with %#x after %u ms\n", what, (unsigned)status, (unsigned)took);
	CHECK_EQ(status, 0);
}

static void run_child(const char *what, bool light, int expected)
{
	run_child_that(what, NULL, light, expected);
}

static void limit_wraps(char *m) { head(m)->limit = UINT64_MAX - KBI_SPACE_GAP + 1 + 0xffff; }
static void limit_huge(char *m) { head(m)->limit = UINT64_C(1) << 62; }
static void limit_gap(char *m) { head(m)->limit = -(uint64_t)KBI_SPACE_GAP + 4096; }
static void used_low(char *m) { a_store_rlx(&head(m)->used, 64); }
static void used_odd(char *m) { a_store_rlx(&head(m)->used, a_load_rlx(&head(m)->used) + 1); }
static void chunks_out(char *m)
{
	for (int slot = 0; slot < KBI_SPACE_PROCS; slot++) {
		a_store_rlx(&entry(m, slot)->n_chunks, 3);
		a_store_rlx(&entry(m, slot)->chunk[0], (uint64_t)-4096 * 100);
		a_store_rlx(&entry(m, slot)->chunk[1], UINT64_C(1) << 40);
		a_store_rlx(&entry(m, slot)->chunk[2], 1);
	}
}
static void chunks_many(char *m) { a_store_rlx(&entry(m, 0)->n_chunks, UINT32_MAX); }
static void boards_out(char *m)
{
	for (int vp = 0; vp < KBI_SPACE_VPS; vp++)
		a_store_rlx(&entry(m, 0)->board[vp], (uint64_t)-4096 * 100);
}
/* A board of the dead process belongs to the next process, with marks for which
 * no thread has a place yet. */
static void boards_marked(char *m)
{
	uint64_t at = thing(m, "memory")->buffer;

	memset(m + at, 0xff, sizeof(struct kbi_marks));
	for (int slot = 0; slot < KBI_SPACE_PROCS; slot++)
		for (int vp = 0; vp < KBI_SPACE_VPS; vp++)
			a_store_rlx(&entry(m, slot)->board[vp], at);
}
static void circle(char *m) { a_store_rlx(&thing(m, "chan")->next, a_load_rlx(&head(m)->things)); }
static void to_itself(char *m) { a_store_rlx(&thing(m, "sem")->next, thing(m, "sem")->at); }
static void next_out(char *m) { a_store_rlx(&thing(m, "sem")->next, UINT64_C(1) << 45); }
static void first_out(char *m) { a_store_rlx(&head(m)->things, (uint64_t)-65536); }
static void place_out(char *m)
{
	thing(m, "chan")->at = UINT64_C(1) << 40;
	thing(m, "sem")->at = 64;
	thing(m, "event")->at = (uint64_t)-1;
}
static void name_long(char *m) { memset(thing(m, "memory")->name, 'x', KBI_SPACE_NAME + 8); }
static void element_big(char *m) { thing(m, "chan")->size = 2048; }
static void capacity_none(char *m) { thing(m, "chan")->capacity = 0; }
static void buffer_out(char *m)
{
	thing(m, "chan")->buffer = UINT64_C(1) << 40;
	thing(m, "memory")->buffer = (uint64_t)-65536;
}
static void buffer_beyond(char *m) { thing(m, "memory")->buffer = (4 << 20) - 64; }
static void chan_odd(char *m) { thing(m, "chan")->chan.tail += 1000; }
static void each_lock(char *m, uint32_t value)
{
	uint64_t at = a_load_rlx(&head(m)->things);

	for (; at; at = a_load_rlx(&((struct kbi_space_thing *)(void *)(m + at))->next))
		a_store_rlx(&((struct kbi_space_thing *)(void *)(m + at))->lock, value);
}
/* locks of processes that do not exist; of this process, which lives and does not release them */
static void locks_odd(char *m) { each_lock(m, 12345); }
static void locks_last(char *m) { each_lock(m, 64); }
static void locks_live(char *m)
{
	struct kbi_space_proc *p = entry(m, 5);

	a_store_rlx(&p->pid, (uint32_t)getpid());
	a_store_rlx(&p->start, kbi_space_life_start((uint32_t)getpid()));
	a_store_rlx(&p->state, KBI_SPACE_ALIVE);
	each_lock(m, 6);
}
static void queue_circle(char *m)
{
	/* two records of the dead process, each the successor of the other */
	struct kbi_space_thing *t = thing(m, "sem");
	struct kbi_space_record *r =
		(struct kbi_space_record *)(void *)(m + a_load_rlx(&entry(m, 0)->chunk[0]));

	a_store_rlx(&t->queue[0].head, 1 << 16);
	t->queue[0].tail = 1 << 16 | 1;
	for (unsigned i = 0; i < 2; i++) {
		a_store_rlx(&r[i].linked, 1);
		a_store_rlx(&r[i].next, 1 << 16 | !i);
		a_store_rlx(&r[i].prev, 1 << 16 | !i);
		r[i].queue = 77777;
	}
}
static void how_chained(char *m)
{
	struct kbi_space_record *r =
		(struct kbi_space_record *)(void *)(m + a_load_rlx(&entry(m, 0)->chunk[0]));

	a_store_rlx(&thing(m, "event")->how, 4u << 28 | 1);
	a_store_rlx(&r[1].how, 4u << 28 | 1);
	a_store_rlx(&thing(m, "event")->event.word, 9);
}
static void pids_odd(char *m)
{
	static const uint32_t pid[] = { 0, UINT32_MAX, 1, 1u << 31, INT32_MAX };

	for (unsigned i = 0; i < KBI_SPACE_PROCS; i++) {
		a_store_rlx(&entry(m, i)->pid, pid[i % 5]);
		a_store_rlx(&entry(m, i)->start, i % 2 ? 0 : 77);
		a_store_rlx(&entry(m, i)->state, KBI_SPACE_ALIVE);
	}
}
/* Dead processes with as many records as possible, whose wakers seem to have died before they
 * called the kernel. */
static void records_many(char *m)
{
	uint64_t at = a_load_rlx(&entry(m, 0)->chunk[0]);
	struct kbi_space_record *r = (struct kbi_space_record *)(void *)(m + at);

	for (unsigned i = 0; i < KBI_SPACE_RECORDS; i++)
		a_store_rlx(&r[i].how, (uint32_t)KBI_SPACE_SELF << 28);
	pids_odd(m);
	for (unsigned slot = 0; slot < KBI_SPACE_PROCS; slot++) {
		a_store_rlx(&entry(m, slot)->pid, 0);
		a_store_rlx(&entry(m, slot)->n_chunks, KBI_SPACE_CHUNKS);
		for (unsigned i = 0; i < KBI_SPACE_CHUNKS; i++)
			a_store_rlx(&entry(m, slot)->chunk[i], at);
	}
}
static void file_lock(char *m) { memset((char *)&head(m)->crashes + 4, 0x5a, 16); }

static const struct {
	const char *name;
	void (*change)(char *m);
	int expected;
} mutations[] = {
#define M(f) { #f, f, -1 }
#define BAD(f) { #f, f, EBADMSG }
	BAD(limit_wraps), BAD(limit_huge), BAD(limit_gap), BAD(used_low), BAD(used_odd), M(chunks_out),
	M(chunks_many), M(boards_out), M(boards_marked), M(circle), M(to_itself), M(next_out),
		M(first_out),
	M(place_out), M(name_long), M(element_big), M(capacity_none), M(buffer_out), M(buffer_beyond),
	M(chan_odd), M(locks_odd), M(locks_last), M(locks_live), M(queue_circle), M(how_chained),
		M(pids_odd), M(records_many), M(file_lock),
};

/* Changes words in use, mostly to small numbers, or to values near the old value. */
static void change_at_random(char *m, uint64_t *seed)
{
	uint64_t used = a_load_rlx(&head(m)->used) / 4;
	unsigned n = 1 + test_rand(seed) % 8;

	while (n--) {
		uint64_t r = test_rand(seed), where = test_rand(seed);
		/* in the head, an entry of the table, or allocated bytes */
		uint64_t i = where % 4 == 0 ? where / 4 % 40 :
			where % 4 == 1 ? KBI_SPACE_TABLE / 4 + where / 4 % 400 :
			KBI_SPACE_FIRST / 4 + where / 4 % (used - KBI_SPACE_FIRST / 4);
		uint32_t *word = (uint32_t *)(void *)m + i;

		*word = r % 5 == 0 ? (uint32_t)(r >> 32) :
			r % 5 == 1 ? (uint32_t)(r >> 32) % 70 : r % 5 == 2 ? *word + 64 :
			r % 5 == 3 ? ~UINT32_C(0) : *word ^ 1u << (r >> 32) % 32;
	}
}

int main(void)
{
	uint64_t seed = test_seed() + 1, until;
	const char *only = getenv("ONLY_MUTATION");
	char *m, what[64];

	make_image();
	atexit(gone);
	m = malloc(image.bytes);
	for (unsigned i = 0; i < sizeof mutations / sizeof *mutations; i++) {
		if (only && strcmp(only, mutations[i].name))
			continue;
		for (int light = 0; light < 2; light++) {
			memcpy(m, image.at, image.bytes);
			mutations[i].change(m);
			write_image(m);
			run_child(mutations[i].name, light, mutations[i].expected);
		}
	}
	write_image(image.at);
	run_child_that("stuck", stuck, false, 0);
	until = test_now_ns() + RANDOM_MS * MS;
	for (unsigned n = 0; !only && test_now_ns() < until; n++) {
		memcpy(m, image.at, image.bytes);
		change_at_random(m, &seed);
		write_image(m);
		snprintf(what, sizeof what, "random number %u", n);
		run_child(what, n % 2, -1);
	}
	return 0;
}
