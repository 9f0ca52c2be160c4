/* space/file, space/member: the facts of a space, who may attach, the errors for a bad file;
 * growth; different addresses.
 * matrix: none */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "space_test.h"

static void overwrite(long at, const void *bytes, size_t n)
{
	char path[128];
	int fd;

	space_path(path, sizeof path);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	CHECK_EQ(pwrite(fd, bytes, n, at), n);
	close(fd);
}

static void rights(void)
{
	kb_space_t *s = space_new(NULL), *other;
	char path[128];
	struct stat st;

	space_path(path, sizeof path);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0600);
	CHECK(st.st_blocks * 512 >= st.st_size);
	CHECK_EQ(kb_space_create(&other, space_name, NULL), EEXIST);
	CHECK_EQ(kb_space_attach(&other, space_name, 0), EALREADY);
	CHECK_EQ(kb_space_attach(&other, "no.such.space", 0), ENOENT);
	CHECK_EQ(kb_space_create(&other, "", NULL), EINVAL);
	CHECK_EQ(kb_space_create(&other, "a b", NULL), EINVAL);
	CHECK_EQ(kb_space_create(&other, "odd", &(kb_space_config_t){ .limit = 1 }), EINVAL);
	CHECK_EQ(kb_space_create(&other, "/no/such/place", NULL), ENOENT);
	CHECK_EQ(kb_space_detach(s), 0);
	CHECK_EQ(kb_space_unlink(space_name), 0);
	CHECK_EQ(kb_space_unlink(space_name), ENOENT);
	CHECK_EQ(kb_space_attach(&s, space_name, 0), ENOENT);
	s = space_new(&(kb_space_config_t){ .mode = 0640 });
	space_path(path, sizeof path);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0640);
	CHECK_EQ(kb_space_detach(s), 0);
	if (geteuid() != 0) {
		CHECK_EQ(chmod(path, 0), 0);
		CHECK_EQ(kb_space_attach(&s, space_name, 0), EACCES);
	}
	CHECK_EQ(kb_space_unlink(space_name), 0);
}

static void bad_files(void)
{
	kb_space_t *s = space_new(NULL);
	const uint32_t other = 77;
	char path[128];
	struct stat st;

	CHECK_EQ(kb_space_detach(s), 0);
	CHECK_EQ(kb_space_attach(&s, space_name, 0), 0);
	CHECK_EQ(kb_space_detach(s), 0);
	space_path(path, sizeof path);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(truncate(path, st.st_size - 4096), 0);
	CHECK_EQ(kb_space_attach(&s, space_name, 0), EBADMSG);
	CHECK_EQ(truncate(path, st.st_size), 0);
	overwrite(8, &other, sizeof other); /* the version of the layout */
	CHECK_EQ(kb_space_attach(&s, space_name, 0), EPROTO);
	overwrite(0, &other, sizeof other);
	CHECK_EQ(kb_space_attach(&s, space_name, 0), EBADMSG);
	CHECK_EQ(truncate(path, 0), 0);
	CHECK_EQ(kb_space_attach(&s, space_name, 0), EBADMSG);
	CHECK_EQ(kb_space_unlink(space_name), 0);
	CHECK_EQ(kb_space_attach(&s, "/dev/null", 0), EBADMSG);
}

static void objects(void)
{
	kb_space_t *s = space_new(NULL);
	kb_space_sem_t *sem, *same;
	kb_space_chan_t *ch;
	kb_space_mutex_t *m;
	uint64_t *p, *q;
	kb_space_info_t info;

	CHECK_EQ(kb_space_sem_open(s, "x", 3, &sem), 0);
	CHECK_EQ(kb_space_sem_open(s, "x", 9, &same), 0);
	CHECK(sem == same);
	CHECK_EQ(kb_space_sem_value(sem), 3);
	CHECK_EQ(kb_space_mutex_open(s, "x", &m), EEXIST);
	CHECK_EQ(kb_space_mutex_open(s, "", &m), EINVAL);
	CHECK_EQ(kb_space_mutex_open(s, "a name of more than thirty-nine bytes is too long", &m),
		EINVAL);
	CHECK_EQ(kb_space_chan_open(s, "c", 8, 4, KB_SPACE_SEND, &ch), 0);
	CHECK_EQ(kb_space_chan_open(s, "c", 8, 5, KB_SPACE_SEND, &ch), EEXIST);
	CHECK_EQ(kb_space_chan_open(s, "d", 0, 5, KB_SPACE_SEND, &ch), EINVAL);
	CHECK_EQ(kb_space_chan_open(s, "d", 8, 5, 0, &ch), EINVAL);
	CHECK_EQ(kb_space_memory_open(s, "m", 100, (void **)&p), 0);
	CHECK_EQ(kb_space_memory_open(s, "m", 100, (void **)&q), 0);
	CHECK(p == q && *p == 0 && (uintptr_t)p % 64 == 0);
	CHECK(kb_space_pointer(s, kb_space_offset(s, p)) == p);
	kb_space_info(s, &info);
	CHECK_EQ(info.processes, 1);
	CHECK_EQ(info.objects, 3);
	CHECK_EQ(info.fixed, 1);
	CHECK_EQ(kb_space_detach(s), 0);
	space_gone();
}

static void growth(void)
{
	kb_space_t *s = space_new(&(kb_space_config_t){ .limit = 8 << 20 });
	kb_space_info_t before, after;
	char name[16];
	char *p;
	int e, n = 0;

	kb_space_info(s, &before);
	do {
		snprintf(name, sizeof name, "m%d", n);
		e = kb_space_memory_open(s, name, 1000000, (void **)&p);
		if (!e)
			memset(p, n, 1000000);
		n++;
	} while (!e);
	CHECK_EQ(e, EMFILE);
	CHECK(n >= 7);
	kb_space_info(s, &after);
	CHECK(after.size > before.size && after.size <= after.limit);
	CHECK_EQ(kb_space_memory_open(s, "m1", 1000000, (void **)&p), 0);
	CHECK_EQ(p[999999], 1);
	CHECK_EQ(kb_space_detach(s), 0);
	space_gone();
}

/* The address of the space is in use. */
static void elsewhere(void)
{
	kb_space_t *s = space_new(NULL), *fixed;
	kb_space_config_t config;
	kb_space_sem_t *sem;
	kb_space_info_t info;
	void *there;
	char *name = strdup(space_name);

	CHECK_EQ(kb_space_sem_open(s, "x", 1, &sem), 0);
	kb_space_info(s, &info);
	there = (void *)info.address;
	CHECK_EQ(kb_space_detach(s), 0);
	CHECK(mmap(there, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == there);
	CHECK_EQ(kb_space_attach(&s, space_name, KB_SPACE_FIXED), EADDRINUSE);
	CHECK_EQ(kb_space_attach(&s, space_name, 0), 0);
	kb_space_info(s, &info);
	CHECK(!info.fixed && (void *)info.address != there);
	CHECK_EQ(kb_space_sem_open(s, "x", 1, &sem), 0);
	CHECK_EQ(kb_space_sem_wait(sem, 0), 0);
	CHECK_EQ(kb_space_sem_wait(sem, 0), ETIMEDOUT);
	snprintf(space_name, sizeof space_name, "%s.f", name);
	config = (kb_space_config_t){ .flags = KB_SPACE_FIXED, .address = (uintptr_t)there };
	CHECK_EQ(kb_space_create(&fixed, space_name, &config), EADDRINUSE);
	CHECK_EQ(kb_space_attach(&fixed, space_name, 0), ENOENT);
	snprintf(space_name, sizeof space_name, "%s", name);
	free(name);
	CHECK_EQ(kb_space_detach(s), 0);
	space_gone();
	munmap(there, 4096);
}

static bool own_mounts(void)
{
	char map[32];
	int uid = (int)getuid(), fd;

	if (unshare(CLONE_NEWNS) == 0)
		return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	snprintf(map, sizeof map, "0 %d 1", uid);
	fd = open("/proc/self/uid_map", O_WRONLY);
	return fd >= 0 && write(fd, map, strlen(map)) > 0;
}

/* The file system has room for less than the limit. */
static void full(void)
{
	kb_space_t *s;
	char name[16];
	char *p;
	int e, n = 0;

	if (!own_mounts() || mount("none", "/mnt", "tmpfs", 0, "size=4m")) {
		puts("no file system of its own here: not tried full");
		return;
	}
	CHECK_EQ(kb_space_create(&s, "/mnt/space", &(kb_space_config_t){ .size = 8 << 20 }), ENOSPC);
	CHECK_EQ(access("/mnt/space", F_OK), -1);
	CHECK_EQ(kb_space_create(&s, "/mnt/space", NULL), 0);
	do {
		snprintf(name, sizeof name, "m%d", n++);
		e = kb_space_memory_open(s, name, 100000, (void **)&p);
		if (!e)
			memset(p, n, 100000);
	} while (!e);
	CHECK_EQ(e, ENOSPC);
	CHECK(n > 20);
	CHECK_EQ(kb_space_detach(s), 0);
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc > 1 && argv[1][0] == 'f') {
		full();
		return 0;
	}
	rights();
	bad_files();
	objects();
	growth();
	elsewhere();
	pid = peer("full", NULL);
	peer_ends(pid);
	(void)argv;
	return 0;
}
