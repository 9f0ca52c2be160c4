/* posix/symbol.c - dlmopen. Libraries in a namespace of their own come with a libc of their own, of which nothing can be
 * taken over: its streams, its errno and its heap are others. The program is told so. Runs on the caller; calls the
 * loader; never switches. */
#include "posix/posix.h"

#include <dlfcn.h>

#include "os/sys.h"

/* libc's looks at its return address to know who asks: it must be called in our place, not by us. */
#if defined(__clang__)
#define TAIL_CALLS
#define TAIL_CALL __attribute__((musttail))
#else
#define TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#define TAIL_CALL
#endif

static void tell(void)
{
	static a32 told;

	if (!a_xchg_rlx(&told, 1))
		kbi_sys_message("dlmopen: libraries in a namespace of their own have a libc of their own, which is not taken over: "
				"let them share no mutexes, condition variables or semaphores with the program");
}

KBI_POSIX_API TAIL_CALLS void *dlmopen(Lmid_t space, const char *file, int mode)
{
	if (space == LM_ID_NEWLM)
		tell();
	TAIL_CALL return kbi_libc()->dlmopen(space, file, mode);
}
