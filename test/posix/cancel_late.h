/* cancel_late.h - to cancel a thread that may have ended. */
#ifndef CANCEL_LATE_H
#define CANCEL_LATE_H

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <string.h>

/* Before 2.34 libc itself does not find a thread that has ended. e: what it says. */
static inline int found_late(int e)
{
	int ours = dlsym(RTLD_DEFAULT, "kb_thread_self") ? 1 : 0;

	return e == ESRCH && !ours && strverscmp(gnu_get_libc_version(), "2.34") < 0 ? 0 : e;
}

static inline int cancel_late(pthread_t t)
{
	return found_late(pthread_cancel(t));
}

#endif
