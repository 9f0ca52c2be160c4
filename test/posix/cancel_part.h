/* cancel_part.h - what a cancelled call reports if it has moved a part. */
#ifndef CANCEL_PART_H
#define CANCEL_PART_H

#include "libc_age.h"

#include <stdbool.h>
#include <string.h>

/* From 2.41 on libc's calls return the part that they have moved, and the next cancellation point
 * acts; before, the thread ends in the call. */
static inline bool cancel_returns_part(void)
{
	return !libc_is_before("2.41");
}

#endif
