/* test/posix/looks.h - how often waiting threads have polled: the voluntary context switches of the
 * program's kernel threads. */
#ifndef TEST_LOOKS_H
#define TEST_LOOKS_H

#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Where virtual processors are processes a count is that of a single process, and not always of one
 * and the same. */
static inline int has_processes(void)
{
	const char *body = getenv("KOCHAB_BODY");

	return body && strcmp(body, "process") == 0;
}

static inline long looks(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_SELF, &r), 0);
	return r.ru_nvcsw;
}

#endif
