/* core/process_children, core/respawn: processes of a program are killed while its threads wait for any
 * child. There is none: killed processes that are not reaped yet are not to be waited for.
 * matrix: none
 * body: thread (it chooses by itself) */
#include <errno.h>

#include "core/killed.h"

static void *asks(void *arg)
{
	while (!killed_is_over()) {
		CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
		CHECK_EQ(errno, ECHILD);
		kb_yield();
	}
	return arg;
}

int main(void)
{
	struct killed k = { .thread = asks, .threads = 3, .kills = 60, .pause = kb_yield };

	return killed_run(&k);
}
