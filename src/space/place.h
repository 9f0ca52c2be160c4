/* space/place.h - the folders in which the file of a named space may stand. A name with a slash is a path. One without
 * is looked for in the folders of its user, which nobody else may enter, then among the shared names in /dev/shm, where
 * anybody may put files. A folder is opened without following a link and looked at before anything in it is: it counts
 * only if it belongs to its user and nobody else has rights there; so nobody can put something else in its place.
 * Callers: file; the command. */
#ifndef KBI_SPACE_PLACE_H
#define KBI_SPACE_PLACE_H

#include "base/base.h"

#define KBI_SPACE_PLACE_SHARED "/dev/shm"
#define KBI_SPACE_PLACE_PREFIX "kochab." /* of a shared name */

enum { KBI_SPACE_PLACE_PATH = 512 }; /* light threads have small stacks */

/* In the order in which they are looked at. */
enum kbi_space_place {
	KBI_SPACE_SESSION,  /* $XDG_RUNTIME_DIR/kochab of the caller, if that lies in memory */
	KBI_SPACE_RUN_USER, /* /run/user/UID/kochab, likewise */
	KBI_SPACE_OF_USER,  /* /dev/shm/kochab-UID */
	KBI_SPACE_SHARED,   /* /dev/shm, or the path's folder */
	KBI_SPACE_PLACES,
};

/* A file's name as openat takes it. */
struct kbi_space_spot {
	int folder; /* O_PATH, or AT_FDCWD */
	char name[KBI_SPACE_PLACE_PATH];
};

/* Is it a name at all? EINVAL, ENAMETOOLONG. */
int kbi_space_place_check(const char *name);
bool kbi_space_place_is_path(const char *name);
/* Opens a folder of this user. make: it is made where it is missing. ENOENT: there is none, or the place has no folders of
 * users; EPERM: it may be another's. */
int kbi_space_place_open(enum kbi_space_place place, uint32_t user, bool make, int *folder);
/* Where a name that has been checked stands in that place; as open. A path: in the shared one only. */
int kbi_space_place_enter(enum kbi_space_place place, const char *name, uint32_t user, bool make,
			  struct kbi_space_spot *spot);
void kbi_space_place_leave(struct kbi_space_spot *spot);
/* The same as a text: for messages, and for openings that need no care. ENOENT: the place has none. */
int kbi_space_place_path(enum kbi_space_place place, const char *name, uint32_t user, char *path, size_t size);

#endif
