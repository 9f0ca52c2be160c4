/* posix/symbol.c - look-ups of names that libc's table, which leads to us, does not answer.
 * dlvsym: ThreadSanitizer's runtime looks up the originals of its wrappers in the program's
 * .preinit_array, before our constructor has written the table. The linker gives our function for
 * any version that is asked for, and dlvsym here does likewise.
 * dlmopen: libraries in a namespace of their own have a libc of their own, with its own streams,
 * errno and heap, which cannot be taken over. The program is told so.
 * Callers: programs. Runs on the caller; calls the loader; never switches. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "libc/names.h"
#include "os/sys.h"

/* libc's function finds its caller by its return address: so it must be called in our place, by a
 * tail call. */
#if defined(__clang__)
#define TAIL_CALLS
#define TAIL_CALL __attribute__((musttail))
#else
#define TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#define TAIL_CALL
#endif

/* Returns our function of that name, or NULL. Reads our own symbol table: a dlopen of ourselves,
 * for a handle, could run constructors too early. */
static void *find_own_function(const char *name)
{
	const struct link_map *us = kbi_link_order_object((const void *)find_own_function);
	const ElfW(Sym) *found;

	return us && kbi_names_symbols(us->l_addr, us->l_ld, name, &found, 1)
		? (void *)(us->l_addr + found->st_value) : NULL;
}

static void *answer_as_linker(void *handle, const char *name, const char *version,
	const void *caller)
{
	void *ours;

	if (!name || !version || strncmp(version, "GLIBC_", 6) != 0)
		return NULL;
	if (handle != RTLD_DEFAULT && (handle != RTLD_NEXT || !kbi_link_order_before_us(caller)))
		return NULL;
	ours = find_own_function(name);
	return ours && (handle == RTLD_NEXT || dlsym(RTLD_DEFAULT, name) == ours) ? ours : NULL;
}

KBI_POSIX_API TAIL_CALLS void *dlvsym(void *restrict handle, const char *restrict name,
	const char *restrict version)
{
	void *ours = answer_as_linker(handle, name, version, __builtin_return_address(0));

	if (ours)
		return ours;
	TAIL_CALL return kbi_libc()->dlvsym(handle, name, version);
}

static void warn_of_dlmopen(void)
{
	static a32 told;

	if (!a_xchg_rlx(&told, 1))
		kbi_sys_message("dlmopen: libraries in a namespace of their own have a libc of their own, "
			"which is not taken over: "
			"let them share no mutexes, condition variables or semaphores with the program");
}

KBI_POSIX_API TAIL_CALLS void *dlmopen(Lmid_t space, const char *file, int mode)
{
	if (space == LM_ID_NEWLM)
		warn_of_dlmopen();
	TAIL_CALL return kbi_libc()->dlmopen(space, file, mode);
}
