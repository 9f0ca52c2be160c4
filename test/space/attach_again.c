/* space/file: the lock of a space's file stays held while another thread of the same process opens
 * and closes the file, which would end a lock of the kernel (fcntl).
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

/* Checks from another program whether the lock is held. */
static void looks(const char *path)
{
	struct kbi_space_head head;
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0);
	CHECK_EQ(kbi_space_file_head(fd, &head), 0);
	CHECK(a_load_rlx(&head.lock) != 0);
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
	space_path(path, sizeof path);
	CHECK_EQ(kbi_space_file_lock(s), 0);
	run(&r, true, attaches, NULL);
	usleep(HOLD_MS * 1000);
	peer_ends(peer("looks", path));
	kbi_space_file_unlock(s);
	run_join(&r);
	CHECK_EQ(kb_space_detach(s), 0);
	return 0;
}
