/* posix/sanitizer.c - a program built with ThreadSanitizer or AddressSanitizer whose runtime the loader put
 * behind us. The first would see the program make threads and never lock a mutex, and call every hand-over a
 * race; the second would be told of our kernel threads, and not of the program's threads. The program is
 * started once more with the runtime in front: then its wrappers call us, and it sees what the program does.
 * Caller: posix/preload, before main. Runs on the loading thread; does not return where it starts anew. */
#include "posix/posix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/sys.h"

void __tsan_init(void) __attribute__((weak));
void __asan_init(void) __attribute__((weak));

static const char variable[] = "LD_PRELOAD=";

static char **find(char **envp)
{
	while (*envp && strncmp(*envp, variable, sizeof(variable) - 1) != 0)
		envp++;
	return envp;
}

/* The program's own programs need no such runtime: the entry that we have put in front goes. */
static void take_off(char **envp, const char *runtime)
{
	char *list = *find(envp), *first;
	size_t n = strlen(runtime);

	if (!list)
		return;
	first = list + sizeof(variable) - 1;
	if (strncmp(first, runtime, n) == 0 && first[n] == ':')
		memmove(first, first + n + 1, strlen(first + n + 1) + 1);
}

static void start_anew(char **argv, char **envp, const char *runtime)
{
	char **slot = find(envp), *joined = NULL;

	/* without an entry we are linked in: the order is the program's own */
	if (!*slot || strstr(*slot, runtime))
		return;
	if (asprintf(&joined, "%s%s:%s", variable, runtime, *slot + sizeof(variable) - 1) < 0)
		return;
	*slot = joined;
	execve("/proc/self/exe", argv, envp);
	kbi_sys_message("%s does not see what threads do: put it in front of the drop-in", runtime);
}

void kbi_sanitizer_order(char **argv, char **envp)
{
	const void *its = __tsan_init ? (const void *)__tsan_init : (const void *)__asan_init;
	Dl_info info;

	if (!its || !dladdr(its, &info))
		return;
	if (kbi_place_before_us(its))
		take_off(envp, info.dli_fname);
	else
		start_anew(argv, envp, info.dli_fname);
}
