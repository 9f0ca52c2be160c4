/* setuid.h - for tests of programs with more rights than their caller: the test itself, as such a program. */
#ifndef KB_TEST_SETUID_H
#define KB_TEST_SETUID_H

#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies the running program to path, which nobody has yet, with the caller as its owner and the set-user-ID bit. */
static inline void setuid_copy(const char *path)
{
	char buf[65536];
	int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
	ssize_t n;

	CHECK(from >= 0 && to >= 0);
	while ((n = read(from, buf, sizeof buf)) > 0)
		CHECK_EQ(write(to, buf, (size_t)n), n);
	CHECK_EQ(n, 0);
	CHECK_EQ(fchmod(to, 04755), 0);
	close(from);
	close(to);
}

#endif
