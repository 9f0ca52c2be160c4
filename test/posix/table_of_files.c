/* posix/table_of_files: the kernel's table of the program's descriptors has room for the runtime's as soon as there
 * is a thread. Made longer later, when several kernel threads use it, that costs the first thread that waits for a socket
 * 10 to 20 ms, in which its virtual processor stands still.
 * matrix: run-only */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "test.h"

enum { ROOM = 1024 };

static int room(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	int n = -1;

	CHECK(f != NULL);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "FDSize: %d", &n) == 1)
			break;
	fclose(f);
	return n;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	struct rlimit most;
	pthread_t t;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &most), 0);
	if (most.rlim_cur < ROOM)
		SKIP("the limit of descriptors is low here");
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	printf("room for %d\n", room());
	CHECK(room() >= ROOM);
	return 0;
}
