/* path.h - the path of a space's file. */
#ifndef KB_SPACE_PATH_H
#define KB_SPACE_PATH_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "space/place.h"

/* Stores the path in `path`. False: the file exists nowhere. */
static inline bool space_path_of(const char *name, char *path, size_t size)
{
	struct stat st;

	for (int place = 0; place < KBI_SPACE_PLACES; place++)
		if (kbi_space_place_path((enum kbi_space_place)place, name, geteuid(), path, size) == 0 &&
				stat(path, &st) == 0)
			return true;
	return false;
}

#endif
