/* test/posix/looks.h - how often threads that wait have looked whether they still have to: the context switches that the
 * program's kernel threads have asked for. */
#ifndef TEST_LOOKS_H
#define TEST_LOOKS_H

#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Then what it has used is one process's, and not always the same one's. */
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
