/* cancel_late.h - to cancel a thread that may have ended. */
#ifndef CANCEL_LATE_H
#define CANCEL_LATE_H

#include "libc_age.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Before 2.34 libc itself does not find a thread that has ended. e: what it says. */
static inline int found_late(int e)
{
	int ours = under_kochab();

	return e == ESRCH && !ours && libc_is_before("2.34") ? 0 : e;
}

static inline int cancel_late(pthread_t t)
{
	return found_late(pthread_cancel(t));
}

#endif
