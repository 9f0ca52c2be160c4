/* A thread's files in /proc by the number that gettid gives, for all functions that take a path, by
 * their names and by syscall(): its name is read and written there, its number stands in them, the
 * list of threads has it and no kernel thread of the runtime's, and all that is gone when it has
 * been joined. */
#define _GNU_SOURCE
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4 };

static sem_t told, end, named;
static volatile pid_t number[THREADS];

static void *waits(void *arg)
{
	int me = (int)(long)arg;
	char path[64], link[64] = "", name[16] = "";
	FILE *f;

	snprintf(name, sizeof name, "thread %d", me);
	CHECK_EQ(prctl(PR_SET_NAME, name), 0);
	number[me] = gettid();
	snprintf(path, sizeof path, "%d/task/%d", getpid(), (int)number[me]);
	CHECK(readlink("/proc/thread-self", link, sizeof link - 1) > 0);
	CHECK(strcmp(link, path) == 0);
	f = fopen("/proc/thread-self/comm", "r");
	CHECK(f && fgets(link, sizeof link, f));
	link[strcspn(link, "\n")] = 0;
	CHECK(strcmp(link, name) == 0);
	fclose(f);
	sem_post(&told);
	while (sem_wait(&end))
		;
	memset(name, 0, sizeof name);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK(me != 0 || strcmp(name, "renamed") == 0);
	sem_post(&named);
	return NULL;
}

/* The number in `status`, the name behind `Name:`. */
static void reads(const char *dir, int me)
{
	char path[100], line[400], name[100] = "", wanted[16];
	int pid = 0, tgid = 0;
	FILE *f;

	snprintf(path, sizeof path, "%s/%d/status", dir, (int)number[me]);
	f = fopen(path, "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f)) {
		(void)!sscanf(line, "Pid: %d", &pid);
		(void)!sscanf(line, "Tgid: %d", &tgid);
		(void)!sscanf(line, "Name: %[^\n]", name);
	}
	fclose(f);
	CHECK_EQ(pid, number[me]);
	CHECK_EQ(tgid, getpid());
	snprintf(wanted, sizeof wanted, "thread %d", me);
	CHECK(strcmp(name, wanted) == 0);
	snprintf(path, sizeof path, "%s/%d/stat", dir, (int)number[me]);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%d (%99[^)])", &pid, name) == 2);
	fclose(f);
	CHECK_EQ(pid, number[me]);
	CHECK(strcmp(name, wanted) == 0);
}

/* Checks that the path is there, or that its calls fail with ENOENT. */
static void is_there(const char *dir, int me, bool there)
{
	int wanted = there ? 0 : -1, fd;
	char path[100];
	struct stat s;
	char x[256];
	DIR *d;

	snprintf(path, sizeof path, "%s/%d", dir, (int)number[me]);
#define THERE(call) \
	do { \
		errno = 0; \
		CHECK_EQ(call, wanted); \
		CHECK(there || errno == ENOENT); \
	} while (0)
	THERE(access(path, F_OK));
	THERE(faccessat(AT_FDCWD, path, F_OK, 0));
	THERE(stat(path, &s));
	THERE(lstat(path, &s));
	THERE(fstatat(AT_FDCWD, path, &s, 0));
	THERE(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, (struct statx *)x));
	THERE((int)syscall(SYS_faccessat, AT_FDCWD, path, F_OK));
	THERE((int)syscall(SYS_newfstatat, AT_FDCWD, path, &s, 0));
	CHECK(!there || S_ISDIR(s.st_mode));
	d = opendir(path);
	CHECK_EQ(d != NULL, there);
	if (d)
		closedir(d);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	CHECK_EQ(fd >= 0, there);
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof path, "%s/%d/comm", dir, (int)number[me]);
	fd = open(path, O_RDONLY);
	CHECK_EQ(fd >= 0, there);
	if (fd >= 0)
		close(fd);
}

static int is_ours(const char *name)
{
	int n = atoi(name), found = n == getpid();

	for (int i = 0; i < THREADS; i++)
		found += n == number[i];
	return found;
}

static int wants(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void lists(int how_many)
{
	struct dirent *e, **all;
	int n = 0, ours = 0, fd;
	DIR *d = opendir("/proc/self/task");

	CHECK(d != NULL);
	for (int twice = 0; twice < 2; twice++, rewinddir(d))
		for (n = ours = 0; (e = readdir(d));)
			if (wants(e)) {
				n++;
				ours += is_ours(e->d_name);
			}
	CHECK_EQ(closedir(d), 0);
	CHECK_EQ(n, how_many);
	CHECK_EQ(ours, how_many);
	n = scandir("/proc/self/task", &all, wants, alphasort);
	CHECK_EQ(n, how_many);
	while (n--)
		free(all[n]);
	free(all);
	fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0);
	if (how_many > 1) {
		char path[32];
		struct stat s;

		snprintf(path, sizeof path, "%d/comm", (int)number[1]);
		CHECK_EQ(fstatat(fd, path, &s, 0), 0);
	}
	d = fdopendir(fd);
	for (n = 0; (e = readdir(d));)
		n += wants(e);
	CHECK_EQ(closedir(d), 0);
	CHECK_EQ(n, how_many);
}

static void renames(void)
{
	char path[64], name[16];
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)number[0]);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "renamed", 7), 7);
	close(fd);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK_EQ(read(fd, name, sizeof name), 8);
	CHECK(memcmp(name, "renamed\n", 8) == 0);
	close(fd);
}

int main(void)
{
	char process[64];
	pthread_t t[THREADS];
	int fd = memfd_create("proc_paths", MFD_CLOEXEC);

	if (fd < 0)
		SKIP("memfd_create is refused here, and the files are the kernel's");
	close(fd);
	snprintf(process, sizeof process, "/proc/%d/task", getpid());
	sem_init(&told, 0, 0);
	sem_init(&end, 0, 0);
	sem_init(&named, 0, 0);
	for (long i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_create(&t[i], NULL, waits, (void *)i), 0);
		while (sem_wait(&told))
			;
	}
	lists(THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		reads("/proc/self/task", i);
		reads(process, i);
		is_there("/proc/self/task", i, true);
		is_there(process, i, true);
		is_there("/proc", i, true);
	}
	renames();
	for (int i = 0; i < THREADS; i++)
		sem_post(&end);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		is_there("/proc/self/task", i, false);
		is_there("/proc", i, false);
	}
	lists(1);
	return 0;
}
