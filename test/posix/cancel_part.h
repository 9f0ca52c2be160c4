/* cancel_part.h - what a cancelled call has moved. */
#ifndef CANCEL_PART_H
#define CANCEL_PART_H

#include <gnu/libc-version.h>
#include <stdbool.h>
#include <string.h>

/* From 2.41 on libc's calls return a part that they have moved, and the next cancellation point acts; before, the thread
 * ends in the call. */
static inline bool cancel_returns_part(void)
{
	return strverscmp(gnu_get_libc_version(), "2.41") >= 0;
}

#endif
