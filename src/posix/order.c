/* posix/order.c - the loader binds a name to the first library that has it, and some have to be before others. A program
 * whose libraries are in another order is started once more, with the one in front that LD_PRELOAD names:
 * - the runtime of ThreadSanitizer or AddressSanitizer, before us. Behind us the first would see the program make threads
 *   and never lock a mutex, and call every hand-over a race; the second would be told of our kernel threads, and not of the
 *   program's threads. In front its wrappers call us, and it sees what the program does.
 * - this library, before the native one, which a program may be linked with, too: two runtimes would run, of which one
 *   makes its virtual processors of the other's lightweight threads.
 * Caller: posix/preload, before main. Runs on the loading thread; does not return where it starts anew. */
#include "posix/posix.h"

#include <kochab/kochab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/names.h"
#include "os/sys.h"


static const char variable[] = "LD_PRELOAD=";

static char **find(char **envp)
{
	while (*envp && strncmp(*envp, variable, sizeof(variable) - 1) != 0)
		envp++;
	return envp;
}

/* The program's own programs need no such entry: the one that was put in front goes, with `mark` behind it. */
static void take_off(char **envp, const char *file, const char *mark)
{
	char **slot = find(envp), *first;
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

/* With the file in front of all that is preloaded. Returns if it cannot. */
static void start_anew(char **argv, char **envp, const char *file, const char *mark)
{
	char **slot = find(envp), *joined = NULL, **with;
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
	if (kbi_place_before_us(its)) {
		take_off(envp, info.dli_fname, ":");
		return;
	}
	/* without an entry we are linked in: the order is the program's own */
	if (!*find(envp) || strstr(*find(envp), info.dli_fname))
		return;
	start_anew(argv, envp, info.dli_fname, ":");
	kbi_sys_message("%s does not see what threads do: put it in front of the drop-in", info.dli_fname);
}

/* An empty entry behind ours says that it was put there here, and not by who wants all programs to have it. */
static void order_native(char **argv, char **envp)
{
	static const char mark[] = "::";
	Dl_info us, native;

	if (!dladdr((const void *)kbi_order, &us))
		return;
	if (kbi_likely(!kbi_place_before_us((const void *)kb_init))) {
		take_off(envp, us.dli_fname, mark);
		return;
	}
	start_anew(argv, envp, us.dli_fname, mark);
	if (dladdr((const void *)kb_init, &native)) /* which the loader has found there, or it would not be called */
		kbi_sys_message("%s comes before %s, and there would be two runtimes: link the program with -lkochab-posix first",
				native.dli_fname, us.dli_fname);
	_exit(KBI_POSIX_CANNOT_RUN);
}

void kbi_order(char **argv, char **envp)
{
	order_sanitizer(argv, envp);
	order_native(argv, envp);
}
