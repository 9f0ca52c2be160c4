/* core/respawn, os/trace: with the option on_kill=spare the processes of a program are killed while
 * its threads make libc's system calls. Each call is made once, and its result is right: not its
 * number, which is in the register after a call that was refused (libcalls=dispatch) when the
 * process was killed before it knew.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "core/killed.h"

/* The result of each call is known, and differs from the call's number. */
static void *calls(void *arg)
{
	pid_t me = getpid(), parent = getppid();
	off_t at = 0;
	FILE *f = tmpfile();
	int fd;

	CHECK(f);
	fd = fileno(f);
	for (unsigned long n = 0; !killed_is_over(); n++) {
		CHECK_EQ(getppid(), parent);
		CHECK_EQ(getpid(), me);
		CHECK_EQ(write(fd, "abc", 3), 3);
		at += 3;
		CHECK_EQ(lseek(fd, 0, SEEK_CUR), at);
		if (n % 64 == 0)
			kb_yield();
	}
	return arg;
}

static void nap(void)
{
	kb_sleep(200000);
}

int main(void)
{
	struct killed k = { .thread = calls, .threads = 4, .kills = 25, .pause = nap };

	return killed_run(&k);
}
