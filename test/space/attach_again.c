/* space/file: who opens the file of a space and closes it again ends the locks that its process has on it, as POSIX has it
 * (fcntl). So a thread that attaches once more does so when no other one of the process is within the lock.
 * matrix: none */
#include <fcntl.h>

#include "space/file.h"
#include "space_test.h"

enum { HOLD_MS = 20 };

static void *attaches(void *unused)
{
	kb_space_t *s;

	CHECK_EQ(kb_space_attach(&s, space_name, 0), EALREADY);
	return unused;
}

/* Another program looks: is the lock held? */
static void looks(const char *path)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
	int fd = open(path, O_RDWR);

	CHECK(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETLK, &l), 0);
	CHECK_EQ(l.l_type, F_WRLCK);
}

int main(int argc, char **argv)
{
	struct runner r;
	char path[128];
	kb_space_t *s;

	if (argc > 3) {
		looks(argv[3]);
		return 0;
	}
	s = space_new(NULL);
	atexit(space_gone);
	CHECK_EQ(kbi_space_file_path(space_name, path, sizeof path), 0);
	kbi_space_file_lock(s);
	run(&r, true, attaches, NULL);
	usleep(HOLD_MS * 1000);
	peer_ends(peer("looks", path));
	kbi_space_file_unlock(s);
	run_join(&r);
	CHECK_EQ(kb_space_detach(s), 0);
	return 0;
}
