/* posix/call.c - the kinds of descriptors, remembered by number, and the table of libc's originals
 * of call.def. A number may come to mean another file without our seeing it, so a remembered kind
 * is a guess. Functions that close numbers forget the kind. Callers: call_*. Never switches. */
#include "posix/call_priv.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "os/sys.h"

a8 kbi_call_kinds[KBI_CALL_DESCRIPTORS];
a32 kbi_call_changes = { 1 };
struct kbi_call_originals kbi_call_originals;

#define SLOT(name) { #name, (void **)&kbi_call_originals.name }

static const struct kbi_libc_row rows[] = {
#define TRANSFER(result, name, ...) SLOT(name),
#define POLL(result, name, ...) SLOT(name),
#define APART(result, name, ...) SLOT(name),
#define LENT(result, name, ...) SLOT(name),
#define OPENS(result, name, ...) SLOT(name),
#define DISK(result, name, ...) SLOT(name),
#define GIVEN(result, name, ...) SLOT(name),
#define AT_ONCE(result, name, ...) SLOT(name),
#define HAND(result, name, ...) SLOT(name),
#include "posix/call.def"
};

void kbi_call_resolve(void)
{
	static a32 ready;

	if (!a_load_acq(&ready)) /* pairs with the release in kbi_libc_look_up */
		kbi_libc_look_up(rows, kbi_countof(rows), &ready);
}

static unsigned kind_of_device(int fd, const struct stat *st)
{
	enum { MEMORY = 1, MESSAGES = 11 }; /* null, zero, full, random and similar devices; kmsg */
	struct termios t;

	if (major(st->st_rdev) == MEMORY && minor(st->st_rdev) != MESSAGES)
		return KBI_CALL_FILE;
	return kbi_sys(SYS_ioctl, fd, TCGETS, &t) == 0 ? KBI_CALL_TTY : KBI_CALL_OTHER;
}

/* Returns the kind of a regular file or a disk. opened: the program opened it without O_DSYNC and
 * O_DIRECT. */
static unsigned kind_of_file(int fd, bool opened)
{
	long flags = opened ? 0 : kbi_sys(SYS_fcntl, fd, F_GETFL);

	if (kbi_likely(flags < 0 || !(flags & (O_DSYNC | O_DIRECT))))
		return KBI_CALL_FILE;
	return flags & O_DIRECT ? KBI_CALL_DISK | KBI_CALL_DIRECT : KBI_CALL_DISK;
}

static unsigned kind_of_descriptor(int fd)
{
	struct stat st;
	int saved = errno;

	if (fstat(fd, &st)) {
		errno = saved;
		return KBI_CALL_UNKNOWN;
	}
	switch (st.st_mode & S_IFMT) {
	case S_IFSOCK:
		return KBI_CALL_SOCKET;
	case S_IFIFO:
	case 0: /* eventfd and similar files */
		return KBI_CALL_STREAM;
	case S_IFCHR:
		return kind_of_device(fd, &st);
	case S_IFREG:
	case S_IFBLK:
		return kind_of_file(fd, (kbi_call_known(fd) & KBI_CALL_KINDS) == KBI_CALL_OPENED);
	default:
		return KBI_CALL_FILE;
	}
}

unsigned kbi_call_look_up(int fd)
{
	unsigned k = kind_of_descriptor(fd), before;

	if (k == KBI_CALL_UNKNOWN)
		return KBI_CALL_FILE;
	if ((unsigned)fd < KBI_CALL_DESCRIPTORS) {
		before = a_load_rlx(&kbi_call_kinds[fd]);
		if ((before & KBI_CALL_KINDS) == (k & KBI_CALL_KINDS))
			k |= before & ~(unsigned)KBI_CALL_DIRECT;
	}
	kbi_call_note(fd, k);
	return k;
}

bool kbi_call_nonblocking(int fd)
{
	long flags = kbi_sys(SYS_fcntl, fd, F_GETFL);
	bool is = flags >= 0 && (flags & O_NONBLOCK);
	unsigned k;

	if ((unsigned)fd < KBI_CALL_DESCRIPTORS) {
		k = a_load_rlx(&kbi_call_kinds[fd]);
		if (k && is != !!(k & KBI_CALL_NONBLOCK))
			kbi_call_note(fd, k ^ KBI_CALL_NONBLOCK);
	}
	return is;
}
