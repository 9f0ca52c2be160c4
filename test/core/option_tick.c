/* core/agent: without the tick. */
#include "core/busy_day.h"

int main(void)
{
	CHECK_EQ(setenv("KOCHAB_TICK_MS", "0", 1), 0);
	busy_day();
	return 0;
}
