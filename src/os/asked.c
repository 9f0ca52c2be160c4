/* os/asked.c - tells what libc was asked. Contract in asked.h. */
#include "os/asked.h"

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

static const char *name(void)
{
#if defined(__GLIBC__)
	return "glibc";
#else
	return "libc";
#endif
}

KBI_PRINTF(2, 0) static void tell(const char *mark, const char *format, const char *what, va_list args)
{
	char text[LONGEST];

	vsnprintf(text, sizeof(text), format, args);
	kbi_sys_message("%s %s: %s%s: %s", name(), kbi_asked_version(), mark, what, text);
}

void kbi_asked_found(const char *what, const char *format, ...)
{
	va_list args;

	if (!kbi_options.verbose)
		return;
	va_start(args, format);
	tell("+ ", format, what, args);
	va_end(args);
}

void kbi_asked_lacks(const char *what, const char *format, ...)
{
	va_list args;

	if (!kbi_options.verbose)
		return;
	va_start(args, format);
	tell("- ", format, what, args);
	va_end(args);
}

void kbi_asked_missed(const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell("", format, what, args);
	va_end(args);
}
