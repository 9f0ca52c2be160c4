/* posix/preload.c - how the drop-in is started: the constructor, and the frame under main. The
 * runtime is not started here: the first pthread_create starts it, even in a constructor that runs
 * before ours. Callers: the loader; libc's start code. Runs on the loading thread. Never
 * switches. */
#include "posix/posix.h"

#include <string.h>
#include <unistd.h>

#include "base/option.h"
#include "libc/asked.h"
#include "libc/redirect.h"
#include "os/sys.h"

/* ---- the environment ---------------------------------------------------------------------- */

static const char variable[] = "LD_PRELOAD=", our_file[] = "libkochab-posix.so";

/* True if the entry of n bytes is a path of this library. */
static bool is_own_preload_entry(const char *entry, size_t n)
{
	const char *slash = memrchr(entry, '/', n);
	size_t skip = slash ? (size_t)(slash + 1 - entry) : 0;

	return n - skip >= sizeof(our_file) - 1 &&
		memcmp(entry + skip, our_file, sizeof(our_file) - 1) == 0;
}

/* Removes this library from a list separated by spaces and colons. In place: nothing is allocated
 * so early. */
static void remove_own_entries(char *list)
{
	char *to = list;

	for (char *from = list; *from;) {
		size_t n = strcspn(from, " :"), with = n + (from[n] != '\0');

		if (!is_own_preload_entry(from, n)) {
			memmove(to, from, with);
			to += with;
		}
		from += with;
	}
	while (to > list && (to[-1] == ':' || to[-1] == ' '))
		to--;
	*to = '\0';
}

/* Removes us from LD_PRELOAD for the programs that this program starts; a list that becomes empty
 * is removed as a whole. */
static void leave_children_alone(void)
{
	char **to = environ;

	if (!to)
		return;
	for (char **from = environ; *from; from++) {
		char *value = *from + sizeof(variable) - 1;

		if (strncmp(*from, variable, sizeof(variable) - 1) == 0) {
			remove_own_entries(value);
			if (!*value)
				continue;
		}
		*to++ = *from;
	}
	*to = NULL;
}

/* The default quantum, unless the environment sets one: many programs spin or block unknown to
 * us. */
enum { QUANTUM_US = 10000 };

/* True if this library comes behind libc: only a library of the program needs us, or we were opened
 * by dlopen. Then nothing of the program is bound to us, and half of it must not be. */
static bool is_passed_over(void)
{
	if (kbi_likely(!kbi_link_order_behind_libc()))
		return false;
	kbi_sys_message("%s comes behind libc here, needed by a library and not by the program: "
		"threads are libc's; link the program with it, or use kochab run", our_file);
	return true;
}

/* Reads the options with which the process was started: many programs clear their environment
 * later. */
__attribute__((constructor(101))) static void start_drop_in(int argc, char **argv, char **envp)
{
	(void)argc;
	kbi_posix_started = true;
	if (is_passed_over())
		return;
	kbi_preload_order(argv, envp);
	kbi_options.quantum = QUANTUM_US;
	kbi_options.spares = KBI_OPTION_POSIX_SPARES;
	kbi_option_load_quietly(); /* the first thread reports errors */
	if (kbi_options.spares == KBI_OPTION_POSIX_SPARES && kbi_options.body == KBI_OPT_BODY_PROCESS)
		kbi_options.spares = KBI_OPTION_POSIX_SPARE_PROCESSES;
	if (kbi_options.children == KBI_OPT_CHILDREN_NO)
		leave_children_alone();
	(void)kbi_libc();
	kbi_cond_learn();
	kbi_shared_learn();
	kbi_stdio_resolve();
	kbi_call_resolve();
	kbi_unsafe_resolve();
	kbi_path_resolve();
	kbi_listing_resolve();
	kbi_fork_init();
	if (kbi_redirect(true))
		kbi_asked_found("table of names", "leads here those that look for functions in libc");
	else
		kbi_asked_missed("table of names",
		"cannot be read or written: a program that looks functions up in libc finds "
				 "libc's");
}

/* ---- main --------------------------------------------------------------------------------- */

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

/* Ends main, which has unwound, as a thread; the process ends with the last thread. */
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

KBI_POSIX_API int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
	void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	program_main = main;
	return kbi_libc()->__libc_start_main(framed_main, argc, argv, init, fini, rtld_fini, stack_end);
}
