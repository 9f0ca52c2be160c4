/* libc/asked.c - prints the answers about libc's internals. Contract in asked.h. */
#include "libc/asked.h"

#include <stdarg.h>
#include <stdio.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "base/option.h"
#include "os/sys.h"

enum { LONGEST = 400 };

const char *kbi_asked_version(void)
{
#if defined(__GLIBC__)
	return gnu_get_libc_version();
#else
	return "?";
#endif
}

static const char *libc_name(void)
{
#if defined(__GLIBC__)
	return "glibc";
#else
	return "libc";
#endif
}

void kbi_asked_tell(enum kbi_asked answer, const char *what, const char *format, ...)
{
	static const char *const marks[] =
		{ [KBI_ASKED_FOUND] = "+ ", [KBI_ASKED_LACKS] = "- ", [KBI_ASKED_MISSED] = "" };
	char text[LONGEST];
	va_list args;

	if (!kbi_options.verbose && answer != KBI_ASKED_MISSED)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	kbi_sys_message("%s %s: %s%s: %s", libc_name(), kbi_asked_version(), marks[answer], what,
		text);
}
