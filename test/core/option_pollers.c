/* core/agent: the paper's exclusive agent: a single VP polls at a time. */
#include "core/busy_day.h"

int main(void)
{
	CHECK_EQ(setenv("KOCHAB_POLLERS", "1", 1), 0);
	busy_day();
	return 0;
}
