/* posix/preload_order.c - the order of libraries. The loader binds a name to the first library that
 * has it, and some libraries must come before others. A program with a wrong order is started
 * again, with LD_PRELOAD naming the library that must be in front:
 * - the runtime of ThreadSanitizer or AddressSanitizer, before us. Behind us ThreadSanitizer would
 *   see the program make threads and never lock a mutex, and would call every hand-over a race;
 *   AddressSanitizer would be told of our kernel threads, and not of the program's threads. In
 *   front, its wrappers call us, and it sees what the program does.
 * - this library, before the native library, with which a program may also be linked: otherwise two
 *   runtimes would run, and one would make its virtual processors of the other's lightweight
 *   threads.
 * Caller: posix/preload, before main. Runs on the loading thread; does not return if the program is
 * started again. */
#include "posix/posix.h"

#include <kochab/kochab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libc/names.h"
#include "os/sys.h"


static const char variable[] = "LD_PRELOAD=";

static char **find_preload_variable(char **envp)
{
	while (*envp && strncmp(*envp, variable, sizeof(variable) - 1) != 0)
		envp++;
	return envp;
}

/* Removes from LD_PRELOAD the entry that was put in front, with `mark` behind it: programs that
 * this program starts do not need it. */
static void remove_preload_entry(char **envp, const char *file, const char *mark)
{
	char **slot = find_preload_variable(envp), *first;
	size_t n = strlen(file), m = strlen(mark);

	if (!*slot)
		return;
	first = *slot + sizeof(variable) - 1;
	if (strncmp(first, file, n) != 0 || strncmp(first + n, mark, m) != 0)
		return;
	memmove(first, first + n + m, strlen(first + n + m) + 1);
	for (; !*first && *slot; slot++)
		*slot = slot[1];
}

/* Starts the program again with the file in front of LD_PRELOAD. Returns if it cannot. */
static void restart_with_preload(char **argv, char **envp, const char *file, const char *mark)
{
	char **slot = find_preload_variable(envp), *joined = NULL, **with;
	const char *rest = *slot ? *slot + sizeof(variable) - 1 : "";
	size_t n = 0;

	if (strstr(rest, file) || asprintf(&joined, "%s%s%s%s", variable, file, mark, rest) < 0)
		return;
	while (envp[n])
		n++;
	with = malloc((n + 2) * sizeof *with);
	if (!with)
		return;
	memcpy(with, envp, (n + 1) * sizeof *with);
	with[n] = with[n + 1] = NULL;
	with[slot - envp] = joined;
	execve("/proc/self/exe", argv, with);
}

static void order_sanitizer(char **argv, char **envp)
{
	const void *its = kbi_names_definition("__tsan_init");
	Dl_info info;

	if (!its)
		its = kbi_names_definition("__asan_init");
	if (!its || !dladdr(its, &info))
		return;
	if (kbi_link_order_before_us(its)) {
		remove_preload_entry(envp, info.dli_fname, ":");
		return;
	}
	/* without LD_PRELOAD we are linked in: the order is the program's own */
	if (!*find_preload_variable(envp) || strstr(*find_preload_variable(envp), info.dli_fname))
		return;
	restart_with_preload(argv, envp, info.dli_fname, ":");
	kbi_sys_message("%s does not see what threads do: put it in front of the drop-in",
		info.dli_fname);
}

/* An empty entry behind ours marks an entry that was added here, as opposed to one meant for all
 * programs. */
static void order_native(char **argv, char **envp)
{
	static const char mark[] = "::";
	Dl_info us, native;

	if (!dladdr((const void *)kbi_preload_order, &us))
		return;
	if (kbi_likely(!kbi_link_order_before_us((const void *)kb_init))) {
		remove_preload_entry(envp, us.dli_fname, mark);
		return;
	}
	restart_with_preload(argv, envp, us.dli_fname, mark);
	/* the native library is in front, as otherwise this would not be reached */
	if (dladdr((const void *)kb_init, &native))
		kbi_sys_message("%s comes before %s, and there would be two runtimes: "
			"link the program with -lkochab-posix first",
			native.dli_fname, us.dli_fname);
	_exit(KBI_POSIX_CANNOT_RUN);
}

void kbi_preload_order(char **argv, char **envp)
{
	order_sanitizer(argv, envp);
	order_native(argv, envp);
}
