/* space/place.h - the folders in which the file of a named space may stand. A name with a slash is
 * a path. A name without a slash is looked up in the folders of its user, which no other user may
 * enter, then among the shared names in /dev/shm, where any user may put files. A folder is opened
 * without following a link and checked before anything in it is used: it counts only if it belongs
 * to its user and no other user has rights there; so no other user can exchange the file.
 * Callers: file; the command. Takes no lock, never switches. */
#ifndef KBI_SPACE_PLACE_H
#define KBI_SPACE_PLACE_H

#include "base/base.h"

#define KBI_SPACE_PLACE_SHARED "/dev/shm"
#define KBI_SPACE_PLACE_PREFIX "kochab." /* prefix of a shared name */

enum { KBI_SPACE_PLACE_PATH = 512 }; /* bytes of a path; light threads have small stacks */

/* The places in the order of the search. */
enum kbi_space_place {
	KBI_SPACE_SESSION,  /* $XDG_RUNTIME_DIR/kochab of the caller, if that folder lies in memory */
	KBI_SPACE_RUN_USER, /* /run/user/UID/kochab, likewise */
	KBI_SPACE_OF_USER,  /* /dev/shm/kochab-UID */
	KBI_SPACE_SHARED,   /* /dev/shm, or the path's folder */
	KBI_SPACE_PLACES,
};

/* A file's name as openat takes it. */
struct kbi_space_spot {
	int folder; /* O_PATH descriptor, or AT_FDCWD */
	char name[KBI_SPACE_PLACE_PATH];
};

/* Checks the form of a name. Returns 0, EINVAL or ENAMETOOLONG. */
int kbi_space_place_check(const char *name);
bool kbi_space_place_is_path(const char *name);
/* Opens a folder of this user. make: a missing folder is made. Returns 0; ENOENT: there is no
 * folder, or the place has no folders of users; EPERM: the folder may belong to another user. */
int kbi_space_place_open(enum kbi_space_place place, uint32_t user, bool make, int *folder);
/* Fills in *spot for a checked name in that place. Errors as kbi_space_place_open. A path stands in
 * the shared place only. */
int kbi_space_place_enter(enum kbi_space_place place, const char *name, uint32_t user, bool make,
			  struct kbi_space_spot *spot);
void kbi_space_place_leave(struct kbi_space_spot *spot);
/* Writes the same place as a text: for messages, and for openings that need no care. Returns 0,
 * ENAMETOOLONG, or ENOENT: the place has no such folder. */
int kbi_space_place_path(enum kbi_space_place place, const char *name, uint32_t user, char *path,
	size_t size);

#endif
