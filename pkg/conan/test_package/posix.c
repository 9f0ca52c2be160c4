#include <pthread.h>
#include <stdio.h>

const char *kb_version(void); /* the drop-in's; libc has none */

static void *body(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t thread;
	void *result = NULL;

	if (pthread_create(&thread, NULL, body, &thread) != 0 || pthread_join(thread, &result) != 0 || result != &thread)
		return 1;
	printf("POSIX threads: Kochab %s\n", kb_version());
	return 0;
}
