/* A program, or a thread, that restricts itself by a system call filter. A filter set before the
 * first thread holds for all threads; a filter for all threads reaches each thread, also future
 * threads; a thread whose filter allows little works on, waits, is joined, and ends. Each part runs
 * in its own program. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 5, LOOKS = 10 };

static long (*own)(void);
static long expected;

static void look(void)
{
	for (int i = 0; i < LOOKS; i++) {
		CHECK_EQ(own(), expected);
		if (i % 2)
			sched_yield();
		else
			usleep(200);
	}
}

static void *looks(void *arg)
{
	look();
	return arg;
}

static void all_look(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, looks, NULL), 0);
	look();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* ---- before the first thread ----------------------------------------------------------------- */

static long may_read(void)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool shut_files(void)
{
	uint64_t rules = 1 << 2; /* to read a file */
	int fd = (int)syscall(444, &rules, sizeof(rules), 0);

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (fd < 0)
		return false;
	CHECK_EQ(syscall(446, fd, 0), 0);
	close(fd);
	return true;
}

static void files_early(void)
{
	own = may_read;
	if (!shut_files())
		return;
	expected = 0;
	all_look();
}

static long files_user(void)
{
	return setfsuid((uid_t)-1);
}

static void user_early(void)
{
	own = files_user;
	setfsuid(65534);
	expected = setfsuid((uid_t)-1);
	all_look();
}

/* ---- filters --------------------------------------------------------------------------------- */

static long filtered(void)
{
	char info[256];

	errno = 0;
	return syscall(SYS_sysinfo, info) < 0 ? errno : 0;
}

/* Of the calls `nr` .. `last` none. */
static int install(bool all_threads, unsigned nr, unsigned last)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, nr, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program);
}

static void filter_early(void)
{
	own = filtered;
	CHECK_EQ(install(false, SYS_sysinfo, SYS_sysinfo), 0);
	expected = EXDEV;
	all_look();
}

static sem_t is_set;

static void *waits(void *arg)
{
	while (sem_wait(&is_set))
		;
	sem_post(&is_set);
	look();
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	return arg;
}

static void *shuts_all(void *arg)
{
	CHECK_EQ(install(true, SYS_sysinfo, SYS_sysinfo), 0);
	sem_post(&is_set);
	all_look();
	return arg;
}

static void filter_for_all(void)
{
	pthread_t old[THREADS], t;

	own = filtered;
	expected = EXDEV;
	CHECK_EQ(sem_init(&is_set, 0, 0), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&old[i], NULL, waits, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, shuts_all, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(old[i], NULL), 0);
	all_look();
	if (!fork())
		_exit(filtered() != EXDEV);
	int status;
	CHECK(wait(&status) > 0);
	CHECK_EQ(status, 0);
}

/* ---- a thread that may do little ------------------------------------------------------------- */

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn;

/* No files, no processes, no signals to others. */
static void *little(void *arg)
{
	CHECK_EQ(install(false, SYS_execve, SYS_execve), 0);
	CHECK_EQ(install(false, SYS_kill, SYS_kill), 0);
	CHECK_EQ(install(false, SYS_openat, SYS_openat), 0);
	CHECK_EQ(install(false, SYS_sched_yield, SYS_sched_yield), 0);
	CHECK_EQ(install(false, SYS_tgkill, SYS_tgkill), 0);
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&m);
		while (turn % 2 == 0)
			pthread_cond_wait(&c, &m);
		turn++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	CHECK(open("/etc/passwd", O_RDONLY) < 0 && errno == EXDEV);
	return arg;
}

static void a_thread_of_little(void)
{
	pthread_t t[2];

	CHECK_EQ(pthread_create(&t[0], NULL, waits, NULL), 0);
	own = may_read;
	expected = 1;
	CHECK_EQ(pthread_create(&t[1], NULL, little, &turn), 0);
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&m);
		while (turn % 2)
			pthread_cond_wait(&c, &m);
		turn++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	void *result = NULL;
	CHECK_EQ(pthread_join(t[1], &result), 0);
	CHECK(result == &turn);
	all_look();
	_exit(0);
}

int main(void)
{
	void (*const part[])(void) = { files_early, user_early, filter_early, filter_for_all, a_thread_of_little };

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			part[i]();
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	return 0;
}
