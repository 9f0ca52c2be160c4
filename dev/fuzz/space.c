/* The file of a space. The input is a list of steps: words of the file are changed before this process attaches, and then
 * between its calls, of which there is one step each, with deadlines that have come or come soon; or at random by another
 * thread while some calls run, some of them of lightweight threads, so many that boards are used. Whatever stands in the
 * file: no access leaves the space, an element that is received lies within its 16 bytes, calls end, and what the command
 * shows of the file has no control characters. */
#include <fcntl.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kochab/kochab.h>
#include <kochab/space.h>

#include "space/layout.h"
#include "tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_STEPS = 48, AT_ONCE = 4, LIGHT = 12, LIGHT_BYTES = 4, ELEMENT = 16, SOON_NS = 200000, THINGS = 9, KEPT = 8 };

static struct image {
	size_t bytes;
	char *at; /* the file as it was */
	uint64_t thing[THINGS];
	unsigned things;
	uint64_t records; /* of the process that made it */
} image;
static char path[256];

/* What the steps work on; what was not opened is NULL. */
static struct all {
	kb_space_t *s;
	char *m; /* the file, mapped beside the library */
	int fd;
	kb_space_chan_t *chan;
	kb_space_event_t *event;
	kb_space_sem_t *sem;
	kb_space_mutex_t *mutex;
	kb_space_cond_t *cond;
	kb_space_rwlock_t *lock;
	kb_space_barrier_t *barrier;
	void *memory;
} a;

static __thread struct input {
	const uint8_t *at, *end;
} in;

/* Changes words by itself while it is on. */
static struct scribbler {
	pthread_t thread;
	pthread_mutex_t lock; /* held by whichever of the two runs */
	pthread_cond_t begin;
	uint32_t on;
	uint64_t seed;
} scribbler = { .lock = PTHREAD_MUTEX_INITIALIZER, .begin = PTHREAD_COND_INITIALIZER };

void tool_say(const char *format, ...)
{
	(void)format;
}

static uint8_t byte(void)
{
	return in.at < in.end ? *in.at++ : 0;
}

static uint32_t number(unsigned bytes)
{
	uint32_t n = 0;

	while (bytes--)
		n = n << 8 | byte();
	return n;
}

/* ---- the file as it is at first ------------------------------------------------------------------------------- */

static void open_all(void)
{
	unsigned both = KB_SPACE_RECV | KB_SPACE_SEND;

	kb_space_chan_open(a.s, "chan", ELEMENT, 4, both, &a.chan);
	kb_space_event_open(a.s, "event", both, &a.event);
	kb_space_sem_open(a.s, "sem", 1, &a.sem);
	kb_space_mutex_open(a.s, "mutex", &a.mutex);
	kb_space_cond_open(a.s, "cond", &a.cond);
	kb_space_rwlock_open(a.s, "lock", &a.lock);
	kb_space_barrier_open(a.s, "barrier", 2, &a.barrier);
	kb_space_memory_open(a.s, "memory", 1000, &a.memory);
}

/* By a process that dies: the first to attach cleans up. */
static void make_in_child(void)
{
	uint64_t element[2] = { 1, 2 };

	if (kb_space_create(&a.s, path, &(kb_space_config_t){ .limit = 1 << 20 }))
		_exit(1);
	open_all();
	kb_space_chan_send(a.chan, element, 0);
	kb_space_sem_wait(a.sem, 0);
	kb_space_sem_wait(a.sem, kb_now() + SOON_NS); /* so there are records */
	_exit(0);
}

static void note_places(void)
{
	uint64_t at = a_load_rlx(&((struct kbi_space_head *)(void *)image.at)->things);

	while (at && image.things < THINGS) {
		image.thing[image.things++] = at;
		at = a_load_rlx(&((struct kbi_space_thing *)(void *)(image.at + at))->next);
	}
	image.records = a_load_rlx(&((struct kbi_space_proc *)(void *)(image.at + KBI_SPACE_TABLE))->chunk[0]);
}

static void gone(void)
{
	unlink(path);
}

static void make_image(void)
{
	const char *folder = getenv("FUZZ_FOLDER");
	struct stat st;
	int fd, status;
	pid_t pid;

	snprintf(path, sizeof path, "%s/space.%d", folder ? folder : "/dev/shm", (int)getpid());
	setenv("KOCHAB_VPS", "1", 1);
	pid = fork();
	if (pid == 0)
		make_in_child();
	if (waitpid(pid, &status, 0) != pid || status)
		abort();
	atexit(gone);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		abort();
	image.bytes = (size_t)st.st_size;
	image.at = malloc(image.bytes);
	if (read(fd, image.at, image.bytes) != (ssize_t)image.bytes)
		abort();
	close(fd);
	note_places();
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* A word in the head, an entry of the table, an object, a record, or anywhere. */
static uint64_t place(void)
{
	unsigned area = byte(), which = area / 8;
	uint64_t at;

	switch (area % 8) {
	case 0: at = number(1) * 4 % sizeof(struct kbi_space_head); break;
	case 1: case 2:
		at = KBI_SPACE_TABLE + number(2) * 4 % sizeof(struct kbi_space_proc);
		at += area % 8 == 1 ? which * sizeof(struct kbi_space_proc) : 0;
		break;
	case 3: at = image.records + number(2) * 4 % (sizeof(struct kbi_space_record) * 4); break;
	case 4: at = number(3) * 4; break;
	default: at = image.thing[which % image.things] + number(1) * 4 % sizeof(struct kbi_space_thing); break;
	}
	return at % image.bytes / 4 * 4;
}

static void change_word(void)
{
	uint32_t *word = (uint32_t *)(void *)(a.m + place()), old = __atomic_load_n(word, __ATOMIC_RELAXED), new = 0;
	unsigned kind = byte();

	switch (kind % 8) {
	case 0: new = number(4); break;
	case 1: new = number(1); break;
	case 2: new = old + number(1); break;
	case 3: new = old - number(1); break;
	case 4: new = old ^ 1u << kind / 8; break;
	case 5: new = ~UINT32_C(0); break;
	case 6: new = (uint32_t)(image.thing[kind / 8 % image.things] + number(1) * 4); break;
	default: new = number(1) << 20 | number(1); break;
	}
	__atomic_store_n(word, new, __ATOMIC_RELAXED);
}

static uint64_t deadline(void)
{
	return byte() % 4 ? 0 : kb_now() + SOON_NS;
}

static void use_chan(unsigned what)
{
	struct { uint64_t word[2], guard[2]; } e = { { 1, 2 }, { 7, 7 } };
	kb_space_case_t c[3] = {
		{ .op = KB_SELECT_RECV, .chan = a.chan, .element = e.word },
		{ .op = KB_SELECT_SEND, .chan = a.chan, .element = e.word },
		{ .op = KB_SELECT_EVENT, .event = a.event },
	};
	size_t chosen;

	if (!a.chan)
		return;
	switch (what % 5) {
	case 0: kb_space_chan_recv(a.chan, e.word, deadline()); break;
	case 1: kb_space_chan_send(a.chan, e.word, deadline()); break;
	case 2: kb_space_select(c, a.event ? 3 : 2, deadline(), &chosen); break;
	case 3: kb_space_chan_length(a.chan); break;
	default: kb_space_chan_close(a.chan, 1 + byte() % 3); break;
	}
	if (e.guard[0] != 7 || e.guard[1] != 7)
		abort();
}

static void use_event(unsigned what)
{
	uint64_t value;

	if (!a.event)
		return;
	switch (what % 3) {
	case 0: kb_space_event_notify(a.event, what); break;
	case 1: kb_space_event_wait(a.event, &value, deadline()); break;
	default: kb_space_event_close(a.event, 1 + byte() % 3); break;
	}
}

static void use_counts(unsigned what)
{
	if (what % 8 < 3 && a.sem)
		what % 2 ? (void)kb_space_sem_post(a.sem) : (void)kb_space_sem_wait(a.sem, deadline());
	else if (what % 8 == 3 && a.sem)
		kb_space_sem_value(a.sem);
	else if (what % 8 < 7 && a.barrier)
		kb_space_barrier_wait(a.barrier, deadline());
	else if (a.barrier)
		kb_space_barrier_reset(a.barrier, byte() % 4);
}

static void use_locks(unsigned what)
{
	if (what % 8 < 2 && a.mutex)
		what % 2 ? (void)kb_space_mutex_unlock(a.mutex) : (void)kb_space_mutex_lock(a.mutex, deadline());
	else if (what % 8 == 2 && a.mutex)
		kb_space_mutex_consistent(a.mutex);
	else if (what % 8 == 3 && a.cond)
		byte() % 2 ? (void)kb_space_cond_signal(a.cond) : (void)kb_space_cond_broadcast(a.cond);
	else if (what % 8 == 4 && a.lock)
		kb_space_rwlock_rdlock(a.lock, deadline());
	else if (what % 8 == 5 && a.lock)
		kb_space_rwlock_wrlock(a.lock, deadline());
	else if (what % 8 == 6 && a.lock)
		kb_space_rwlock_unlock(a.lock);
	else if (a.lock)
		kb_space_rwlock_consistent(a.lock);
}

static void use_space(unsigned what)
{
	char name[8];
	void *memory;
	kb_space_info_t info;

	snprintf(name, sizeof name, "new%u", what % 4);
	switch (what % 3) {
	case 0: open_all(); break;
	case 1:
		if (kb_space_memory_open(a.s, name, 1 + number(2), &memory) == 0)
			memset(memory, 0x55, 1);
		break;
	default: kb_space_info(a.s, &info); break;
	}
	if (a.memory)
		memset(a.memory, what & 255, 1000);
}

static void inspect(void)
{
	char *argv[] = { "space", "inspect", path, NULL }, *text = NULL;
	FILE *before = stdout;
	size_t n = 0;

	stdout = open_memstream(&text, &n);
	tool_space(3, argv);
	fclose(stdout);
	stdout = before;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i], next = (unsigned char)text[i + 1];

		if ((c < ' ' && c != '\n') || c == 0x7f || (c == 0xc2 && next < 0xa0)) /* also as UTF-8 has them */
			abort();
	}
	free(text);
}

static void *scribble(void *unused)
{
	uint8_t bytes[12];

	pthread_mutex_lock(&scribbler.lock);
	for (;;) {
		while (!__atomic_load_n(&scribbler.on, __ATOMIC_RELAXED))
			pthread_cond_wait(&scribbler.begin, &scribbler.lock);
		for (; __atomic_load_n(&scribbler.on, __ATOMIC_RELAXED); usleep(1)) {
			for (unsigned i = 0; i < sizeof bytes; i++) {
				scribbler.seed = scribbler.seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
				bytes[i] = (uint8_t)(scribbler.seed >> 56);
			}
			in = (struct input){ bytes, bytes + sizeof bytes };
			change_word();
		}
	}
	return unused;
}

static void begin_scribbling(uint64_t seed)
{
	if (!scribbler.thread && pthread_create(&scribbler.thread, NULL, scribble, NULL))
		abort();
	pthread_mutex_lock(&scribbler.lock);
	scribbler.seed = seed;
	__atomic_store_n(&scribbler.on, 1, __ATOMIC_RELAXED);
	pthread_cond_signal(&scribbler.begin);
	pthread_mutex_unlock(&scribbler.lock);
}

/* It has changed its last word. */
static void end_scribbling(void)
{
	__atomic_store_n(&scribbler.on, 0, __ATOMIC_RELAXED);
	pthread_mutex_lock(&scribbler.lock);
	pthread_mutex_unlock(&scribbler.lock);
}

/* ---- an input --------------------------------------------------------------------------------------------------- */

static bool is_change(uint8_t step)
{
	return step % 16 < 6;
}

static void call(uint8_t step)
{
	unsigned what = step / 16;

	switch (step % 16) {
	case 6: case 7: use_chan(what); break;
	case 8: use_event(what); break;
	case 9: case 10: use_counts(what); break;
	case 11: case 12: use_locks(what); break;
	case 13: use_space(what); break;
	case 14: inspect(); break;
	default: break;
	}
}

/* Its bytes are those of its kernel thread, too, and so of other threads there, once it has waited. */
static void *call_light(void *bytes)
{
	in = (struct input){ bytes, (uint8_t *)bytes + LIGHT_BYTES };
	call(byte());
	return NULL;
}

static void *call_light_ones(void *bytes)
{
	kb_thread_t t[LIGHT];
	unsigned n = 0;

	while (n < LIGHT && kb_thread_create(&t[n], NULL, call_light, (uint8_t *)bytes + n * LIGHT_BYTES) == 0)
		n++;
	while (n > 0)
		kb_thread_join(t[--n], NULL);
	return NULL;
}

static void begin_light_ones(void)
{
	uint8_t bytes[LIGHT * LIGHT_BYTES];
	kb_thread_t first;

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = byte();
	if (kb_thread_create(&first, NULL, call_light_ones, bytes) == 0)
		kb_thread_join(first, NULL);
}

static void take_step(uint8_t step)
{
	if (is_change(step)) {
		change_word();
	} else if (step % 16 == 15) {
		begin_scribbling(number(2));
		if (step & 16)
			begin_light_ones();
		for (unsigned i = 0; i < AT_ONCE; i++)
			call(byte());
		end_scribbling();
	} else {
		call(step);
	}
}

static void attach_and_use(unsigned steps)
{
	char *spare;
	size_t n;

	if (kb_space_attach(&a.s, path, 0))
		return;
	/* the private gap between this process's record and the file is nobody's */
	n = KBI_SPACE_GAP - sizeof *a.s;
	spare = (char *)a.s + sizeof *a.s;
	ASAN_POISON_MEMORY_REGION(spare, n);
	open_all();
	while (steps-- && in.at < in.end)
		take_step(byte());
	ASAN_UNPOISON_MEMORY_REGION(spare, n);
	if (kb_space_detach(a.s))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned steps = MOST_STEPS;

	if (!image.at)
		make_image();
	in = (struct input){ data, data + size };
	a = (struct all){ .fd = open(path, O_RDWR) };
	if (a.fd < 0 || ftruncate(a.fd, (off_t)image.bytes))
		abort();
	a.m = mmap(NULL, image.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
	if (a.m == MAP_FAILED)
		abort();
	memcpy(a.m, image.at, image.bytes);
	for (; steps && in.at < in.end && is_change(*in.at); steps--)
		take_step(byte());
	inspect();
	attach_and_use(steps);
	munmap(a.m, image.bytes);
	close(a.fd);
	return 0;
}
