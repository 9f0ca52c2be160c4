/* kb_io_buffers: threads read and write a file through buffers that the kernel knows, at any
 * place in them, beside threads whose bytes lie in no buffer or half in a buffer, with O_DIRECT
 * where the file system has it; the bytes read are the bytes written. Buffers are taken away
 * while they are in use, and made known again. Errors are reported. Without io_uring all but
 * kb_io_buffers itself goes on.
 * matrix: vps=1,2 sched=rotator,steal */
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/child.h"
#include "test.h"

enum {
	THREADS = 8,
	PAGE = 4096,
	PAGES = 64,
	ROUNDS = 60,
	ROOM = 4 /* pages of a thread's buffer */
};

static int file;
/* a buffer for each thread; the last two together are made known as a single buffer */
static char *memory;
static bool changes;

static char *buffer_of(int i) { return memory + (size_t)i * ROOM * PAGE; }

static int make_known(void)
{
	struct iovec v[THREADS];
	int n = 0;

	/* the buffers of the first two threads are not made known */
	for (int i = 2; i < THREADS - 2; i++)
		v[n++] = (struct iovec){ buffer_of(i), ROOM * PAGE };
	v[n++] = (struct iovec){ buffer_of(THREADS - 2), 2 * ROOM * PAGE };
	return kb_io_buffers(v, (unsigned)n);
}

static void open_file(int flags)
{
	char name[] = "kochab-buffers-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	file = kb_io_open(name, O_RDWR | O_CLOEXEC | flags, 0, KB_FOREVER);
	if (file < 0) /* O_DIRECT is not possible on this file system */
		file = kb_io_open(name, O_RDWR | O_CLOEXEC, 0, KB_FOREVER);
	CHECK(file >= 0);
	CHECK_EQ(unlink(name), 0);
	close(fd);
}

static bool is_page(const char *p, unsigned page, int version)
{
	for (int i = 0; i < PAGE; i++)
		if (p[i] != (char)((unsigned)i + page * 7 + (unsigned)version))
			return false;
	return true;
}

static void fill_page(char *p, unsigned page, int version)
{
	for (int i = 0; i < PAGE; i++)
		p[i] = (char)((unsigned)i + page * 7 + (unsigned)version);
}

/* Each thread has pages of its own. */
static void *works(void *arg)
{
	int me = (int)(intptr_t)arg, version[PAGES / THREADS] = { 0 };
	uint64_t rand = test_seed() + (uint64_t)me;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned own = (unsigned)(test_rand(&rand) % (PAGES / THREADS)),
			page = own * THREADS + (unsigned)me;
		/* thread 2's last page and thread 3's first page are in two buffers:
		 * that counts as no buffer */
		char *p = buffer_of(me) + (me == 2 && i % 4 == 3 ? ROOM * PAGE - PAGE : (i % ROOM) * PAGE);
		off_t at = (off_t)page * PAGE;

		if (test_rand(&rand) % 2) {
			fill_page(p, page, ++version[own]);
			CHECK_EQ(kb_io_pwrite(file, p, PAGE, at, KB_FOREVER), PAGE);
		}
		memset(p, 0xee, PAGE);
		CHECK_EQ(kb_io_pread(file, p, PAGE, at, kb_now() + 60000000000u), PAGE);
		CHECK(is_page(p, page, version[own]));
		if (changes && me == 0 && i % 8 == 0)
			CHECK_EQ(i % 16 ? make_known() : kb_io_buffers(NULL, 0), 0);
	}
	return NULL;
}

static void all_work(void)
{
	kb_thread_t t[THREADS];

	for (unsigned page = 0; page < PAGES; page++) {
		fill_page(memory, page, 0);
		CHECK_EQ(kb_io_pwrite(file, memory, PAGE, (off_t)page * PAGE, KB_FOREVER), PAGE);
	}
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, works, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	kb_io_close(file);
}

static void edges(void)
{
	struct iovec many = { buffer_of(0), PAGE };
	char *half = buffer_of(THREADS - 1) + ROOM * PAGE - PAGE / 2;
	static char other[PAGE];

	CHECK_EQ(kb_io_buffers(&many, 100000), EINVAL);
	CHECK_EQ(kb_io_buffers(NULL, 1), EINVAL);
	CHECK_EQ(kb_io_buffers(&many, 1), EBUSY);
	CHECK_EQ(kb_io_pread(-1, buffer_of(3), PAGE, 0, KB_FOREVER), -EBADF);
	open_file(0);
	CHECK_EQ(kb_io_pwrite(file, memset(other, 'o', PAGE), PAGE, 0, KB_FOREVER), PAGE);
	CHECK_EQ(kb_io_pread(file, half, PAGE / 2, 10, KB_FOREVER), PAGE / 2);
	CHECK(memcmp(half, other, PAGE / 2) == 0);
	CHECK_EQ(kb_io_pread(file, buffer_of(3) + 1, 3 * PAGE, 0, KB_FOREVER), PAGE);
	CHECK_EQ(kb_io_pread(file, buffer_of(3), PAGE, PAGE, KB_FOREVER), 0);
	kb_io_close(file);
}

static void without(void *unused)
{
	struct iovec v = { memory, PAGE };

	(void)unused;
	CHECK_EQ(kb_io_buffers(&v, 1), ENOSYS);
	open_file(0);
	all_work();
}

int main(void)
{
	static struct child c;
	int e;

	test_seed(); /* before there are threads */
	memory = aligned_alloc(PAGE, (size_t)THREADS * ROOM * PAGE);
	CHECK(memory != NULL);
	setenv("KOCHAB_IO_URING", "0", 1);
	child_run(&c, without, NULL);
	child_exited(&c, 0);
	unsetenv("KOCHAB_IO_URING");
	e = make_known();
	if (e == ENOSYS || e == ENOMEM)
		SKIP("no io_uring here, or no memory that may be locked");
	CHECK_EQ(e, 0);
	for (int direct = 0; direct < 2; direct++) {
		open_file(direct ? O_DIRECT : 0);
		all_work();
	}
	edges();
	CHECK_EQ(kb_io_buffers(NULL, 0), 0);
	CHECK_EQ(kb_io_buffers(NULL, 0), ENXIO);
	changes = true;
	open_file(O_DIRECT);
	CHECK_EQ(make_known(), 0);
	all_work();
	return 0;
}
