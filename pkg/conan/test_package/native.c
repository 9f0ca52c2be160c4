#include <kochab/kochab.h>
#include <stdio.h>

static void *body(void *arg)
{
	return arg;
}

int main(void)
{
	kb_thread_t thread;
	void *result = NULL;

	if (kb_thread_create(&thread, NULL, body, &thread) != 0 || kb_thread_join(thread, &result) != 0 || result != &thread)
		return 1;
	printf("native: Kochab %s\n", kb_version());
	return 0;
}
