/* space/place.c - the folders of named spaces' files. Contract in place.h.
 * Callers: file; the command. Uses raw system calls: the drop-in defines libc's names. */
#include "space/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "os/sys.h"

#define OWN "kochab"       /* name of our folder in a user's folder */
#define VARIABLE "XDG_RUNTIME_DIR="
#define SHARED_AS KBI_SPACE_PLACE_SHARED "/" KBI_SPACE_PLACE_PREFIX

enum { TMPFS = 0x01021994, RAMFS = (int)0x858458f6,
	LOOKED_AT = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

extern char **environ;

/* ---- names ----------------------------------------------------------------------------------- */

bool kbi_space_place_is_path(const char *name)
{
	return strchr(name, '/') != NULL;
}

static bool is_valid_space_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9') &&
				!strchr("._-", *c))
			return false;
	return *name && strcmp(name, ".") && strcmp(name, "..");
}

int kbi_space_place_check(const char *name)
{
	bool path = name && kbi_space_place_is_path(name);

	if (!name || (!path && !is_valid_space_name(name)))
		return EINVAL;
	return strlen(name) + (path ? 1 : sizeof SHARED_AS) > KBI_SPACE_PLACE_PATH ? ENAMETOOLONG : 0;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Returns $XDG_RUNTIME_DIR. The environment is obeyed only where the caller has no more
 * rights than its starter. */
static const char *session_folder(void)
{
	const size_t n = sizeof VARIABLE - 1;

	if (getauxval(AT_SECURE))
		return NULL;
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, VARIABLE, n) == 0)
			return (*e)[n] == '/' ? *e + n : NULL;
	return NULL;
}

/* Finds the folder in which a user's folder of ours stands, and the name of ours there. */
static int find_parent(enum kbi_space_place place, uint32_t user, char *parent, size_t size,
	char name[32])
{
	const char *base = KBI_SPACE_PLACE_SHARED;
	int n;

	snprintf(name, 32, OWN);
	switch (place) {
	case KBI_SPACE_SESSION:
		base = user == (uint32_t)kbi_sys(SYS_geteuid) ? session_folder() : NULL;
		if (!base)
			return ENOENT;
		break;
	case KBI_SPACE_RUN_USER:
		snprintf(parent, size, "/run/user/%u", user);
		return 0;
	case KBI_SPACE_OF_USER:
		snprintf(name, 32, OWN "-%u", user);
		break;
	default:
		return ENOENT;
	}
	n = snprintf(parent, size, "%s", base);
	return n < 0 || (size_t)n >= size ? ENOENT : 0;
}

static bool is_private_folder(int folder, uint32_t user)
{
	struct stat st;

	return fstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == user &&
		!(st.st_mode & 077);
}

/* Returns whether the folder lies in memory. The kernel keeps writing a file on a disk back to it:
 * no place for words that processes poll. */
static bool is_memory_folder(int folder)
{
	struct statfs fs;

	return kbi_sys(SYS_fstatfs, folder, &fs) == 0 &&
		((int)fs.f_type == TMPFS || (int)fs.f_type == RAMFS);
}

static int open_user_folder(int parent, const char *name, uint32_t user, bool make, int *folder)
{
	long f;

	if (make)
		kbi_sys(SYS_mkdirat, parent, name, 0700);
	f = kbi_sys(SYS_openat, parent, name, LOOKED_AT);
	if (f == -ENOTDIR || f == -ELOOP || (f >= 0 && !is_private_folder((int)f, user))) {
		if (f >= 0)
			kbi_sys(SYS_close, f);
		return EPERM;
	}
	*folder = (int)f;
	return f < 0 ? (int)-f : 0;
}

int kbi_space_place_open(enum kbi_space_place place, uint32_t user, bool make, int *folder)
{
	char path[KBI_SPACE_PLACE_PATH], name[32];
	bool anybodys = place == KBI_SPACE_OF_USER;
	long parent;
	int e = find_parent(place, user, path, sizeof path, name);

	if (e)
		return e;
	parent = kbi_sys(SYS_openat, AT_FDCWD, path, LOOKED_AT & ~(anybodys ? O_NOFOLLOW : 0));
	if (parent < 0)
		return anybodys ? (int)-parent : ENOENT;
	e = anybodys || (is_private_folder((int)parent, user) && is_memory_folder((int)parent)) ?
	    open_user_folder((int)parent, name, user, make, folder) : ENOENT;
	kbi_sys(SYS_close, parent);
	return e;
}

/* ---- spots ----------------------------------------------------------------------------------- */

int kbi_space_place_enter(enum kbi_space_place place, const char *name, uint32_t user, bool make,
			  struct kbi_space_spot *spot)
{
	bool path = kbi_space_place_is_path(name);

	if (place != KBI_SPACE_SHARED) {
		snprintf(spot->name, sizeof spot->name, "%s", name);
		return path ? ENOENT : kbi_space_place_open(place, user, make, &spot->folder);
	}
	spot->folder = AT_FDCWD;
	snprintf(spot->name, sizeof spot->name, "%s%s", path ? "" : SHARED_AS, name);
	return 0;
}

void kbi_space_place_leave(struct kbi_space_spot *spot)
{
	if (spot->folder != AT_FDCWD)
		kbi_sys(SYS_close, spot->folder);
}

int kbi_space_place_path(enum kbi_space_place place, const char *name, uint32_t user, char *path,
	size_t size)
{
	char parent[KBI_SPACE_PLACE_PATH], own[32];
	int n, e = 0;

	if (place == KBI_SPACE_SHARED) {
		bool is_path = kbi_space_place_is_path(name);

		n = snprintf(path, size, "%s%s", is_path ? "" : SHARED_AS, name);
	} else {
		e = find_parent(place, user, parent, sizeof parent, own);
		n = e ? 0 : snprintf(path, size, "%s/%s/%s", parent, own, name);
	}
	return e ? e : n < 0 || (size_t)n >= size ? ENAMETOOLONG : 0;
}
