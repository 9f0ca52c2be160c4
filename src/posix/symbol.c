/* posix/symbol.c - dlvsym. The linker gives a program our functions whatever version of glibc's it asks for, and so does
 * dlsym; dlvsym alone would pass us over, for we define no versions, and the program would mix libc's condition
 * variables with our mutexes. Sanitizers' wrappers look libc's functions up so. Runs on the caller; calls the loader;
 * never switches. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* libc's dlvsym looks at its return address to know who asks: it must be called in our place, not by us. */
#if defined(__clang__)
#define TAIL_CALLS
#define TAIL_CALL __attribute__((musttail))
#else
#define TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#define TAIL_CALL
#endif

static struct link_map *object_at(const void *address)
{
	struct link_map *map = NULL;
	Dl_info info;

	return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* Does that code come before us where the loader looks names up? */
static bool is_before_us(const void *address)
{
	const struct link_map *map = object_at(address), *us = object_at((const void *)is_before_us);

	if (!map || map == us)
		return false;
	while (map && map != us)
		map = map->l_next;
	return map != NULL;
}

/* The function of that name that we define, or NULL. */
static void *own(const char *name)
{
	static aptr handle;
	const struct link_map *us = object_at((const void *)own);
	void *found;

	if (!a_load_rlx(&handle))
		a_store_rlx(&handle, dlopen(us->l_name, RTLD_NOW | RTLD_NOLOAD));
	found = dlsym(a_load_rlx(&handle), name);
	if (!found)
		dlerror();
	return found && object_at(found) == us ? found : NULL;
}

static void *linkers_answer(void *handle, const char *name, const char *version, const void *caller)
{
	void *ours;

	if (!name || !version || strncmp(version, "GLIBC_", 6) != 0)
		return NULL;
	if (handle != RTLD_DEFAULT && (handle != RTLD_NEXT || !is_before_us(caller)))
		return NULL;
	ours = own(name);
	return ours && (handle == RTLD_NEXT || dlsym(RTLD_DEFAULT, name) == ours) ? ours : NULL;
}

KBI_POSIX_API TAIL_CALLS void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version)
{
	void *ours = linkers_answer(handle, name, version, __builtin_return_address(0));

	if (ours)
		return ours;
	TAIL_CALL return kbi_libc()->dlvsym(handle, name, version);
}
