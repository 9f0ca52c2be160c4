/* libc_age.h - which libc the test runs on, and whether Kochab is there. */
#ifndef LIBC_AGE_H
#define LIBC_AGE_H

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <string.h>

static inline bool libc_is_before(const char *version)
{
	return strverscmp(gnu_get_libc_version(), version) < 0;
}

/* Is this run under the drop-in? */
static inline bool under_kochab(void)
{
	return dlsym(RTLD_DEFAULT, "kb_thread_self") != NULL;
}

#endif
