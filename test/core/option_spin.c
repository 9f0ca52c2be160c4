/* core/agent: an idle VP that does not poll at all but sleeps at once. */
#include "core/busy_day.h"

int main(void)
{
	CHECK_EQ(setenv("KOCHAB_SPIN_US", "0", 1), 0);
	busy_day();
	return 0;
}
