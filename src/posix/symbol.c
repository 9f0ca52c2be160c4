/* posix/symbol.c - dlvsym. The linker gives a program our functions whatever version of glibc's it asks for,
 * and so does dlsym; dlvsym alone would pass us over, for we define no versions, and the program would mix
 * libc's condition variables with our mutexes. Sanitizers' wrappers look libc's functions up so. Runs on the
 * caller; calls the loader; never switches. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "os/names.h"

/* libc's dlvsym looks at its return address to know who asks: it must be called in our place, not by us. */
#if defined(__clang__)
#define TAIL_CALLS
#define TAIL_CALL __attribute__((musttail))
#else
#define TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#define TAIL_CALL
#endif

/* The function of that name that we define, or NULL. By our own table: dlopen of ourselves, for a handle, could run
 * constructors before their time. */
static void *own(const char *name)
{
	const struct link_map *us = kbi_place_object((const void *)own);
	uintptr_t at;

	return us && kbi_names_find(us->l_addr, us->l_ld, name, &at, 1) ? (void *)at : NULL;
}

static void *linkers_answer(void *handle, const char *name, const char *version, const void *caller)
{
	void *ours;

	if (!name || !version || strncmp(version, "GLIBC_", 6) != 0)
		return NULL;
	if (handle != RTLD_DEFAULT && (handle != RTLD_NEXT || !kbi_place_before_us(caller)))
		return NULL;
	ours = own(name);
	return ours && (handle == RTLD_NEXT || dlsym(RTLD_DEFAULT, name) == ours) ? ours : NULL;
}

KBI_POSIX_API TAIL_CALLS void *dlvsym(
	void *restrict handle, const char *restrict name, const char *restrict version)
{
	void *ours = linkers_answer(handle, name, version, __builtin_return_address(0));

	if (ours)
		return ours;
	TAIL_CALL return kbi_libc()->dlvsym(handle, name, version);
}
