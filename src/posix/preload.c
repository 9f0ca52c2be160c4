/* posix/preload.c - how the drop-in gets in: the constructor, and the frame under main. Nothing is started
 * here: the first pthread_create does that, also one in a constructor that runs before ours. Runs on the
 * loading thread. */
#include "posix/posix.h"

__attribute__((constructor(101))) static void start(void)
{
	(void)kbi_libc();
	kbi_stdio_resolve();
	kbi_call_resolve();
	kbi_unsafe_resolve();
	kbi_fork_init();
}

/* ---- main
 * ------------------------------------------------------------------------------------------------- */

struct program {
	int (*main)(int, char **, char **);
	int argc;
	char **argv, **envp;
};

static int (*program_main)(int, char **, char **);

static void *run_main(void *arg)
{
	struct program *p = arg;

	return (void *)(intptr_t)p->main(p->argc, p->argv, p->envp);
}

/* main has unwound: it ends as a thread does, the process with the last one. */
static KBI_NORETURN void end_main(void *result)
{
	if (kbi_posix_light()) {
		kbi_thread_of(kbi_self_raw())->posix = &kbi_posix_me;
		kbi_thread_exit(result);
	}
	kbi_libc()->pthread_exit(result);
	__builtin_unreachable();
}

static int framed_main(int argc, char **argv, char **envp)
{
	struct program p = { program_main, argc, argv, envp };
	void *result = kbi_posix_frame(run_main, &p);

	if (kbi_unlikely(kbi_posix_me.exiting))
		end_main(result);
	return (int)(intptr_t)result;
}

KBI_POSIX_API int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
				    void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	program_main = main;
	return kbi_libc()->__libc_start_main(framed_main, argc, argv, init, fini, rtld_fini, stack_end);
}
