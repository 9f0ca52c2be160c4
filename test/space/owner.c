/* space/file, space/space: the files to which a process attaches: its own and root's, or files of
 * the user that it names; regular files only, and no links to them. A process that may only read
 * delays no other process.
 * matrix: none */
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "space/layout.h"
#include "space_test.h"

enum { OTHER = 65534, WAKES = 20, LATE_MS = 10000 };

static char path[128];

/* A space in a file of this process, with a path, to which no process is attached. */
static void make(void)
{
	kb_space_t *s = NULL;

	snprintf(path, sizeof path, "/dev/shm/test.owner.%d", getpid());
	unlink(path);
	CHECK_EQ(kb_space_create(&s, path, NULL), 0);
	CHECK_EQ(kb_space_detach(s), 0);
}

static void gone(void)
{
	unlink(path);
}

static void own(void)
{
	kb_space_t *s = NULL;
	kb_space_info_t info;

	CHECK_EQ(kb_space_attach(&s, path, 0), 0);
	kb_space_info(s, &info);
	CHECK_EQ(info.owner, geteuid());
	CHECK_EQ(kb_space_detach(s), 0);
	CHECK_EQ(kb_space_attach_of(&s, path, 0, geteuid()), 0);
	CHECK_EQ(kb_space_detach(s), 0);
	CHECK_EQ(kb_space_attach_of(&s, path, 0, geteuid() + 1), EPERM);
}

static void links(void)
{
	kb_space_t *s = NULL;
	char link[160];

	snprintf(link, sizeof link, "%s.link", path);
	CHECK_EQ(symlink(path, link), 0);
	CHECK_EQ(kb_space_attach(&s, link, 0), ELOOP);
	CHECK_EQ(unlink(link), 0);
	CHECK_EQ(mkfifo(link, 0600), 0);
	CHECK_EQ(kb_space_attach(&s, link, 0), EBADMSG);
	CHECK_EQ(unlink(link), 0);
}

/* A file that a different user has put there, for root and for a third user,
 * who may both write to it. */
static void planted(void)
{
	kb_space_t *s = NULL;
	kb_space_info_t info;
	int status;
	pid_t pid;

	if (geteuid() != 0 || chown(path, OTHER, OTHER)) {
		puts("not root: no files of others tried");
		return;
	}
	CHECK_EQ(chmod(path, 0666), 0);
	CHECK_EQ(kb_space_attach(&s, path, 0), EPERM);
	CHECK_EQ(kb_space_attach_of(&s, path, 0, 0), EPERM);
	CHECK_EQ(kb_space_attach_of(&s, path, 0, OTHER), 0);
	kb_space_info(s, &info);
	CHECK_EQ(info.owner, OTHER);
	CHECK_EQ(kb_space_detach(s), 0);
	CHECK_EQ(chown(path, 0, 0), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(OTHER) || setuid(OTHER))
			_exit(3);
		_exit(kb_space_attach(&s, path, 0) != 0); /* root's */
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(chown(path, OTHER - 1, 0), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(OTHER) || setuid(OTHER))
			_exit(3);
		_exit(kb_space_attach(&s, path, 0) != EPERM);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* A process that has opened the file for reading only locks all of it, as the kernel allows: that
 * delays no process. */
static void read_only(void)
{
	struct flock l = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	kb_space_t *s = NULL;
	kb_space_sem_t *sem;
	int ready[2];
	pid_t pid;
	char c;

	CHECK_EQ(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd < 0 || fcntl(fd, F_SETLK, &l) || flock(fd, LOCK_EX) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK_EQ(read(ready[0], &c, 1), 1);
	alarm(20); /* else the test would wait for ever */
	CHECK_EQ(kb_space_attach(&s, path, 0), 0);
	CHECK_EQ(kb_space_sem_open(s, "sem", 1, &sem), 0);
	CHECK_EQ(kb_space_detach(s), 0);
	alarm(0);
	peer_kill(pid);
}

/* A process that may only read sleeps where a waiter of this process does, in front of it: the
 * reader takes no wake-up away. */
static void sleep_in_front(uint64_t at)
{
	int fd = open(path, O_RDONLY);
	char *m = mmap(NULL, at + 4096, PROT_READ, MAP_SHARED, fd, 0);
	const uint32_t *how = (const void *)(m + at);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0 || m == MAP_FAILED)
		_exit(1);
	for (;;)
		if (syscall(SYS_futex, how, FUTEX_WAIT, (uint32_t)KBI_SPACE_ASLEEP << 28, NULL, NULL, 0))
			usleep(50);
}

static void *waits(void *event)
{
	for (unsigned i = 0; i < WAKES; i++) {
		uint64_t began = test_now_ns();

		CHECK_EQ(kb_space_event_wait(event, NULL, in_ms(2 * LATE_MS)), 0);
		CHECK(test_now_ns() - began < LATE_MS * MS);
	}
	return NULL;
}

static void reader_sleeps(void)
{
	struct kbi_space_hold *h;
	kb_space_event_t *event;
	kb_space_t *s = NULL;
	pthread_t t;
	pid_t pid;

	CHECK_EQ(kb_space_attach(&s, path, 0), 0);
	CHECK_EQ(kb_space_event_open(s, "event", KB_SPACE_RECV | KB_SPACE_SEND, &event), 0);
	h = (struct kbi_space_hold *)event;
	pid = fork();
	if (pid == 0)
		sleep_in_front((uint64_t)((char *)&h->t->how - (char *)s->head));
	CHECK_EQ(pthread_create(&t, NULL, waits, event), 0);
	for (unsigned i = 0; i < WAKES; i++) {
		while (a_load_rlx(&h->t->how) >> 28 != KBI_SPACE_ASLEEP)
			usleep(1000);
		usleep(20000); /* both sleep */
		CHECK_EQ(kb_space_event_notify(event, i), 0);
		usleep(5000);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	peer_kill(pid);
	CHECK_EQ(kb_space_detach(s), 0);
}

/* A file at the name that an earlier version took before the space had its own does no harm. */
static void guessed(void)
{
	kb_space_t *s = NULL;
	char name[160], temp[224];

	snprintf(name, sizeof name, "%s.b", path);
	snprintf(temp, sizeof temp, "%s.new.%d.%d", name, getpid(), getpid());
	unlink(name);
	unlink(temp);
	CHECK_EQ(symlink("/dev/null", temp), 0);
	CHECK_EQ(kb_space_create(&s, name, NULL), 0);
	CHECK_EQ(unlink(temp), 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(kb_space_detach(s), 0);
}

int main(void)
{
	make();
	atexit(gone);
	own();
	links();
	guessed();
	read_only();
	reader_sleeps();
	planted();
	return 0;
}
