/* cancel_late.h - cancels a thread that may have ended. */
#ifndef CANCEL_LATE_H
#define CANCEL_LATE_H

#include "libc_age.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Tests the result e: before 2.34 libc itself does not find a thread that has ended. */
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
