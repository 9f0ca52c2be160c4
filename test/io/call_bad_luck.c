/* kb_io_*: a disk that fails, and io_uring forbidden, as `kochab doctor` reports it: EIO reaches
 * the reader, by position, by vector and in a stream, with io_uring and without.
 * matrix: vps=1,2 sched=rotator */
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/child.h"
#include "io/no_uring.h"
#include "test.h"

enum { THREADS = 8 };

/* Memory where nothing is mapped reads like a bad sector. */
static void *reads_bad_sector(void *unused)
{
	char c[2];
	struct iovec v[2] = { { c, 1 }, { c + 1, 1 } };
	int fd = kb_io_open("/proc/self/mem", O_RDONLY | O_CLOEXEC, 0, KB_FOREVER);

	CHECK(fd >= 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(kb_io_read(fd, c, 1, KB_FOREVER), -EIO);
		CHECK_EQ(kb_io_readv(fd, v, 2, KB_FOREVER), -EIO);
		CHECK_EQ(kb_io_pread(fd, c, 1, 0, KB_FOREVER), -EIO);
		CHECK_EQ(kb_io_preadv(fd, v, 2, 0, kb_now() + 1000000000), -EIO);
	}
	CHECK_EQ(kb_io_close(fd), 0);
	return unused;
}

static void bad_sectors(void *unused)
{
	kb_thread_t t[THREADS];

	(void)unused;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, reads_bad_sector, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

/* Forbids io_uring, as in many containers. */
static void asks_the_doctor(void *doctor)
{
	if (!forbid_uring()) {
		printf("no filters here\n");
		exit(0);
	}
	execl(doctor, "kochab", "doctor", (char *)NULL);
	exit(3);
}

int main(void)
{
	static struct child c;
	char *kochab = getenv("KOCHAB_BIN"), *emulator = getenv("RUNNER");

	setenv("KOCHAB_IO_URING", "0", 1);
	child_run(&c, bad_sectors, NULL);
	child_exited(&c, 0);
	unsetenv("KOCHAB_IO_URING");
	if (kochab && access(kochab, X_OK) == 0 && !(emulator && *emulator)) {
		child_run(&c, asks_the_doctor, kochab);
		if (!strstr(c.text, "no filters")) {
			CHECK(WIFEXITED(c.status) && WEXITSTATUS(c.status) != 3);
			CHECK(strstr(c.text, "io_uring") && strstr(c.text, "by body hand-off"));
		}
	}
	bad_sectors(NULL);
	return 0;
}
