/* libc_age.h - which libc the test runs on, and whether Kochab is there. */
#ifndef LIBC_AGE_H
#define LIBC_AGE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

/* Is libc a glibc older than that? */
static inline bool libc_is_before(const char *version)
{
#ifdef __GLIBC__
	return strverscmp(gnu_get_libc_version(), version) < 0;
#else
	(void)version;
	return false;
#endif
}

/* Is this run under the drop-in? */
static inline bool under_kochab(void)
{
	return dlsym(RTLD_DEFAULT, "kb_thread_self") != NULL;
}

#endif
